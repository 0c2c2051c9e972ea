"""The share-partition engine (KIP-932): where a leader goes on, a log whose start moves, and state batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.coordinator.share.acknowledge_types import ACCEPT, REJECT, RELEASE
from ottla.coordinator.share.acquiring import (
    BATCH_OPTIMIZED,
    RECORD_LIMIT,
)
from ottla.coordinator.share.batches import ACKNOWLEDGED, ACQUIRED, ARCHIVED, ARCHIVING, AVAILABLE, StateBatch, combine
from ottla.coordinator.share.inflight import SPLIT_OFFSETS_MAX
from ottla.coordinator.share.partition import (
    SharePartition,
    State,
)
from ottla.protocol.errors import Errors

from ..sim import share as sim_share
from ..support.seeds import in_turn, spans
from ..support.share_engine import (
    LOCK_MS,
    Limits,
    acquire,
    batches,
    refused,
    say,
    settle,
    started,
    states,
)

# where a leader goes on


def test_what_a_leader_reads_is_where_it_goes_on() -> None:
    engine = started(100, (StateBatch(100, 119, 0, 2), StateBatch(120, 129, 2, 1), StateBatch(130, 134, 4, 5)))
    assert (engine.window.start_offset, engine.window.end_offset, engine.window.complete_count) == (100, 134, 15)
    assert engine.window.next_fetch_offset() == 100
    assert acquire(engine, "m", 100, 199, size=100) == [(100, 119, 3), (135, 199, 1)]


def test_a_gap_in_what_was_read_is_acquired_before_the_start_offset_passes_it() -> None:
    """Records that were leased to the old leader's members are in no batch."""
    engine = started(0, (StateBatch(0, 9, 2, 1), StateBatch(20, 29, 2, 1)))
    assert engine.window.start_offset == 10, "as far as the gap"
    assert engine.window.next_fetch_offset() == 10
    assert acquire(engine, "m", 10, 39, size=10) == [(10, 19, 1), (30, 39, 1)]
    settle(engine, "m", 10, 19, ACCEPT)
    assert engine.window.start_offset == 30


def test_a_gap_ends_where_the_log_begins_now() -> None:
    engine = started(0, (StateBatch(10, 19, 0, 1),))
    assert engine.window.next_fetch_offset() == 0
    engine.window.log_start_moved(5)
    assert engine.window.next_fetch_offset() == 5


@pytest.mark.parametrize("wrong", [StateBatch(-1, 3, 0, 1), StateBatch(3, 2, 0, 1), StateBatch(0, 3, 9, 1)])
def test_a_state_that_cannot_be_fails_the_share_partition(wrong: StateBatch) -> None:
    engine = SharePartition(0, Limits())
    with refused(Errors.UNKNOWN_SERVER_ERROR, "Failed to initialize"):
        engine.initialize(0, 0, [wrong])
    assert engine.state is State.FAILED
    with refused(Errors.UNKNOWN_SERVER_ERROR, "failed to load"):
        engine.check_active()


def test_a_share_partition_that_is_not_there_yet() -> None:
    engine = SharePartition(0, Limits())
    assert not engine.check_active()
    engine.state = State.INITIALIZING
    with refused(Errors.LEADER_NOT_AVAILABLE, "already initializing"):
        engine.check_active()
    engine.state = State.FENCED
    with refused(Errors.LEADER_NOT_AVAILABLE, "fenced"):
        engine.check_active()


# the log's start moves


def test_what_is_gone_from_the_log_is_archived_and_leases_run_on() -> None:
    engine = started()
    acquire(engine, "a", 0, 4)
    acquire(engine, "b", 5, 14)
    settle(engine, "a", 0, 4, RELEASE)
    engine.window.log_start_moved(8)
    assert states(engine) == [(4, "ARCHIVED", 1, ""), (14, "ACQUIRED", 1, "b")]
    changes = say(engine, "b", 5, 14, RELEASE)
    assert batches(changes) == [(8, 14, 0, 1)]
    engine.complete(changes, commit=True)
    assert engine.window.next_fetch_offset() == 8


def test_a_lease_before_the_logs_start_ends_archived() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    engine.window.log_start_moved(5)
    assert batches(engine.release("m")) == [(0, 4, 4, 1), (5, 9, 0, 1)]


def test_a_failed_write_of_what_has_gone_from_the_log() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    changes = say(engine, "m", 0, 9, ACCEPT)
    engine.window.log_start_moved(5)
    engine.expire(LOCK_MS)
    engine.complete(changes, commit=False)
    assert [row[:2] for row in states(engine)] == [(4, "ARCHIVED"), (9, "AVAILABLE")]
    assert engine.window.next_fetch_offset() == 5


def test_a_batch_that_the_logs_start_cuts_is_leased_from_there() -> None:
    engine = started()
    acquire(engine, "m", 0, 3)
    acquire(engine, "m", 4, 5)
    engine.window.log_start_moved(7)
    assert acquire(engine, "m", 6, 9, asked=7, records=1, mode=RECORD_LIMIT) == [(7, 7, 1)]
    assert engine.window.next_fetch_offset() == 8


