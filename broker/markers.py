"""Transaction markers: how the end of a transaction gets into a partition, from the coordinator here or from a WriteTxnMarkers on the wire.

A marker is a control batch of one record. In `__consumer_offsets` its append and what it does to pending offsets are one step of the shard.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from ..protocol import records
from ..protocol.errors import ApiError, Errors
from ..protocol.records import BatchAt, Record, Template
from ..storage.log import MARKER_ABORT, MARKER_COMMIT
from ..storage.producers import Marker
from .appending import check_replicas, store
from .coordinators import TOPIC_NAME as OFFSETS_TOPIC
from .later import Later
from .partition import Partition

if TYPE_CHECKING:
    from .broker import Broker

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
MARKER_VERSION = 0
UNKNOWN_VERSION = -1
COORDINATOR_GONE = frozenset((Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.NOT_COORDINATOR))


class TransactionEnd(NamedTuple):
    """What a marker says, and the version of transactions that its client speaks."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    version: int

    def batch(self, now_ms: int) -> MarkerBatch:
        """The control batch, which is the same for every partition."""
        key = _KEY.pack(MARKER_VERSION, MARKER_COMMIT if self.committed else MARKER_ABORT)
        value = _VALUE.pack(MARKER_VERSION, self.coordinator_epoch)
        template = Template(producer_id=self.producer_id, producer_epoch=self.producer_epoch, transactional=True, control=True)
        data = records.encode([Record(key, value, now_ms)], template)
        return MarkerBatch(self, data, BatchAt(0, records.header_at(data)), now_ms)


class MarkerBatch(NamedTuple):
    """A marker as it is appended; an append writes offset and leader epoch into a copy of its bytes."""

    end: TransactionEnd
    data: bytearray
    at: BatchAt
    now_ms: int


def write_marker(broker: Broker, partition: Partition, batch: MarkerBatch) -> Later[None]:
    """Ends a transaction in one partition; finished when the high watermark has passed the marker.

    Fails with ApiError: NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH,
    TRANSACTION_COORDINATOR_FENCED, UNKNOWN_SERVER_ERROR (a version of -1); UNKNOWN_TOPIC_OR_PARTITION when the partition is deleted meanwhile.
    """
    try:
        if partition.topic == OFFSETS_TOPIC:
            return _write_to_offsets(broker, partition, batch)
        _, next_offset = _append(broker, partition, batch)
        return partition.wait_for(next_offset)
    except ApiError as error:
        failed: Later[None] = Later()
        failed.fail(error)
        return failed


def _append(broker: Broker, partition: Partition, batch: MarkerBatch) -> tuple[int, int]:
    """The marker's offset and the one behind it. ApiError."""
    log, end = partition.open_log(), batch.end
    check_replicas(partition)
    if end.version == UNKNOWN_VERSION:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    log.producers.check_marker(end.producer_id, end.producer_epoch, end.coordinator_epoch, end.version, log.end_offset)
    marker = Marker(end.committed, end.coordinator_epoch)
    done = store(broker, partition, bytearray(batch.data), [batch.at], batch.now_ms, marker)
    return done.base_offset, done.next_offset


def _write_to_offsets(broker: Broker, partition: Partition, batch: MarkerBatch) -> Later[None]:
    later: Later[None] = Later()
    end = batch.end

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
        lambda: _append(broker, partition, batch),
        end.producer_id,
        end.producer_epoch,
        end.coordinator_epoch,
        end.committed,
        done,
        broker.schedule.monotonic_ms(),
    )
    broker.wrote(host)
    return later
