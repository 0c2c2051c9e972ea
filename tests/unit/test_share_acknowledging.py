"""The share-partition engine (KIP-932): acknowledgements, locks and dead letters."""

from __future__ import annotations

import pytest
from ottla.coordinator.share.acknowledge_types import ACCEPT, GAP, REJECT, RELEASE, RENEW
from ottla.coordinator.share.batches import ARCHIVED, ARCHIVING, AVAILABLE, StateBatch
from ottla.coordinator.share.partition import (
    CLIENT_REJECT,
    COUNT_EXCEEDED,
    Acknowledgement,
    SharePartition,
)
from ottla.protocol.errors import Errors

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

# acknowledging


@pytest.mark.parametrize(
    ("kind", "state"), [(GAP, "ARCHIVED"), (ACCEPT, "ACKNOWLEDGED"), (RELEASE, "AVAILABLE"), (REJECT, "ARCHIVED")]
)
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


def test_records_with_different_delivery_counts_are_different_batches() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    settle(engine, "m", 0, 4, RELEASE)
    acquire(engine, "m", 0, 4)
    assert batches(say(engine, "m", 0, 9, ACCEPT)) == [(0, 4, 2, 2), (5, 9, 2, 1)]


def test_records_go_to_the_dead_letter_queue_with_the_cause_of_each() -> None:
    engine = started(max_delivery_count=1, has_dlq=True)
    acquire(engine, "m", 0, 2)
    changes = say(engine, "m", 0, 2, REJECT, RELEASE, RELEASE)
    assert batches(changes) == [(0, 0, 3, 1), (1, 2, 3, 1)]
    assert [change.cause for change in changes] == [CLIENT_REJECT, COUNT_EXCEEDED]


def test_a_failed_write_of_a_whole_span_and_a_part_of_the_next_counts_nothing() -> None:
    engine = started()
    acquire(engine, "m", 0, 4)
    acquire(engine, "m", 5, 9)
    changes = engine.acknowledge("m", [Acknowledgement(0, 4, (ACCEPT,)), Acknowledgement(5, 5, (ACCEPT,))], 0)
    assert engine.window.complete_count == 6
    engine.complete(changes, commit=False)
    assert engine.window.complete_count == 0
    assert states(engine) == [(9, "ACQUIRED", 1, "m")]


def test_a_record_that_is_not_held_cannot_be_renewed_with_others() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    settle(engine, "m", 5, 5, RELEASE)
    with refused(Errors.INVALID_RECORD_STATE, "The offset is not acquired"):
        say(engine, "m", 0, 9, RENEW)
    with refused(Errors.INVALID_RECORD_STATE, "Member is not the owner of offset"):
        say(engine, "n", 0, 4, RENEW)


def test_a_lock_that_runs_out_releases_what_the_log_still_has() -> None:
    """Of a whole span, whose first records the log has removed meanwhile."""
    engine = started()
    acquire(engine, "m", 0, 9)
    engine.window.log_start_moved(5)
    assert batches(engine.expire(LOCK_MS)) == [(0, 4, 4, 1), (5, 9, 0, 1)]


def test_an_acknowledgement_counts_when_it_is_written() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    changes = say(engine, "m", 0, 4, ACCEPT)
    assert engine.window.start_offset == 0
    engine.complete(changes, commit=True)
    assert engine.window.start_offset == 5


def test_the_start_offset_waits_for_the_write_of_each_record() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    first, second = say(engine, "m", 0, 0, ACCEPT), say(engine, "m", 1, 1, ACCEPT)
    engine.complete(first, commit=True)
    assert engine.window.start_offset == 1
    engine.complete(second, commit=True)
    assert engine.window.start_offset == 2


def test_only_its_holders_can_make_room_unless_a_write_is_under_way() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    assert (engine.window.holders(["m", "x"]), engine.window.holders(["n"])) == ({"m"}, None)
    acquire(engine, "n", 10, 19)
    assert (engine.window.holders(["m", "n"]), engine.window.holders(["m"])) == ({"m", "n"}, None)
    changes = say(engine, "m", 0, 0, ACCEPT)
    assert engine.window.holders(["m", "n"]) is None
    engine.complete(changes, commit=True)
    assert engine.window.holders(["m", "n"]) == {"m", "n"}
    assert engine.window.holders(["n"]) is None


def test_a_failed_write_leaves_the_records_with_their_holder() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    engine.complete(say(engine, "m", 0, 4, ACCEPT), commit=False)
    assert states(engine) == [(9, "ACQUIRED", 1, "m")]
    assert (engine.window.start_offset, engine.window.complete_count) == (0, 0)


@pytest.mark.parametrize("last", [4, 9], ids=["a part of a span", "a whole span"])
def test_a_lock_that_ran_out_during_a_write_does_not_end_the_next_one(last: int) -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    changes = say(engine, "m", 0, last, RELEASE)
    engine.expire(LOCK_MS)
    engine.complete(changes, commit=True)
    acquire(engine, "n", 0, last, now_ms=LOCK_MS)
    engine.complete(say(engine, "n", 0, last, ACCEPT, now_ms=LOCK_MS), commit=False)
    assert states(engine)[0] == (last, "ACQUIRED", 2, "n")


@pytest.mark.parametrize(("limit", "state"), [(5, AVAILABLE), (1, ARCHIVED)])
def test_a_failed_write_of_a_lock_that_ran_out_meanwhile(limit: int, state: object) -> None:
    engine = started(max_delivery_count=limit)
    acquire(engine, "m", 0, 9)
    changes = say(engine, "m", 0, 9, ACCEPT)
    assert engine.expire(LOCK_MS) == [], "what is being written is left"
    engine.complete(changes, commit=False)
    assert {span.at(3).state for span in engine.window.spans} == {state}


def test_a_second_acknowledgement_while_the_first_is_written() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    changes = say(engine, "m", 0, 9, RELEASE)
    with refused(Errors.INVALID_RECORD_STATE, "not in the acquired state"):
        say(engine, "m", 0, 9, ACCEPT)
    assert engine.window.next_fetch_offset() == 10, "nor is it given to others yet"
    engine.complete(changes, commit=True)
    assert engine.window.next_fetch_offset() == 0


def test_one_wrong_part_of_an_acknowledgement_undoes_all_of_it() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    acquire(engine, "other", 10, 19)
    before = states(engine)
    with refused(Errors.INVALID_RECORD_STATE, "not the owner"):
        engine.acknowledge("m", [Acknowledgement(0, 4, [ACCEPT]), Acknowledgement(10, 11, [ACCEPT])], 0)
    assert states(engine) == before
    assert engine.window.complete_count == 0


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
    assert engine.window.next_fetch_offset() == 0
    assert states(engine)[-1] == (19, "ACQUIRED", 1, "other")


# locks


def test_a_lock_that_runs_out_makes_the_records_available() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    assert engine.window.next_deadline_ms() == LOCK_MS
    assert engine.expire(LOCK_MS - 1) == []
    assert batches(engine.expire(LOCK_MS)) == [(0, 9, 0, 1)]
    assert (engine.window.next_fetch_offset(), engine.lock_timeouts) == (0, 10)
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
    engine.window.advance_start()
    assert engine.window.start_offset == 1


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
    assert engine.window.start_offset == 4, "it waits for the queue"
    assert engine.dead_lettered(letters[0]) == StateBatch(4, 4, 4, 1)
    assert engine.window.advance_start()
    assert engine.window.start_offset == 5


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
    assert engine.window.advance_start()
    assert engine.window.start_offset == 6
