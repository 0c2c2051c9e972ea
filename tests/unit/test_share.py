"""The share-partition engine (KIP-932): leases, acknowledgements and what a failure leaves, with exact numbers.

Which test or check of the simulator (`tests/sim/share.py`) holds each promise:

- delivery at least once: `Sim.settle`
- nothing that was acknowledged comes back: `Queue.delivered`, `check_engine`
- bounded redelivery: `Queue.delivered`, test_a_record_is_delivered_five_times
- bounded number of records in flight: test_no_more_records_are_leased_than_the_limit
- a delivery count never goes down: `Queue.delivered`
- a terminal state is durable: `check_replay`, test_what_a_leader_reads_is_where_it_goes_on
- an acknowledgement counts once it is written: test_an_acknowledgement_counts_when_it_is_written
- the start offset moves over a prefix only, and never back: test_one_stuck_record_pins_the_start_offset, `Sim.check`
- a consumer crashes or is slow: test_a_lock_that_runs_out, tests/clients/test_share.py
- a coordinator's write fails: test_a_failed_write_..., tests/world/test_share_persister.py
- a leader changes, and the log has a gap: test_what_a_leader_reads_..., test_a_gap_...
- compaction: test_records_that_vanished_from_the_log_are_archived
- a fenced state epoch: test_a_fenced_write_reads_the_state_again (tests/world/test_share_persister.py)
- a duplicate acknowledgement: test_a_second_acknowledgement_while_the_first_is_written
- a dead-letter queue that cannot be written: tests/world/test_share_dead_letters.py
"""

from __future__ import annotations

import pytest
from ottla.coordinator.share.acknowledge_types import ACCEPT, RELEASE
from ottla.coordinator.share.acquiring import (
    BATCH_OPTIMIZED,
    RECORD_LIMIT,
    AbortedRange,
    Acquired,
    LogBatch,
    aborted_batches,
)
from ottla.coordinator.share.partition import (
    Acknowledgement,
    SharePartition,
)
from ottla.protocol.errors import ApiError

from ..support.share_engine import (
    acquire,
    say,
    settle,
    started,
    states,
)

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
    assert (engine.window.start_offset, engine.window.end_offset) == (100, 139)
    assert engine.window.find_next
    assert engine.window.next_fetch_offset() == 131


def test_only_the_batch_that_was_acknowledged_in_part_has_states_by_offset() -> None:
    engine = the_example()
    assert [(span.first, span.whole is None) for span in engine.window.spans] == [
        (100, False),
        (120, False),
        (130, True),
    ]


def test_the_start_offset_goes_into_a_batch_that_is_done_in_part() -> None:
    engine = the_example()
    settle(engine, "M1", 100, 119, ACCEPT)
    assert engine.window.start_offset == 120
    settle(engine, "M1", 120, 129, ACCEPT)
    settle(engine, "M2", 130, 130, ACCEPT)
    assert (engine.window.start_offset, [span.first for span in engine.window.spans]) == (131, [130])


def test_when_all_is_done_the_cache_is_empty() -> None:
    engine = started(100)
    acquire(engine, "M1", 100, 109)
    settle(engine, "M1", 100, 109, ACCEPT)
    assert (
        engine.window.start_offset,
        engine.window.end_offset,
        len(engine.window.spans),
        engine.window.complete_count,
    ) == (110, 110, 0, 0)
    assert engine.window.next_fetch_offset() == 110


def test_one_stuck_record_pins_the_start_offset() -> None:
    engine = started()
    acquire(engine, "slow", 0, 0)
    acquire(engine, "m", 1, 1000)
    settle(engine, "m", 1, 1000, ACCEPT)
    assert (engine.window.start_offset, engine.window.complete_count) == (0, 1000)
    settle(engine, "slow", 0, 0, ACCEPT)
    assert (engine.window.start_offset, engine.window.complete_count) == (1001, 0)


# acquiring