def test_after_an_older_lease_too() -> None:
    engine = started(0, (StateBatch(5, 5, 0, 1),))
    engine.window.log_start_moved(9)
    assert acquire(engine, "m", 5, 12, asked=9, records=1, mode=RECORD_LIMIT) == [(9, 9, 1)]


def test_an_empty_share_partition_follows_the_log() -> None:
    engine = started(3)
    engine.window.log_start_moved(9)
    assert (engine.window.start_offset, engine.window.end_offset, engine.window.next_fetch_offset()) == (9, 9, 9)


# state batches


@pytest.mark.parametrize(
    ("so_far", "new", "start", "expected"),
    [
        ([(0, 9, 0, 1)], [(3, 4, 2, 1)], 0, [(0, 2, 0, 1), (3, 4, 2, 1), (5, 9, 0, 1)]),
        ([(0, 9, 0, 1)], [(10, 19, 0, 1)], 0, [(0, 19, 0, 1)]),
        ([(0, 9, 2, 1)], [(0, 9, 0, 2)], 0, [(0, 9, 0, 2)]),
        ([(0, 9, 2, 1)], [(0, 9, 0, 1)], 0, [(0, 9, 2, 1)]),
        ([(0, 9, 0, 1), (20, 29, 0, 1)], [(5, 24, 4, 2)], 0, [(0, 4, 0, 1), (5, 24, 4, 2), (25, 29, 0, 1)]),
        ([(0, 9, 0, 1)], [(20, 29, 0, 1)], 5, [(5, 9, 0, 1), (20, 29, 0, 1)]),
        ([(0, 9, 0, 1)], [], 10, []),
        ([], [(7, 9, 0, 1)], -1, [(7, 9, 0, 1)]),
    ],
    ids=[
        "inside",
        "neighbours",
        "higher count",
        "higher state",
        "across",
        "cut at the start",
        "after the start",
        "no start yet",
    ],
)
def test_combined_batches(
    so_far: list[tuple[int, int, int, int]],
    new: list[tuple[int, int, int, int]],
    start: int,
    expected: list[tuple[int, ...]],
) -> None:
    assert [
        tuple(one) for one in combine([StateBatch(*row) for row in so_far], [StateBatch(*row) for row in new], start)
    ] == expected


BATCH = st.tuples(st.integers(0, 40), st.integers(0, 9), st.sampled_from([0, 2, 4]), st.integers(1, 5))


@given(st.lists(BATCH), st.lists(BATCH), st.integers(-1, 45))
def test_combined_batches_say_of_each_offset_what_its_best_batch_says(
    so_far: list[tuple[int, int, int, int]], new: list[tuple[int, int, int, int]], start: int
) -> None:
    given_ = [StateBatch(first, first + more, state, count) for first, more, state, count in so_far + new]
    out = combine(given_[: len(so_far)], given_[len(so_far) :], start)
    for before, after in zip(out, out[1:], strict=False):
        assert before.last < after.first
        assert len(given_) == 1 or before.last + 1 < after.first or before[2:] != after[2:]
    for offset in range(50):
        covering = [(b.delivery_count, b.state) for b in given_ if b.first <= offset <= b.last and offset >= start]
        said = [(b.delivery_count, b.state) for b in out if b.first <= offset <= b.last]
        assert said == ([max(covering)] if covering else [])


def test_the_states_have_kafkas_numbers() -> None:
    assert [int(state) for state in (AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED)] == [0, 1, 2, 3, 4]


@pytest.mark.long
@pytest.mark.parametrize("seeds", in_turn(spans(0, 100, quick=4, each=25)))
def test_histories_hold(seeds: range) -> None:
    """More of them, and deliberate bugs, in `test_sims`."""
    for seed in seeds:
        sim_share.run(seed)


def made(engine: SharePartition) -> int:
    """How many states of single records there are."""
    return sum(len(span.each) for span in engine.window.spans)


@pytest.mark.parametrize("mode", [BATCH_OPTIMIZED, RECORD_LIMIT])
def test_a_stored_span_of_two_billion_records_is_leased_in_parts(mode: int) -> None:
    """Nothing leases so many together, but a client can write such a state."""
    last = 2**31 - 2
    engine = started(0, (StateBatch(0, last, 0, 1),), max_in_flight=2**32)
    taken = acquire(engine, "a", 0, last, mode=mode, records=10)
    assert taken[0][0] == 0
    assert taken[-1][1] < SPLIT_OFFSETS_MAX
    settle(engine, "a", 3, 4, REJECT)
    settle(engine, "a", 0, 0, ACCEPT)
    assert made(engine) <= SPLIT_OFFSETS_MAX
    assert engine.window.end_offset == last
    assert engine.window.start_offset == 1
    acquire(engine, "b", taken[-1][1] + 1, last, mode=mode, records=10)
    assert made(engine) <= 2 * SPLIT_OFFSETS_MAX


def test_a_log_start_within_a_stored_span_of_two_billion_records_cuts_it() -> None:
    last = 2**31 - 2
    engine = started(0, (StateBatch(0, last, 0, 1),), max_in_flight=2**32)
    engine.window.log_start_moved(1000)
    assert made(engine) == 0
    assert [(span.first, span.last) for span in engine.window.spans] == [(0, 999), (1000, last)]
    assert acquire(engine, "a", 1000, last)[0][0] == 1000
