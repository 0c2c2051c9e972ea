"""Appends to topics whose messages have version 0 or 1 (`message.format.version`), in their own format.

`protocol.assigning` makes the bytes. The offsets in them follow the log end, so that appends to a partition come one
after the other, also where one takes long and waits for the loop.
"""

from __future__ import annotations

from collections import deque

from ...protocol import legacy, messages, records
from ...protocol.assigning import Place, Rules, assigned, assigned_batch
from ...protocol.buffers import Data
from ...protocol.errors import ApiError, Errors
from ...storage import validation
from ...storage.log import Log
from ..broker import Broker
from ..later import Later
from ..net.context import Context
from ..replica.appender import CODECS, check_replicas
from ..replica.partition import NEVER, Partition
from ..steps import Work
from .outcomes import work_out
from .releases import Release

Answer = messages.ProduceResponse.PartitionProduceResponse
TRIES_MAX = 10  # while others, which are not clients of the release, append to the partition too


class Lines:
    """Who appends to a partition, and who waits for that."""

    def __init__(self) -> None:
        self._waiting: dict[Partition, deque[Later[None]]] = {}

    async def enter(self, partition: Partition) -> None:
        line = self._waiting.get(partition)
        if line is None:
            self._waiting[partition] = deque()
            return
        mine: Later[None] = Later()
        line.append(mine)
        await mine

    def leave(self, partition: Partition) -> None:
        """The next one that still waits goes on."""
        line = self._waiting[partition]
        while line:
            following = line.popleft()
            if not following.done:
                following.finish(None)
                return
        del self._waiting[partition]


def lines_of(broker: Broker) -> Lines:
    found: Lines = broker.extensions.setdefault("message_set_lines", Lines())
    return found


async def append(
    context: Context, release: Release, partition: Partition, data: Data, acks: int, answer: Answer
) -> int | None:
    """Appends what a producer sent, which must stay valid; fills the answer. Returns the offset for which the high
    watermark is waited, None where nothing waits. Raises ApiError.
    """
    broker = context.broker
    if acks not in (-1, 0, 1) and not release.is_before(0, 9):
        raise ApiError(Errors.INVALID_REQUIRED_ACKS)
    lines = lines_of(broker)
    await lines.enter(partition)
    try:
        end = await _append(context, release, partition, data, acks, answer)
    finally:
        lines.leave(partition)
    if acks > partition.isr_size:  # 0.8.2 waits for so many, in vain
        return NEVER
    return end if acks == -1 or acks > 1 else None


async def _append(
    context: Context, release: Release, partition: Partition, data: Data, acks: int, answer: Answer
) -> int:
    broker = context.broker
    for _ in range(TRIES_MAX):
        broker.partitions.check_led(partition)
        log = partition.open_log()
        if acks == -1:
            check_replicas(partition)
        place = Place(log.end_offset, broker.schedule.now_ms())
        made = await work_out(broker.turn, len(data), lambda: _work(context, release, log, data, place))  # noqa: B023
        if partition.log is log and log.end_offset == place.base_offset:
            break
    else:
        raise ApiError(Errors.REQUEST_TIMED_OUT)
    answer.log_start_offset = log.start_offset
    if not made:
        if any(legacy.entries(data)):  # messages that hold none
            answer.base_offset = log.end_offset
        return log.end_offset
    if len(made) > log.settings.segment_bytes:
        raise ApiError(Errors.RECORD_LIST_TOO_LARGE)
    broker.partitions.check_led(partition)
    done = broker.appender.store(partition, bytearray(made), [], place.now_ms)
    answer.base_offset, answer.log_append_time_ms = done.base_offset, done.append_time
    return done.next_offset


def _work(context: Context, release: Release, log: Log, data: Data, place: Place) -> Work[bytes | bytearray]:
    settings, values = log.settings, context.broker.settings.of_topic(log.topic)
    codec = values["compression.type"]
    now = place.now_ms
    rules = Rules(
        settings.message_format,
        None if codec == "producer" else CODECS[codec],
        settings.is_compacted,
        settings.is_append_time,
        (now - values["message.timestamp.before.max.ms"], now + values["message.timestamp.after.max.ms"]),
        settings.max_message_bytes,
        release.checks,
    )
    if len(data) <= records.MAGIC_AT or data[records.MAGIC_AT] != records.MAGIC:
        return assigned(data, rules, place)
    if release.is_before(0, 11):
        raise ApiError(Errors.CORRUPT_MESSAGE)
    at = validation.single_batch(data, context.version)
    validation.check_header(at, data, settings.max_message_bytes)
    return assigned_batch(data, at, rules, place)