def test_whole_batches_are_acquired_and_cut_between_batches() -> None:
    """Batch size 500 for batches of 200 records: each piece is closed with the batch that fills it."""
    assert acquire(started(), "m", 0, 1999, size=200, batch_size=500, records=2000) == [
        (0, 599, 1),
        (600, 1199, 1),
        (1200, 1799, 1),
        (1800, 1999, 1),
    ]


def test_max_records_ends_with_the_batch_it_lies_in() -> None:
    assert acquire(started(), "m", 0, 999, size=100, records=150) == [(0, 199, 1)]


def test_record_limit_gives_exactly_so_many() -> None:
    engine = started()
    assert acquire(engine, "m", 0, 999, size=100, records=150, mode=RECORD_LIMIT) == [(0, 149, 1)]
    assert states(engine) == [(149, "ACQUIRED", 1, "m"), (199, "AVAILABLE", 0, "")]
    assert engine.window.next_fetch_offset() == 150
    assert acquire(engine, "other", 100, 299, size=100, asked=150, records=20, mode=RECORD_LIMIT) == [(150, 169, 1)]


def test_no_more_records_are_leased_than_the_limit() -> None:
    engine = started(max_in_flight=100)
    assert acquire(engine, "m", 0, 999, size=10) == [(0, 99, 1)]
    assert not engine.window.can_acquire()
    assert acquire(engine, "m", 100, 199) == []
    settle(engine, "m", 0, 9, RELEASE)
    assert engine.window.can_acquire()
    assert acquire(engine, "m", 0, 999, size=10) == [(0, 9, 2)], "those in flight may be delivered again"


def test_two_members_share_a_partition() -> None:
    engine = started()
    assert acquire(engine, "a", 0, 9) == [(0, 9, 1)]
    assert engine.window.next_fetch_offset() == 10
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
    assert engine.window.start_offset == 20


def test_records_that_are_offered_again_often_come_in_ever_smaller_groups() -> None:
    """Five deliveries at most: from the third on a batch of 8 is halved, and a record on its last delivery comes
    alone.
    """
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
    log = [
        LogBatch(0, 1, 7, True),
        LogBatch(2, 3, 7, True),
        LogBatch(4, 5, 8, True),
        LogBatch(6, 6, 7, True, True),
        LogBatch(7, 7, 7, True),
    ]
    engine = started()
    taken = engine.acquire("m", BATCH_OPTIMIZED, 1000, 1000, 0, log, 0, [AbortedRange(7, 2)])
    assert taken == [Acquired(0, 1, 1), Acquired(4, 7, 1)]
    assert states(engine) == [(1, "ACQUIRED", 1, "m"), (3, "ARCHIVED", 1, ""), (7, "ACQUIRED", 1, "m")]
    assert engine.window.complete_count == 2
    settle(engine, "m", 0, 1, ACCEPT)
    assert engine.window.start_offset == 4


def test_records_before_those_of_an_aborted_transaction_get_states_of_their_own() -> None:
    """As in Kafka, which a member hears that answers for a record of another one."""
    engine = started()
    log = [LogBatch(0, 9), LogBatch(10, 10, 7, True), LogBatch(11, 11, 7, True, True)]
    assert engine.acquire("m", BATCH_OPTIMIZED, 500, 3, 0, log, 0, [AbortedRange(7, 10)]) == [Acquired(0, 9, 1)]
    with pytest.raises(ApiError, match="Member is not the owner of offset"):
        engine.acknowledge("n", [Acknowledgement(4, 4, [ACCEPT])], 0)


def test_records_before_an_aborted_transaction_that_is_read_later_get_states_of_their_own() -> None:
    engine = started()
    acquire(engine, "m", 0, 9)
    engine.split_before(9)
    with pytest.raises(ApiError, match="Member is not the owner of batch record"):
        engine.acknowledge("n", [Acknowledgement(4, 4, [ACCEPT])], 0)
    engine.split_before(10)
    with pytest.raises(ApiError, match="Member is not the owner of offset"):
        engine.acknowledge("n", [Acknowledgement(4, 4, [ACCEPT])], 0)


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
