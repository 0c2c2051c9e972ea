"""State batches: runs of offsets with the same state and delivery count, as the share coordinator stores them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from typing import NamedTuple


class RecordState(IntEnum):
    """The state of a record for a share group (KIP-932). ARCHIVING waits for the dead-letter queue (KIP-1191)."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState


def is_terminal(state: RecordState) -> bool:
    """Whether a state is final."""
    return state is ACKNOWLEDGED or state is ARCHIVED


class StateBatch(NamedTuple):
    """Offsets from `first` to `last`, both included."""

    first: int
    last: int
    state: int
    delivery_count: int


UNSET_OFFSET = -1


def state_batch(first: int, last: int, state: int, delivery_count: int) -> StateBatch:
    """Returns a `StateBatch` in less time than its constructor, which is always interpreted."""
    return tuple.__new__(StateBatch, (first, last, state, delivery_count))


def combine(so_far: Sequence[StateBatch], new: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Returns the fewest batches equivalent to both lists from `start_offset` on, in order and without overlaps.

    Where batches overlap the larger delivery count wins,
    then the larger state: the state of a record advances in this order.
    """
    kept = []
    for batch in (*so_far, *new):
        if start_offset == UNSET_OFFSET or batch.first >= start_offset:
            kept.append(batch)
        elif batch.last >= start_offset:
            kept.append(batch._replace(first=start_offset))
    return _sweep(kept) if len(kept) > 1 else kept


def _sweep(batches: list[StateBatch]) -> list[StateBatch]:
    """Processes the ends of all batches in order; a heap has the open batches with the winner on top."""
    batches.sort()
    out: list[StateBatch] = []
    open_: list[tuple[int, int, int]] = []
    at, taken, count = 0, 0, len(batches)
    while taken < count or open_:
        if not open_:
            one = batches[taken]
            at = one.first
            if taken + 1 == count or batches[taken + 1].first > one.last:  # no other batch overlaps this one
                _append(out, one)
                taken += 1
                continue
        while taken < count and batches[taken].first <= at:
            one = batches[taken]
            heappush(open_, (-one.delivery_count, -one.state, one.last))
            taken += 1
        while open_ and open_[0][2] < at:
            heappop(open_)
        if not open_:
            continue
        winner_count, winner_state, last = open_[0]
        if taken < count and batches[taken].first <= last:
            last = batches[taken].first - 1
        _append(out, state_batch(at, last, -winner_state, -winner_count))
        at = last + 1
    return out


def _append(out: list[StateBatch], batch: StateBatch) -> None:
    if out:
        tail = out[-1]
        if tail.last + 1 == batch.first and tail.state == batch.state and tail.delivery_count == batch.delivery_count:
            out[-1] = state_batch(tail.first, batch.last, tail.state, tail.delivery_count)
            return
    out.append(batch)
