"""Writes transaction markers to partitions, for the coordinator in this process or for a WriteTxnMarkers request.

A marker is a control batch with one record. In `__consumer_offsets` its append and its effect on pending offsets are
one step of the shard.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from ...protocol import records
from ...protocol.control import Marker, marker_record
from ...protocol.errors import ApiError, Errors
from ...protocol.records import BatchAt, Template
from .. import bugs
from ..group.coordinators import TOPIC_NAME as OFFSETS_TOPIC
from ..group.coordinators import GroupCoordinators
from ..later import Later, failed
from ..replica.appender import Appender, check_replicas
from ..replica.partition import Partition
from ..turn import Turn

UNKNOWN_VERSION = -1
COORDINATOR_GONE = frozenset(
    (Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.NOT_COORDINATOR)
)


class TransactionEnd(NamedTuple):
    """The content of a marker, and the transaction version of its client."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    version: int

    def batch(self, now_ms: int) -> MarkerBatch:
        """Returns the control batch, which is the same for every partition."""
        template = Template(
            producer_id=self.producer_id, producer_epoch=self.producer_epoch, transactional=True, control=True
        )
        marker = Marker(self.committed, self.coordinator_epoch)
        data = records.encode([marker_record(marker, now_ms)], template)
        return MarkerBatch(self, marker, data, BatchAt(0, records.header_at(data)), now_ms)


class MarkerBatch(NamedTuple):
    """A marker as bytes; an append writes offset and leader epoch into a copy."""

    end: TransactionEnd
    marker: Marker
    data: bytearray
    at: BatchAt
    now_ms: int


class MarkerWriter:
    """Writes markers to partitions; to those of `__consumer_offsets` through their shards."""

    def __init__(self, turn: Turn, appender: Appender, groups: GroupCoordinators) -> None:
        self.turn = turn
        self.appender = appender
        self.groups = groups

    def write(self, partition: Partition, batch: MarkerBatch) -> Later[None]:
        """Ends a transaction in one partition; completes when the high watermark has passed the marker.

        Fails with ApiError: NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH,
        TRANSACTION_COORDINATOR_FENCED, UNKNOWN_SERVER_ERROR (a version of -1); UNKNOWN_TOPIC_OR_PARTITION if the
        partition is deleted meanwhile.
        """
        try:
            if partition.topic == OFFSETS_TOPIC:
                return self._write_to_offsets(partition, batch)
            _, next_offset = self._append(partition, batch)
            return partition.wait_for(next_offset)
        except ApiError as error:
            return failed(error)
        except Exception as error:
            bugs.report(f"a marker in {partition.name}", error)
            return failed(ApiError(Errors.UNKNOWN_SERVER_ERROR))

    def _append(self, partition: Partition, batch: MarkerBatch, required_acks: int = -1) -> tuple[int, int]:
        """Appends a marker; returns its offset and the next offset. Raises ApiError."""
        log, end = partition.open_log(), batch.end
        check_replicas(partition, required_acks)
        if end.version == UNKNOWN_VERSION:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        log.producers.check_marker(
            end.producer_id, end.producer_epoch, end.coordinator_epoch, end.version, log.end_offset
        )
        done = self.appender.store(partition, bytearray(batch.data), [batch.at], batch.now_ms, batch.marker)
        return done.base_offset, done.next_offset

    def _write_to_offsets(self, partition: Partition, batch: MarkerBatch) -> Later[None]:
        later: Later[None] = Later()
        end = batch.end

        def done(_: None, error: ApiError | None) -> None:
            if error is not None and error.code in COORDINATOR_GONE:
                error = ApiError(Errors.NOT_LEADER_OR_FOLLOWER)
            later.settle(None, error)

        try:
            host = self.groups.host_at(partition.index)
        except ApiError as error:
            done(None, error)
            return later
        runtime = host.runtime

        def append() -> None:
            parked = runtime.append_marker(
                lambda: self._append(partition, batch, self.groups.required_acks),
                end.producer_id,
                end.producer_epoch,
                batch.marker,
                done,
                self.turn.schedule.monotonic_ms(),
            )
            self.turn.wrote(host)
            if runtime.long is not None:
                host.hold()
            if parked is not None:
                later.on_cancel = partial(runtime.forget, parked)

        host.when_free(append)
        return later
