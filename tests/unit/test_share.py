"""The share-partition engine: the examples of seed 000 with their numbers, and what the seed promises.

| invariant or failure mode of the seed                            | held by                                                            |
|------------------------------------------------------------------|--------------------------------------------------------------------|
| at-least-once                                                    | sim_share.Sim.settle                                               |
| nothing that was acknowledged comes back                         | sim_share.Queue.delivered, check_engine                            |
| bounded redelivery                                               | sim_share.Queue.delivered; test_a_record_is_delivered_five_times   |
| bounded in-flight                                                | test_no_more_records_are_leased_than_the_limit                     |
| a delivery count never goes down                                 | sim_share.Queue.delivered                                          |
| durable terminal state                                           | sim_share.check_replay; test_what_a_leader_reads_is_where_it_goes_on |
| persist before commit                                            | test_an_acknowledgement_counts_when_it_is_written                  |
| the start offset moves over a prefix only, and never back        | test_one_stuck_record_pins_the_start_offset; sim_share.Sim.check   |
| a consumer crashes or is slow                                    | test_a_lock_that_runs_out; test_clients_share                      |
| a coordinator's write fails                                      | test_a_failed_write_...; test_share_broker                         |
| a leader changes; the read gap                                   | test_what_a_leader_reads_...; test_a_gap_...                       |
| compaction                                                       | test_records_that_vanished_from_the_log_are_archived               |
| a fenced state epoch                                             | test_share_broker.test_a_fenced_write_reads_the_state_anew         |
| a duplicate acknowledgement                                      | test_a_second_acknowledgement_while_the_first_is_written           |
| a dead-letter queue that cannot be written                       | test_share_dead_letters                                            |
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.coordinator.share.acquiring import BATCH_OPTIMIZED, RECORD_LIMIT, AbortedRange, Acquired, LogBatch, aborted_batches
from ottla.coordinator.share.batches import ACKNOWLEDGED, ACQUIRED, ARCHIVED, ARCHIVING, AVAILABLE, StateBatch, combine
from ottla.coordinator.share.partition import CLIENT_REJECT, COUNT_EXCEEDED, Acknowledgement, Change, SharePartition, State
from ottla.protocol.errors import ApiError, Errors

from .. import sim_share

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
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
    for span in engine.spans:
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


# the seed's example


def the_example() -> SharePartition:
    """100..119 acknowledged; 120..129 with M1 for the second time; 130..139 with M2, who gave 131 back."""
    engine = started(100)
    assert acquire(engine, "M1", 100, 119) == [(100, 119, 1)]
    assert acquire(engine, "M1", 120, 129) == [(120, 129, 1)]
    assert acquire(engine, "M2", 130, 139) == [(130, 139, 1)]
    settle(engine, "M1", 120, 129, RELEASE)
    assert acquire(engine, "M1", 120, 129) == [(120, 129, 2)]
    settle(engine, "M2", 131, 131, RELEASE)
    return engine


def test_the_cache_of_the_seed() -> None:
    engine = the_example()
    say(engine, "M1", 100, 119, ACCEPT)  # not written yet: the start offset stays
    assert states(engine) == [
        (119, "ACKNOWLEDGED", 1, ""),
        (129, "ACQUIRED", 2, "M1"),
        (130, "ACQUIRED", 1, "M2"),
        (131, "AVAILABLE", 1, ""),
        (139, "ACQUIRED", 1, "M2"),
    ]
    assert (engine.start_offset, engine.end_offset) == (100, 139)
    assert engine.find_next
    assert engine.next_fetch_offset() == 131


def test_only_the_batch_that_was_acknowledged_in_part_has_states_by_offset() -> None:
    engine = the_example()
    assert [(span.first, span.whole is None) for span in engine.spans] == [(100, False), (120, False), (130, True)]


def test_the_start_offset_goes_into_a_batch_that_is_done_in_part() -> None:
    engine = the_example()
    settle(engine, "M1", 100, 119, ACCEPT)
    assert engine.start_offset == 120
    settle(engine, "M1", 120, 129, ACCEPT)
    settle(engine, "M2", 130, 130, ACCEPT)
    assert (engine.start_offset, [span.first for span in engine.spans]) == (131, [130])


def test_when_all_is_done_the_cache_is_empty() -> None:
    engine = started(100)
    acquire(engine, "M1", 100, 109)
    settle(engine, "M1", 100, 109, ACCEPT)
    assert (engine.start_offset, engine.end_offset, len(engine.spans), engine.complete_count) == (110, 110, 0, 0)
    assert engine.next_fetch_offset() == 110


def test_one_stuck_record_pins_the_start_offset() -> None:
    engine = started()
    acquire(engine, "slow", 0, 0)
    acquire(engine, "m", 1, 1000)
    settle(engine, "m", 1, 1000, ACCEPT)
    assert (engine.start_offset, engine.complete_count) == (0, 1000)
    settle(engine, "slow", 0, 0, ACCEPT)
    assert (engine.start_offset, engine.complete_count) == (1001, 0)


# acquiring


def test_whole_batches_are_acquired_and_cut_between_batches() -> None:
    """Batch size 500 for batches of 200 records: each piece is closed with the batch that fills it."""
    assert acquire(started(), "m", 0, 1999, size=200, batch_size=500, records=2000) == [(0, 599, 1), (600, 1199, 1), (1200, 1799, 1), (1800, 1999, 1)]


def test_max_records_ends_with_the_batch_it_lies_in() -> None:
    assert acquire(started(), "m", 0, 999, size=100, records=150) == [(0, 199, 1)]


def test_record_limit_gives_exactly_so_many() -> None:
    engine = started()
    assert acquire(engine, "m", 0, 999, size=100, records=150, mode=RECORD_LIMIT) == [(0, 149, 1)]
    assert states(engine) == [(149, "ACQUIRED", 1, "m"), (199, "AVAILABLE", 0, "")]
    assert engine.next_fetch_offset() == 150
    assert acquire(engine, "other", 100, 299, size=100, asked=150, records=20, mode=RECORD_LIMIT) == [(150, 169, 1)]


def test_no_more_records_are_leased_than_the_limit() -> None:
    engine = started(max_in_flight=100)
    assert acquire(engine, "m", 0, 999, size=10) == [(0, 99, 1)]
    assert not engine.can_acquire()
    assert acquire(engine, "m", 100, 199) == []
    settle(engine, "m", 0, 9, RELEASE)
    assert engine.can_acquire()
    assert acquire(engine, "m", 0, 999, size=10) == [(0, 9, 2)], "those in flight may be delivered again"


def test_two_members_share_a_partition() -> None:
    engine = started()
    assert acquire(engine, "a", 0, 9) == [(0, 9, 1)]
    assert engine.next_fetch_offset() == 10
    assert acquire(engine, "b", 0, 19, size=10) == [(10, 19, 1)]


@pytest.mark.parametrize(
    ("records", "found"),
    [(0, [(0, 9)]), (10, []), (10, [(0, 4)])],
    ids=["no records wanted", "nothing fetched", "all of it lies before the start offset"],
)
def test_nothing_is_acquired(records: int, found: list[tuple[int, int]]) -> None:
    assert started(5).acquire("m", BATCH_OPTIMIZED, 10, records, 0, [LogBatch(*one) for one in found], 0) == []


def test_records_that_vanished_from_the_log_are_archived() -> None:
    """Compaction took 0..9, which were available again."""
    engine = started()
    acquire(engine, "m", 0, 9)
    settle(engine, "m", 0, 9, RELEASE)
    assert acquire(engine, "m", 10, 19, asked=0) == [(10, 19, 1)]
    assert states(engine)[0] == (9, "ARCHIVED", 1, "")
    settle(engine, "m", 10, 19, ACCEPT)
    assert engine.start_offset == 20


def test_records_that_are_offered_again_often_come_in_ever_smaller_groups() -> None:
    """Five deliveries at most: from the third on a batch of 8 is halved, and a record on its last delivery comes alone."""
    engine = started()
    sizes = []
    for _ in range(5):
        taken = acquire(engine, "m", 0, 7)
        sizes.append(sum(last - first + 1 for first, last, _ in taken))
        for first, last, _ in taken:
            settle(engine, "m", first, last, RELEASE)
    assert sizes == [8, 8, 8, 4, 1]


def test_the_records_of_aborted_transactions_are_archived_and_not_given() -> None:
    """Producer 7 aborts what it wrote from 2 on; its marker is at 6. Producer 8 commits."""
    log = [LogBatch(0, 1, 7, True), LogBatch(2, 3, 7, True), LogBatch(4, 5, 8, True), LogBatch(6, 6, 7, True, True), LogBatch(7, 7, 7, True)]
    engine = started()
    taken = engine.acquire("m", BATCH_OPTIMIZED, 1000, 1000, 0, log, 0, [AbortedRange(7, 2)])
    assert taken == [Acquired(0, 1, 1), Acquired(4, 7, 1)]
    assert states(engine) == [(1, "ACQUIRED", 1, "m"), (3, "ARCHIVED", 1, ""), (7, "ACQUIRED", 1, "m")]
    assert engine.complete_count == 2
    settle(engine, "m", 0, 1, ACCEPT)
    assert engine.start_offset == 4


def test_which_batches_belong_to_aborted_transactions() -> None:
    log = [
        LogBatch(0, 0),
        LogBatch(1, 1, 7, True),
        LogBatch(2, 2, 7),
        LogBatch(3, 3, 7, True, True),
        LogBatch(4, 4, 7, True),
        LogBatch(5, 5, 7, True, True),
    ]
    assert aborted_batches(log, [AbortedRange(7, 1)]) == [log[1]]
    assert aborted_batches(log, [AbortedRange(7, 4), AbortedRange(7, 1)]) == [log[1], log[4]]


# acknowledging


@pytest.mark.parametrize(("kind", "state"), [(GAP, "ARCHIVED"), (ACCEPT, "ACKNOWLEDGED"), (RELEASE, "AVAILABLE"), (REJECT, "ARCHIVED")])
def test_what_each_type_makes_of_a_record(kind: int, state: str) -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    changes = say(engine, "m", 5, 5, kind)
    assert [(name, count) for _, name, count, _ in states(engine)][1] == (state, 1)
    assert batches(changes) == [(5, 5, {"ARCHIVED": 4, "ACKNOWLEDGED": 2, "AVAILABLE": 0}[state], 1)]


def test_a_type_for_each_record() -> None:
    engine = started()
    acquire(engine, "m", 0, 4)
    changes = say(engine, "m", 0, 4, ACCEPT, ACCEPT, RELEASE, GAP, REJECT)
    assert batches(changes) == [(0, 1, 2, 1), (2, 2, 0, 1), (3, 4, 4, 1)]


def test_an_acknowledgement_counts_when_it_is_written() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    changes = say(engine, "m", 0, 4, ACCEPT)
    assert engine.start_offset == 0
    engine.complete(changes, commit=True)
    assert engine.start_offset == 5


def test_a_failed_write_leaves_the_records_with_their_holder() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    engine.complete(say(engine, "m", 0, 4, ACCEPT), commit=False)
    assert states(engine) == [(9, "ACQUIRED", 1, "m")]
    assert (engine.start_offset, engine.complete_count) == (0, 0)


@pytest.mark.parametrize(("limit", "state"), [(5, AVAILABLE), (1, ARCHIVED)])
def test_a_failed_write_of_a_lock_that_ran_out_meanwhile(limit: int, state: object) -> None:
    engine = started(max_delivery_count=limit)
    acquire(engine, "m", 0, 9)
    changes = say(engine, "m", 0, 9, ACCEPT)
    assert engine.expire(LOCK_MS) == [], "what is being written is left"
    engine.complete(changes, commit=False)
    assert {span.at(3).state for span in engine.spans} == {state}


def test_a_second_acknowledgement_while_the_first_is_written() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    changes = say(engine, "m", 0, 9, RELEASE)
    with refused(Errors.INVALID_RECORD_STATE, "not in the acquired state"):
        say(engine, "m", 0, 9, ACCEPT)
    assert engine.next_fetch_offset() == 10, "nor is it given to others yet"
    engine.complete(changes, commit=True)
    assert engine.next_fetch_offset() == 0


def test_one_wrong_part_of_an_acknowledgement_undoes_all_of_it() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    acquire(engine, "other", 10, 19)
    before = states(engine)
    with refused(Errors.INVALID_RECORD_STATE, "not the owner"):
        engine.acknowledge("m", [Acknowledgement(0, 4, [ACCEPT]), Acknowledgement(10, 11, [ACCEPT])], 0)
    assert states(engine) == before
    assert engine.complete_count == 0


@pytest.mark.parametrize(
    ("first", "last", "types", "code", "text"),
    [
        (0, 9, [5], Errors.INVALID_REQUEST, "Invalid acknowledge type"),
        (0, 12, [ACCEPT], Errors.INVALID_REQUEST, "last offset in request is past acquired records"),
        (20, 21, [ACCEPT], Errors.INVALID_REQUEST, "first offset in request is past acquired records"),
        (3, 3, [RENEW], Errors.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled"),
    ],
)
def test_what_is_refused(first: int, last: int, types: list[int], code: int, text: str) -> None:
    engine = started(may_renew=False)
    acquire(engine, "m", 0, 9)
    with refused(code, text):
        engine.acknowledge("m", [Acknowledgement(first, last, types)], 0)


def test_offsets_before_the_first_lease_are_refused() -> None:
    engine = started(batches=(StateBatch(8, 9, 0, 1),))
    with refused(Errors.INVALID_RECORD_STATE, "offsets are not found in the cache"):
        say(engine, "m", 6, 9, ACCEPT)


def test_what_lies_before_the_start_offset_is_passed_over() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    settle(engine, "m", 0, 4, ACCEPT)
    assert say(engine, "m", 0, 4, ACCEPT) == []
    assert batches(say(engine, "m", 0, 9, ACCEPT)) == [(5, 9, 2, 1)]


def test_a_session_that_ends_gives_back_what_it_holds() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    acquire(engine, "other", 10, 19)
    say(engine, "m", 3, 3, ACCEPT)
    changes = engine.release("m")
    assert batches(changes) == [(0, 2, 0, 1), (4, 9, 0, 1)]
    engine.complete(changes, commit=True)
    assert engine.next_fetch_offset() == 0
    assert states(engine)[-1] == (19, "ACQUIRED", 1, "other")


# locks


def test_a_lock_that_runs_out_makes_the_records_available() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    assert engine.next_deadline_ms() == LOCK_MS
    assert engine.expire(LOCK_MS - 1) == []
    assert batches(engine.expire(LOCK_MS)) == [(0, 9, 0, 1)]
    assert (engine.next_fetch_offset(), engine.lock_timeouts) == (0, 10)
    with refused(Errors.INVALID_RECORD_STATE, "not in the acquired state"):
        say(engine, "m", 0, 9, ACCEPT, now_ms=LOCK_MS)


def test_an_acknowledgement_ends_the_lock() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    settle(engine, "m", 0, 9, RELEASE)
    acquire(engine, "other", 0, 9, now_ms=20_000)
    assert engine.expire(LOCK_MS) == []
    assert batches(engine.expire(50_000)) == [(0, 9, 0, 2)]


def test_a_renewed_lock_runs_from_then_on() -> None:
    """KIP-1222: the record stays with its holder, its count stays, nothing is written."""
    engine = started()
    acquire(engine, "m", 0, 9)
    assert say(engine, "m", 0, 9, RENEW, now_ms=20_000) == []
    assert engine.expire(49_999) == []
    assert states(engine) == [(9, "ACQUIRED", 1, "m")]
    assert batches(engine.expire(50_000)) == [(0, 9, 0, 1)]


def test_a_record_is_delivered_five_times_and_then_archived() -> None:
    engine = started()
    for count in range(1, 6):
        assert acquire(engine, "m", 0, 0, now_ms=count * LOCK_MS) == [(0, 0, count)]
        changes = engine.expire((count + 1) * LOCK_MS)
        assert batches(changes) == [(0, 0, 4 if count == 5 else 0, count)]
    engine.advance_start()
    assert engine.start_offset == 1


# dead letters


@pytest.mark.parametrize("kind", [REJECT, RELEASE])
def test_a_record_for_the_dead_letter_queue_waits_in_archiving(kind: int) -> None:
    engine = started(has_dlq=True, max_delivery_count=1 if kind == RELEASE else 5)
    acquire(engine, "m", 0, 9)
    letters = settle(engine, "m", 4, 4, kind)
    assert [(letter.first, letter.last, letter.state, letter.cause) for letter in letters] == [
        (4, 4, ARCHIVING, CLIENT_REJECT if kind == REJECT else COUNT_EXCEEDED)
    ]
    settle(engine, "m", 0, 3, ACCEPT)
    assert engine.start_offset == 4, "it waits for the queue"
    assert engine.dead_lettered(letters[0]) == StateBatch(4, 4, 4, 1)
    assert engine.advance_start()
    assert engine.start_offset == 5


def test_a_lock_that_runs_out_for_the_last_time_makes_a_dead_letter() -> None:
    engine = started(has_dlq=True, max_delivery_count=1)
    acquire(engine, "m", 0, 9)
    (change,) = engine.expire(LOCK_MS)
    assert (change.batch, change.cause) == (StateBatch(0, 9, 3, 1), COUNT_EXCEEDED)


@pytest.mark.parametrize(("count", "cause"), [(1, CLIENT_REJECT), (5, COUNT_EXCEEDED)])
def test_dead_letters_are_resumed_by_the_next_leader(count: int, cause: str) -> None:
    engine = SharePartition(1, Limits(has_dlq=True))
    (letter,) = engine.initialize(0, 0, [StateBatch(0, 2, 3, count), StateBatch(3, 5, 2, 1)])
    assert (letter.first, letter.last, letter.cause) == (0, 2, cause)
    engine.dead_lettered(letter)
    assert engine.advance_start()
    assert engine.start_offset == 6


# where a leader goes on


def test_what_a_leader_reads_is_where_it_goes_on() -> None:
    engine = started(100, (StateBatch(100, 119, 0, 2), StateBatch(120, 129, 2, 1), StateBatch(130, 134, 4, 5)))
    assert (engine.start_offset, engine.end_offset, engine.complete_count) == (100, 134, 15)
    assert engine.next_fetch_offset() == 100
    assert acquire(engine, "m", 100, 199, size=100) == [(100, 119, 3), (135, 199, 1)]


def test_a_gap_in_what_was_read_is_acquired_before_the_start_offset_passes_it() -> None:
    """Records that were leased to the old leader's members are in no batch."""
    engine = started(0, (StateBatch(0, 9, 2, 1), StateBatch(20, 29, 2, 1)))
    assert engine.start_offset == 10, "as far as the gap"
    assert engine.next_fetch_offset() == 10
    assert acquire(engine, "m", 10, 39, size=10) == [(10, 19, 1), (30, 39, 1)]
    settle(engine, "m", 10, 19, ACCEPT)
    assert engine.start_offset == 30


