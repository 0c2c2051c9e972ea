"""The share-partition engine without a broker, for tests."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from ottla.coordinator.share.acquiring import (
    BATCH_OPTIMIZED,
    AbortedRange,
    LogBatch,
)
from ottla.coordinator.share.batches import StateBatch
from ottla.coordinator.share.changes import Change
from ottla.coordinator.share.partition import (
    Acknowledgement,
    SharePartition,
)
from ottla.protocol.errors import ApiError

LOCK_MS = 30_000


@dataclass
class Limits:
    max_in_flight: int = 2000
    max_delivery_count: int = 5
    lock_duration_ms: int = LOCK_MS
    may_renew: bool = True
    has_dlq: bool = False


def started(start: int = 0, batches: tuple[StateBatch, ...] = (), **limits: int | bool) -> SharePartition:
    engine = SharePartition(0, Limits(**limits))  # type: ignore[arg-type]
    engine.initialize(start, 0, batches)
    return engine


def acquire(
    engine: SharePartition,
    member: str,
    first: int,
    last: int,
    *,
    size: int = 0,
    now_ms: int = 0,
    mode: int = BATCH_OPTIMIZED,
    batch_size: int = 1000,
    records: int = 1000,
    asked: int | None = None,
    aborted: tuple[AbortedRange, ...] = (),
) -> list[tuple[int, int, int]]:
    """A fetch that brought `first` to `last`, in batches of `size` (one batch where it is 0)."""
    size = size or last - first + 1
    found = [LogBatch(at, min(at + size - 1, last)) for at in range(first, last + 1, size)]
    taken = engine.acquire(member, mode, batch_size, records, first if asked is None else asked, found, now_ms, aborted)
    return [(one.first, one.last, one.delivery_count) for one in taken]


def say(engine: SharePartition, member: str, first: int, last: int, *types: int, now_ms: int = 0) -> list[Change]:
    return engine.acknowledge(member, [Acknowledgement(first, last, types)], now_ms)


def settle(engine: SharePartition, member: str, first: int, last: int, *types: int, now_ms: int = 0) -> list[Change]:
    """An acknowledgement that is written at once."""
    return engine.complete(say(engine, member, first, last, *types, now_ms=now_ms), commit=True)


def states(engine: SharePartition) -> list[tuple[int, str, int, str]]:
    """Runs of offsets as (last, state, delivery count, member)."""
    out: list[tuple[int, str, int, str]] = []
    for span in engine.window.spans:
        for offset in range(span.first, span.last + 1):
            one = span.at(offset)
            row = one.state.name, one.delivery_count, one.member_id
            if out and out[-1][1:] == row:
                out.pop()
            out.append((offset, *row))
    return out


def batches(changes: list[Change]) -> list[tuple[int, int, int, int]]:
    return [(one.first, one.last, one.state, one.delivery_count) for one in (change.batch for change in changes)]


def refused(code: int, text: str) -> pytest.RaisesExc[ApiError]:
    return pytest.raises(ApiError, match=text, check=lambda error: error.code == code)
