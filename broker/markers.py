"""Transaction markers: how the end of a transaction gets into a partition, from the coordinator here or from a WriteTxnMarkers on the wire.

A marker is a control batch of one record. In `__consumer_offsets` its append and what it does to pending offsets are one step of the shard.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from ..protocol import records
from ..protocol.errors import ApiError, Errors
from ..protocol.records import Record, Template
from ..storage.log import MARKER_ABORT, MARKER_COMMIT
from .appending import check_replicas, store
from .coordinators import TOPIC_NAME as OFFSETS_TOPIC
from .later import Later
from .partition import Partition

if TYPE_CHECKING:
    from .broker import Broker

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
MARKER_VERSION = 0
COORDINATOR_GONE = frozenset((Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.NOT_COORDINATOR))


class TransactionEnd(NamedTuple):
    """What a marker says, and the version of transactions that its client speaks."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    version: int

    def batch(self, now_ms: int) -> bytearray:
        key = _KEY.pack(MARKER_VERSION, MARKER_COMMIT if self.committed else MARKER_ABORT)
        value = _VALUE.pack(MARKER_VERSION, self.coordinator_epoch)
        template = Template(producer_id=self.producer_id, producer_epoch=self.producer_epoch, transactional=True, control=True)
        return records.encode([Record(key, value, now_ms)], template)


def write_marker(broker: Broker, partition: Partition, end: TransactionEnd) -> Later[None]:
    """Ends a transaction in one partition; finished when the high watermark has passed the marker.

    Fails with ApiError: NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH,
    TRANSACTION_COORDINATOR_FENCED; UNKNOWN_TOPIC_OR_PARTITION when the partition is deleted meanwhile.
    """
    try:
        if partition.topic == OFFSETS_TOPIC:
            return _write_to_offsets(broker, partition, end)
        _, next_offset = _append(broker, partition, end)
        return partition.wait_for(next_offset)
    except ApiError as error:
        failed: Later[None] = Later()
        failed.fail(error)
        return failed


def _append(broker: Broker, partition: Partition, end: TransactionEnd) -> tuple[int, int]:
    """The marker's offset and the one behind it. ApiError."""
    log = partition.open_log()
    check_replicas(partition)
    log.producers.check_marker(end.producer_id, end.producer_epoch, end.coordinator_epoch, end.version, log.end_offset)
    now = broker.schedule.now_ms()
    data = end.batch(now)
    done = store(broker, partition, data, list(records.batches(data)), now)
    return done.base_offset, done.next_offset


def _write_to_offsets(broker: Broker, partition: Partition, end: TransactionEnd) -> Later[None]:
    later: Later[None] = Later()

    def done(_: None, error: ApiError | None) -> None:
        if error is not None and error.code in COORDINATOR_GONE:
            error = ApiError(Errors.NOT_LEADER_OR_FOLLOWER)
        later.settle(None, error)

    try:
        host = broker.groups.host_at(partition.index)
    except ApiError as error:
        done(None, error)
        return later
    host.runtime.append_marker(
        lambda: _append(broker, partition, end),
        end.producer_id,
        end.producer_epoch,
        end.coordinator_epoch,
        end.committed,
        done,
        broker.schedule.monotonic_ms(),
    )
    broker.wrote(host)
    return later
