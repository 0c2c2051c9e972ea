"""Finding records by their timestamps: indexes lead to a batch, whose records are looked at chunk by chunk."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

from ..protocol import opening
from ..protocol.errors import MalformedMessage
from ..protocol.records import BatchAt
from . import message_sets
from .batch_info import BatchInfo
from .log import Log
from .rebuilding import paced
from .segment import Segment


class FoundOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def first_from(log: Log, timestamp: int) -> Generator[None, None, FoundOffset | None]:
    """Finds the first record at or after `timestamp`, a step for each chunk of records, and for some batches that have
    none. Raises IndexDamaged.
    """
    for segment in log.segments:
        if segment.max_timestamp < timestamp:
            continue
        with segment.held():
            for batch in paced(segment.scan(segment.position_before_timestamp(timestamp))):
                if batch is None:
                    yield
                    continue
                if batch.max_timestamp < timestamp or batch.last_offset < log.start_offset:
                    continue
                for some in _of_batch(segment, batch):
                    for found_timestamp, offset in some:
                        if found_timestamp >= timestamp and offset >= log.start_offset:
                            return FoundOffset(found_timestamp, offset, _epoch_of(batch))
                    yield
    return None


def largest(log: Log) -> Generator[None, None, FoundOffset | None]:
    """Finds the first record with the largest timestamp of the batch that claims the log's largest, a step for each
    chunk of records.
    """
    best = max(log.segments, key=lambda s: s.max_timestamp)
    if best.max_timestamp < 0:
        return None
    batch = best.find(best.max_timestamp_offset)
    if batch is None:
        return None
    found: FoundOffset | None = None
    for some in _of_batch(best, batch):
        for timestamp, offset in some:
            if timestamp >= 0 and (found is None or timestamp > found.timestamp):
                found = FoundOffset(timestamp, offset, _epoch_of(batch))
        if found is not None and found.timestamp == best.max_timestamp:
            break
        yield
    return found


def _of_batch(segment: Segment, batch: BatchInfo) -> Iterator[Iterable[tuple[int, int]]]:
    """Timestamps and offsets of a batch's records, chunk by chunk."""
    data = segment.read_batch(batch)
    try:
        if batch.header is None:
            for messages in message_sets.contents(data):
                yield [(m.timestamp, m.offset) for m in messages]
            return
        for some in opening.shapes(data, BatchAt(0, batch.header)):
            base = batch.base_offset
            yield zip(some.timestamps, [base + delta for delta in some.offset_deltas], strict=True)
    except MalformedMessage:  # the batch was not validated when it was written: only its header is known
        yield [(batch.max_timestamp, batch.base_offset)]


def _epoch_of(batch: BatchInfo) -> int:
    return -1 if batch.header is None else batch.header.partition_leader_epoch
