"""What is done for many transactions, or in many partitions of one, is done in steps."""

from __future__ import annotations

import pytest
from ottla.broker.transaction import completion, coordinators
from ottla.coordinator.transaction import shard as transaction_shard

from ..support.transaction_world import Writer, begun, create, hold, partition, state, world
from ..support.world import World

DAY_MS = 86_400_000


def turn(w: World) -> None:
    """What is next, and what follows it at once."""
    w.schedule.take_next()()


def ended_in(w: World, partitions: int) -> list[int]:
    """The partitions of `t` that have a marker."""
    return [
        index
        for index in range(partitions)
        if len(partition(w, index=index).open_log().producers.by_id) and (partition(w, index=index).end_offset == 2)
    ]


def test_markers_are_written_to_some_partitions_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "STEP_MARKERS", 2)
    w = world(5)
    one = begun(w)
    for index in range(5):
        assert one.write(b"a", index=index) == 0
    ending = one.ending()
    while not ended_in(w, 5):
        turn(w)
    assert ended_in(w, 5) == [0, 1]
    assert ending.done
    w.pass_ms(0)
    assert ended_in(w, 5) == [0, 1, 2, 3, 4]
    w.pass_ms(1)
    assert state(w)[0] == "CompleteCommit"


def test_markers_that_wait_do_not_keep_those_of_other_partitions_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "STEP_MARKERS", 1)
    w = world(3)
    create(w, "first")
    one = begun(w)
    assert one.write(b"a", name="first") == 0
    for index in (1, 2):
        assert one.write(b"a", index=index) == 0
    hold(w, "first")
    one.ending()
    w.pass_ms(5)
    assert ended_in(w, 3) == [1, 2]
    assert state(w)[:1] == ("PrepareCommit",)
    hold(w, "first", "immediate")
    w.pass_ms(5)
    assert state(w)[0] == "CompleteCommit"


def test_transactions_that_take_too_long_are_aborted_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_shard, "STEP_ABORTS", 2)
    monkeypatch.setattr(coordinators, "STEP_ENDS", 1)
    w = world()
    writers = [begun(w, f"x{number}", timeout_ms=1000) for number in range(5)]
    for one in writers:
        one.write(b"a")
    hold(w, "t")
    shard = w.broker.transactions.host("x0").shard
    while not shard.aborted_overdue:
        turn(w)
    assert shard.aborted_overdue == 2
    assert writers[4].ending().reply.error_code == 0, "it ends before its turn comes"
    w.pass_ms(10)
    assert shard.aborted_overdue == 4
    assert partition(w).end_offset == 5 + 5, "each has a marker, though none of them is committed"
    hold(w, "t", "immediate")
    w.pass_ms(10)
    assert [state(w, one.name)[0] for one in writers] == ["CompleteAbort"] * 4 + ["CompleteCommit"]


def test_ends_that_are_committed_together_are_carried_out_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "STEP_ENDS", 2)
    w = world()
    for number in range(5):
        begun(w, f"x{number}", timeout_ms=1000).write(b"a")
    hold(w, "t")
    completions = w.broker.transactions.completions
    while not completions:
        turn(w)
    assert len(completions) == 2
    w.pass_ms(10)
    assert len(completions) == 5


def test_ids_that_are_not_used_are_removed_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_shard, "STEP_IDS", 2)
    w = world(transactional_id_expiration_ms=str(DAY_MS))
    for number in range(5):
        begun(w, f"x{number}")
    transactions = w.broker.transactions.host("x0").shard.transactions
    while len(transactions) == 5:
        turn(w)
    assert list(transactions) == ["x2", "x3", "x4"]
    assert Writer(w, "x4").init() == 0, "it is used again before its turn comes"
    w.pass_ms(10)
    assert list(transactions) == ["x4"]
