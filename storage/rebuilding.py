"""Rebuilds what describes a log from its batches, in steps: indexes, aborted transactions, the state of producers.

An index that is found to differ from its log while the log is in use is rebuilt beside it (`rebuild_damaged`): appends
and reads of other segments go on, and what needs the index raises IndexDamaged until then.
The log itself is not changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from typing import TypeVar

from ..protocol import records
from ..protocol.control import marker_of
from ..protocol.errors import MalformedMessage
from ..protocol.records import BatchAt
from .batch_info import BatchInfo
from .index import AbortedIndex, AbortedTransaction
from .layout import TXN_INDEX
from .log import Log
from .producers import Producers
from .segment import MAX_RELATIVE_OFFSET, IndexDamaged, Segment

logger = logging.getLogger("ottla.org.apache.kafka.storage.internals.log.LogSegment")
T = TypeVar("T")
STEP_BATCHES = 256
MAX_OFFSET = 2**63 - 1


def rebuild_damaged(log: Log) -> Iterator[None]:
    """Rebuilds the damaged indexes of a log. The log may be used between the steps. Raises OSError.

    An index stays damaged if a marker in the log cannot be read: nothing is guessed about its transaction.
    """
    while damage := next((one for one in log.damaged.values() if not one.is_final), None):
        segment, rebuild = damage.segment, _rebuild_aborted if damage.suffix == TXN_INDEX else _rebuild_indexes
        try:
            if segment in log.segments:  # it may have been removed or compacted meanwhile
                yield from rebuild(log, segment)
        except IndexDamaged:
            pass  # the other index is in `damaged` now; the next use of this one finds it damaged again
        except MalformedMessage as error:
            logger.error("%s cannot be rebuilt: %s", segment.path(damage.suffix), error)
            damage.is_final = True
        finally:
            if not damage.is_final:
                del log.damaged[segment, damage.suffix]


def answered(log: Log, ask: Callable[[], T]) -> Generator[None, None, T]:
    """Returns what `ask` returns, after rebuilding the indexes that it finds damaged."""
    while True:
        try:
            return ask()
        except IndexDamaged:
            yield from rebuild_damaged(log)


def paced(batches: Iterator[BatchInfo]) -> Iterator[BatchInfo | None]:
    """Yields the batches, and None after each step."""
    for number, batch in enumerate(batches, 1):
        yield batch
        if not number % STEP_BATCHES:
            yield None


def _scan_live(segment: Segment, position: int = 0) -> Iterator[BatchInfo]:
    """Yields the batches up to the size that the segment has at the end of the scan; appends may come in between."""
    before = -1
    while before < position < segment.size:
        before = position
        for batch in segment.scan(position):
            position = batch.position + batch.size
            yield batch


def end_of(log: Log, segment: Segment) -> Generator[None, None, tuple[int, int]]:
    """Returns the offset and the position after the last complete batch of a segment."""
    end, position = segment.base_offset, 0
    start = yield from answered(log, lambda: segment.position_before(MAX_OFFSET))
    for batch in paced(segment.scan(start)):
        if batch is None:
            yield
        else:
            end, position = batch.last_offset + 1, batch.position + batch.size
    return end, position


def _rebuild_indexes(log: Log, segment: Segment) -> Iterator[None]:
    """Rebuilds the indexes of offsets and timestamps, up to what is not a batch in its place."""
    made = Segment(log.pool, segment.directory, segment.base_offset, segment.created_ms)
    next_offset = segment.base_offset
    with segment.held():
        for batch in paced(_scan_live(segment)):
            if batch is None:
                yield
                continue
            if not next_offset <= batch.base_offset <= batch.last_offset <= segment.base_offset + MAX_RELATIVE_OFFSET:
                break  # no index could lead to the rest
            made.note(batch, log.settings.index_interval_bytes)
            next_offset = batch.last_offset + 1
    segment.take_indexes(made)
    segment.finish()
    segment.save_indexes()


def _rebuild_aborted(log: Log, segment: Segment) -> Iterator[None]:
    """Rebuilds the aborted transactions of a segment, from the newest producer snapshot before it on."""
    producers = Producers(log.name)
    offsets = log.small_files.snapshot_offsets()
    start = log.small_files.load_snapshot(producers, offsets, log.start_offset, segment.base_offset)
    made = AbortedIndex()
    for one in log.segments[max(log.floor(start), 0) :]:
        with one.held():
            for batch in paced(_scan_live(one, one.position_before(start))):
                if batch is None:
                    yield
                elif batch.last_offset >= start:
                    aborted = replay_batch(producers, one, batch)
                    if aborted is not None and one is segment:
                        made.append(aborted)
        if one is segment:
            break
    segment.set_aborted(made)
    segment.save_indexes()


def replay_batch(producers: Producers, segment: Segment, batch: BatchInfo) -> AbortedTransaction | None:
    """Updates the state of producers with a batch of a log; returns the transaction that it aborts."""
    header = batch.header
    if header is None or header.producer_id < 0:
        return None
    if not header.is_control:
        producers.update(header, batch.base_offset)
        return None
    ended = None
    for record in records.decode(segment.read_batch(batch), BatchAt(0, header)):
        marker = marker_of(record)
        if marker is not None:
            ended = producers.end_transaction(header, marker, batch.base_offset)
    return ended


def rebuild_producers(log: Log, end: int) -> Iterator[None]:
    """Rebuilds the producer state up to the batch boundary `end`: from the newest valid snapshot not above it, and the
    batches after that. Removes snapshots of offsets outside of the log.
    """
    start = log.load_producers(end)
    if start >= end:
        return
    first = log.segments[max(log.floor(start), 0)]
    yield from answered(log, lambda: first.position_before(start))
    for number, (segment, batch) in enumerate(log.batches_from(start), 1):
        if batch.base_offset >= end:
            return
        replay_batch(log.producers, segment, batch)
        if not number % STEP_BATCHES:
            yield
