"""Appends to and truncates the logs of partitions: validates produced batches,
and takes the directory of a failed disk offline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ...coordinator.metadata.state import NO_LEADER
from ...protocol import compression, messages, opening, records
from ...protocol.buffers import WritableData
from ...protocol.control import Marker
from ...protocol.errors import ApiError, Errors
from ...protocol.records import BatchAt, BatchHeader
from ...storage import validation
from ...storage.batch_info import Appended
from ...storage.producers import Batch as KnownBatch
from ...storage.producers import Producers, Verification
from ...storage.settings import FOREVER, LogSettings
from .. import bugs
from ..internal_topics import is_internal
from ..limits import PRODUCERS, Limits
from ..settings import Settings
from ..steps import Allowance, Work, at_once
from ..turn import Turn
from ..watermark_policies import IMMEDIATE
from .high_watermarks import HighWatermarks
from .partition import Partition
from .partitions import Partitions

if TYPE_CHECKING:
    from ...storage.gathered import Gathered

CODECS = {
    "uncompressed": compression.NONE,
    "gzip": compression.GZIP,
    "snappy": compression.SNAPPY,
    "lz4": compression.LZ4,
    "zstd": compression.ZSTD,
}
PACKED_AT_ONCE_BYTES = 1 << 18


Batch = tuple[WritableData, BatchAt]


def check_replicas(partition: Partition, required_acks: int = -1) -> None:
    """Raises ApiError(NOT_ENOUGH_REPLICAS) if all replicas in sync have to acknowledge, and are too few;
    NOT_LEADER_OR_FOLLOWER without a leader.
    """
    if partition.leader == NO_LEADER:
        raise ApiError(Errors.NOT_LEADER_OR_FOLLOWER)
    if required_acks == -1 and partition.is_under_min_isr:
        raise ApiError(Errors.NOT_ENOUGH_REPLICAS)


class Gathering(Protocol):
    """Collects batches for one partition, which are written together."""

    def add(self, data: WritableData, at: BatchAt, now_ms: int) -> Appended:
        """Adds a validated batch. Raises ApiError, as `Appender.store` does."""


AppendToLog = Callable[[Partition, WritableData, list[BatchAt], int, Marker | None], Appended]


class Appender:
    """Appends to the logs of partitions. `reopen` opens a log again if its state in memory cannot be trusted."""

    def __init__(
        self,
        turn: Turn,
        settings: Settings,
        partitions: Partitions,
        high_watermarks: HighWatermarks,
        reopen: Callable[[Partition], None],
        limits: Limits,
    ) -> None:
        self.turn = turn
        self.schedule = turn.schedule
        self.settings = settings
        self.partitions = partitions
        self.high_watermarks = high_watermarks
        self.reopen = reopen
        self.limits = limits
        self.append_to_log: AppendToLog = Partition.append  # the lab may let it fail
        self.checks_all: bool = settings.config["ottla.record.validation"] == "full"
        self.producers_max: int = settings.config["ottla.producers.per.partition.max"]

    def append(
        self,
        partition: Partition,
        data: WritableData,
        at: BatchAt,
        acks: int,
        answer: messages.ProduceResponse.PartitionProduceResponse,
        verification: Verification | None,
        allowance: Allowance,
        opened: Batch | ApiError | None = None,
        gathering: Gathering | None = None,
    ) -> int:
        """Validates a batch and appends it; returns the offset that acks=all waits for.

        `answer` is the partition's part of the response, which this fills. Raises ApiError or InvalidRecords.

        `verification`: needed by a transactional batch, unless its transaction is open. `allowance`: the remaining
        steps for decompressing; raises TooLong, without any effect, if they are too few. `opened`: the result of
        decompressing in steps (`open_batch`). `gathering`: what the batch may be written together with.
        """
        log = partition.open_log()
        if acks == -1:
            check_replicas(partition)
        now = self.schedule.now_ms()
        data, at = self.validated(partition, log.settings, data, at, allowance, now, opened)
        header = at.header
        if header.producer_id >= 0:
            duplicate = log.producers.find_duplicate(header)
            if duplicate is not None:
                answer_repeated(answer, duplicate, log.start_offset)
                return duplicate.last_offset + 1
            if header.is_transactional and self.verifies():
                log.producers.check_verified(header.producer_id, header.producer_epoch, verification)
            log.producers.check(header, log.end_offset)
        done = gathering.add(data, at, now) if gathering is not None else self.store(partition, data, [at], now)
        if header.producer_id >= 0 and len(log.producers.by_id) > self.producers_max:
            self._forget_producers(partition, log.producers)
        answer.base_offset = done.base_offset
        answer.log_append_time_ms = done.append_time
        answer.log_start_offset = log.start_offset
        return done.next_offset

    def validated(
        self,
        partition: Partition,
        settings: LogSettings,
        data: WritableData,
        at: BatchAt,
        allowance: Allowance,
        now_ms: int,
        opened: Batch | ApiError | None,
    ) -> Batch:
        """Returns a batch as it is appended. Parameters and errors are those of `append`."""
        validation.check_header(at, data, settings.max_message_bytes)
        if isinstance(opened, ApiError):
            raise opened
        if opened is not None:
            data, at = opened
        elif self._must_open(partition, at.header, settings, now_ms):
            data, at = at_once(self.open_batch(partition, data, at), allowance)
        if at.header.size > settings.segment_bytes:
            raise ApiError(Errors.RECORD_LIST_TOO_LARGE)
        return data, at

    def _forget_producers(self, partition: Partition, producers: Producers) -> None:
        """Removes producers that were silent for longest until no more than allowed are left."""
        self.limits.reached(PRODUCERS, partition.name)
        producers.forget(len(producers.by_id) - self.producers_max)

    def _must_open(self, partition: Partition, header: BatchHeader, settings: LogSettings, now_ms: int) -> bool:
        config = self.settings.at(partition.leader).of_topic(partition.topic)
        compression_type = config["compression.type"]
        if compression_type != "producer" and CODECS[compression_type] != header.codec:
            return True
        if self.checks_all or is_internal(partition.topic):
            return True
        before_ms, after_ms = config["message.timestamp.before.max.ms"], config["message.timestamp.after.max.ms"]
        return validation.must_open(header, settings, now_ms, before_ms, after_ms)

    def open_batch(self, partition: Partition, data: WritableData, at: BatchAt) -> Work[Batch]:
        """Decompresses a batch, validates its records and converts it as the topic requires.
        Raises ApiError or InvalidRecords.

        `data` must stay valid during the work, and may be changed by it.
        """
        settings = partition.open_log().settings
        config = self.settings.at(partition.leader).of_topic(partition.topic)
        now = self.schedule.now_ms()
        bounds = now - config["message.timestamp.before.max.ms"], now + config["message.timestamp.after.max.ms"]
        limit = config["max.decompressed.message.bytes"]
        name = config["compression.type"]
        is_kept = name == "producer" or CODECS[name] == at.header.codec
        largest = yield from validation.check_records(at, data, partition.name, settings, bounds, limit, is_kept)
        if not settings.is_append_time:
            at = validation.corrected(at, data, largest)
        if not is_kept:
            return (
                yield from _recompressed(
                    data, at, name, config.get(f"compression.{name}.level"), settings.max_message_bytes
                )
            )
        return data, at

    def verifies(self) -> bool:
        """Whether transactional batches must be verified
        with the coordinator (`transaction.partition.verification.enable`).
        """
        return bool(self.settings.value("transaction.partition.verification.enable"))

    def store(
        self,
        partition: Partition,
        data: WritableData,
        batches: list[BatchAt],
        now_ms: int,
        marker: Marker | None = None,
    ) -> Appended:
        """Appends validated batches, or a message set of version 0 or 1, which has none. `marker`: the content
        of a control batch among them. Raises ApiError(KAFKA_STORAGE_ERROR).

        Raises UNKNOWN_SERVER_ERROR if the append failed for another reason than the disk; the log is then opened again
        from its files.
        """
        try:
            done = self.append_to_log(partition, data, batches, now_ms, marker)
        except Exception as error:
            raise self._failed(partition, error) from None
        self.high_watermarks.appended(partition)
        return done

    def write(self, partition: Partition, gathered: Gathered, now_ms: int) -> None:
        """Appends what was gathered; errors are those of `store`."""
        try:
            gathered.write(now_ms)
        except Exception as error:
            raise self._failed(partition, error) from None
        self.high_watermarks.appended(partition)

    def _failed(self, partition: Partition, error: Exception) -> ApiError:
        """Returns the error of an append that did not happen."""
        if isinstance(error, ApiError):
            return error
        if isinstance(error, OSError):
            return self.partitions.storage_error(partition, error)
        bugs.report(f"an append to {partition.name}", error)
        self.reopen(partition)
        return ApiError(Errors.UNKNOWN_SERVER_ERROR)

    def gathers(self, partition: Partition) -> bool:
        """Whether batches for a partition may be written together: its high watermark follows each append at once."""
        return (
            self.append_to_log is Partition.append
            and partition.log is not None
            and partition.replica_set is None
            and partition.follower.policy is IMMEDIATE
            and not partition.log.settings.waits_for_flush_ms
            and partition.log.settings.flush_messages == FOREVER
            and partition.high_watermark == partition.log.end_offset
        )

    def cut(self, partition: Partition, offset: int) -> None:
        """Removes the records before an offset from the log. Raises ApiError(KAFKA_STORAGE_ERROR)."""
        try:
            if partition.open_log().advance_start(offset):
                partition.disturb()
        except OSError as error:
            raise self.partitions.storage_error(partition, error) from None


def answer_repeated(
    answer: messages.ProduceResponse.PartitionProduceResponse, batch: KnownBatch, log_start_offset: int
) -> None:
    """Answers a batch that an idempotent producer has sent again, and that is not appended again."""
    answer.base_offset, answer.log_append_time_ms = batch.first_offset, batch.timestamp
    answer.log_start_offset = log_start_offset


def _recompressed(data: WritableData, at: BatchAt, name: str, level: int | None, max_message_bytes: int) -> Work[Batch]:
    """Recompresses a batch for the topic's `compression.type`, with offset deltas from 0.

    Raises ApiError(MESSAGE_TOO_LARGE), and UNKNOWN_SERVER_ERROR for a negative timestamp,
    which Kafka's builder refuses.
    """
    header = at.header
    template = records.Template(
        codec=CODECS[name],
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        level=None if name == "gzip" and level == -1 else level,
    )
    body, count, base_timestamp = bytearray(), 0, 0
    for some in opening.contents(data, at):
        for record in some:
            if record.timestamp < records.NO_TIMESTAMP:
                raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
            if not count:
                base_timestamp = record.timestamp
            records.put_record(body, record, record.timestamp - base_timestamp, count)
            count += 1
        if template.codec == compression.NONE and len(body) > max_message_bytes:
            raise ApiError(Errors.MESSAGE_TOO_LARGE)
        yield None

    def pack() -> bytearray:
        return records.batch_of(body, template, count, count - 1, base_timestamp, header.max_timestamp)

    made = pack() if len(body) <= PACKED_AT_ONCE_BYTES else (yield pack)
    if len(made) > max_message_bytes:
        raise ApiError(Errors.MESSAGE_TOO_LARGE)
    return made, BatchAt(0, records.header_at(made))