def test_a_gap_ends_where_the_log_begins_now() -> None:
    engine = started(0, (StateBatch(10, 19, 0, 1),))
    assert engine.next_fetch_offset() == 0
    engine.log_start_moved(5)
    assert engine.next_fetch_offset() == 5


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
    engine.log_start_moved(8)
    assert states(engine) == [(4, "ARCHIVED", 1, ""), (14, "ACQUIRED", 1, "b")]
    changes = say(engine, "b", 5, 14, RELEASE)
    assert batches(changes) == [(8, 14, 0, 1)]
    engine.complete(changes, commit=True)
    assert engine.next_fetch_offset() == 8


def test_a_lease_before_the_logs_start_ends_archived() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    engine.log_start_moved(5)
    assert batches(engine.release("m")) == [(0, 4, 4, 1), (5, 9, 0, 1)]


def test_a_failed_write_of_what_has_gone_from_the_log() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    changes = say(engine, "m", 0, 9, ACCEPT)
    engine.log_start_moved(5)
    engine.expire(LOCK_MS)
    engine.complete(changes, commit=False)
    assert [row[:2] for row in states(engine)] == [(4, "ARCHIVED"), (9, "AVAILABLE")]
    assert engine.next_fetch_offset() == 5


def test_a_batch_that_the_logs_start_cuts_is_leased_from_there() -> None:
    engine = started()
    acquire(engine, "m", 0, 3)
    acquire(engine, "m", 4, 5)
    engine.log_start_moved(7)
    assert acquire(engine, "m", 6, 9, asked=7, records=1, mode=RECORD_LIMIT) == [(7, 7, 1)]
    assert engine.next_fetch_offset() == 8


def test_behind_an_older_lease_too() -> None:
    engine = started(0, (StateBatch(5, 5, 0, 1),))
    engine.log_start_moved(9)
    assert acquire(engine, "m", 5, 12, asked=9, records=1, mode=RECORD_LIMIT) == [(9, 9, 1)]


def test_an_empty_share_partition_follows_the_log() -> None:
    engine = started(3)
    engine.log_start_moved(9)
    assert (engine.start_offset, engine.end_offset, engine.next_fetch_offset()) == (9, 9, 9)


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
    ids=["inside", "neighbours", "higher count", "higher state", "across", "cut at the start", "behind the start", "no start yet"],
)
def test_combined_batches(
    so_far: list[tuple[int, int, int, int]], new: list[tuple[int, int, int, int]], start: int, expected: list[tuple[int, ...]]
) -> None:
    assert [tuple(one) for one in combine([StateBatch(*row) for row in so_far], [StateBatch(*row) for row in new], start)] == expected


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


@pytest.mark.parametrize("first", range(0, 100, 50))
def test_histories_hold(first: int) -> None:
    """More of them, and deliberate bugs, in `test_sims`."""
    for seed in range(first, first + 50):
        sim_share.run(seed)
