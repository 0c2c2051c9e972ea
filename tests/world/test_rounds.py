"""What the broker does at intervals rests while there is nothing to do, and is done when it would be without a rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ottla.broker.clock import VirtualSchedule
from ottla.broker.lab.clock.naming import name_of
from ottla.broker.rounds import LOOK_STEP, REST_MS_MAX, Due, Round
from ottla.broker.turn import Turn
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.share.acknowledge_types import ACCEPT
from ottla.coordinator.share.shard import ShareShard
from ottla.coordinator.transaction.shard import TransactionShard
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record

from ..support import group_world, node_world, share_world, topic_world
from ..support.ask import batch, produce_message
from ..support.transaction_world import begun
from ..support.world import World

DAY_MS = 86_400_000
History = Callable[[], Iterator[dict[str, Any]]]


def count_events(w: World, by_ms: int) -> int:
    """Lets time pass; returns how many timers fired."""
    schedule, events = w.schedule, 0
    until_ms = schedule.elapsed_ms + by_ms
    while schedule.timers.next_ms() <= until_ms:
        schedule.take_next()()
        events += 1
    schedule.elapsed_ms = until_ms
    return events


def used_world(**settings: Any) -> World:
    """A broker with topics, a group, a transactional id and coordinators on 150 partitions."""
    w = group_world.world(offsets_topic_num_partitions="50", **settings)
    for key_type, key in ((1, "x"), (2, "g:AAAAAAAAAAAAAAAAAAAAAQ:0")):
        w.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]))
    assert group_world.code(group_world.commit(w, 7, "g")) == 0
    writer = begun(w)
    assert (writer.write(b"first"), writer.end()) == (0, 0)
    assert w.ask("Produce", 9, produce_message("t", batch(b"a", now=w.schedule.now_ms()))) is not None
    return w


@pytest.mark.long
def test_400_days_of_an_idle_broker_are_few_events() -> None:
    w = used_world(offsets_retention_minutes="1440")
    assert count_events(w, 400 * DAY_MS) < 5_000
    log = w.broker.partitions.by_name["t", 0].open_log()
    assert log.start_offset == log.end_offset > 0, "retention took what was there"
    assert len(group_world.shard(w).groups) == 0, "the group's offsets have expired"
    assert count_events(w, 400 * DAY_MS) == 0
    assert len(w.schedule.timers) == 0, "a broker with nothing to do waits for nothing"


def test_400_days_of_three_idle_nodes_are_few_events() -> None:
    w = node_world.cluster()
    assert count_events(w, 400 * DAY_MS) < 1_000
    node_world.happens(w, "stop", 2)
    assert count_events(w, 400 * DAY_MS) < 100
    node_world.happens(w, "begin", 2)
    assert count_events(w, 400 * DAY_MS) < 100
    assert len(w.schedule.timers) == 0, "nodes with nothing to do wait for nothing"


@pytest.mark.long
def test_400_days_of_2_000_partitions_with_producers_are_few_events() -> None:
    """A round looks at so many in steps; those that have files to remove have an event for each."""
    w, many = World(), 2_000
    assert topic_world.create(w, "many", many, retention_ms="90000000") == 0
    r, data = m.ProduceRequest, batch(b"a", now=w.schedule.now_ms(), producer_id=5, producer_epoch=0, base_sequence=0)
    parts = [r.PartitionProduceData(index=index, records=data) for index in range(many)]
    topics = [r.TopicProduceData(name="many", partition_data=parts)]
    (made,) = w.ask("Produce", 9, r(acks=1, timeout_ms=1000, topic_data=topics)).responses
    assert {one.error_code for one in made.partition_responses} == {0}
    assert count_events(w, 90_000_000) < 300
    assert count_events(w, 400 * DAY_MS) < many + 300
    logs = [log for _, log in w.broker.partitions.open_logs()]
    assert (len(logs) >= many, {log.start_offset == log.end_offset for log in logs}) == (True, {True})
    assert (count_events(w, 400 * DAY_MS), len(w.schedule.timers)) == (0, 0)


@pytest.mark.parametrize("lag", ["min", "max"])
def test_a_log_is_cleaned_when_its_lag_is_over_after_few_events(lag: str) -> None:
    w, month_ms = World(), 30 * DAY_MS
    ratio = "0.01" if lag == "min" else "1"
    lags = {f"{lag}_compaction_lag_ms": str(month_ms), "min_cleanable_dirty_ratio": ratio}
    assert topic_world.create(w, "t", 1, 10_000, cleanup_policy="compact", segment_ms="1000", **lags) == 0
    log = w.broker.partitions.by_name["t", 0].open_log()
    for number in range(3):
        data = bytes(records.encode([Record(b"key", b"%d" % number, w.schedule.now_ms())]))
        assert topic_world.produced(w.ask("Produce", 9, produce_message("t", data))).error_code == 0
        w.pass_ms(10_000)
    assert log.first_dirty_offset <= 0
    events = count_events(w, month_ms - 60_000)
    assert (events < 1_000, log.first_dirty_offset <= 0) == (True, True)
    w.pass_ms(120_000)
    assert log.first_dirty_offset > 0
    assert count_events(w, month_ms) < 1_000


def tree(w: World, path: str = "/data") -> Iterator[tuple[str, Any]]:
    """All files with their bytes."""
    for name in sorted(w.files.names(path)):
        inner = f"{path}/{name}"
        try:
            yield inner, bytes(w.files._inode(inner).data)
        except FileNotFoundError:
            yield from tree(w, inner)


def test_retention_needs_no_event() -> None:
    w = World()
    assert topic_world.create(w, "t", retention_ms="90000000") == 0
    w.ask("Produce", 9, produce_message("t", batch(b"a", now=w.schedule.now_ms())))
    events, log = count_events(w, 90_000_000), w.broker.partitions.by_name["t", 0].open_log()
    assert (log.start_offset, events < 300) == (0, True)
    w.pass_ms(300_000)
    assert log.start_offset == 1


def stored(w: World) -> dict[str, Any]:
    """The files, up to where they are durable, and the producers of each partition."""
    logs = w.broker.partitions.open_logs()
    known = {one.name: (log.recovery_point, sorted(log.producers.by_id)) for one, log in logs}
    return {**dict(tree(w)), **known}


def history() -> Iterator[dict[str, Any]]:
    """Something for each round, between times at which nothing happens; what is stored at some moments."""
    w = used_world(
        offsets_retention_minutes="20",
        transaction_state_log_num_partitions="2",
        share_coordinator_state_topic_num_partitions="2",
        transactional_id_expiration_ms="3000000",
        producer_id_expiration_ms="3000000",
        offsets_topic_segment_bytes="1048576",
    )
    compacted = {"cleanup_policy": "compact", "segment_ms": "1000", "min_cleanable_dirty_ratio": "0.01"}
    topics: dict[str, dict[str, Any]] = {
        "short": {"retention_ms": "900000", "segment_ms": "60000", "file_delete_delay_ms": "7000"},
        "compact": {**compacted, "flush_ms": "2500"},
        "lag": {**compacted, "min_compaction_lag_ms": "400000"},
    }
    for name, configs in topics.items():
        assert topic_world.create(w, name, **configs) == 0
    begun(w, "open").write(b"open")
    for number in range(5):
        for name in topics:
            data = bytes(records.encode([Record(b"key", b"%d" % number, w.schedule.now_ms())]))
            assert topic_world.produced(w.ask("Produce", 9, produce_message(name, data))).error_code == 0
        group_world.commit(w, number, f"g{number}")
        w.pass_ms(31_003 * (number + 1))
        yield stored(w)
    for _ in range(20):
        w.pass_ms(100_000)
        yield stored(w)
    w.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["lag"], timeout_ms=1000))
    for _ in range(30):
        w.pass_ms(150_000)
        yield stored(w)


def share_history() -> Iterator[dict[str, Any]]:
    """Share-partitions whose states become redundant and cold, between times at which nothing happens."""
    w, one = share_world.ready(
        12,
        share_coordinator_snapshot_update_records_per_snapshot="3",
        share_coordinator_state_topic_prune_interval_ms="7000",
        share_coordinator_cold_partition_snapshot_interval_ms="90000",
        group_share_record_lock_duration_ms="60000",
        log_flush_offset_checkpoint_interval_ms="1000",
    )
    for number in range(6):
        for first, last, _ in one.got():
            assert one.acknowledge((first, last, ACCEPT)) == 0
        share_world.produce(w, b"more")
        w.pass_ms(13_001 * (number + 1))
        yield stored(w)
    for _ in range(12):
        w.pass_ms(31_000)
        yield stored(w)


def node_history() -> Iterator[dict[str, Any]]:
    """Nodes that lose their leaders, get them back and fall behind, between times at which nothing happens."""
    w = node_world.cluster()
    for what, node in (("stop", 2), ("begin", 2), ("kill", 3), ("begin", 3), ("hold", 1), ("release", 1), ("cut", 2)):
        node_world.happens(w, what, node)
        w.pass_ms(70_000)
        yield stored(w)
        for index in range(2):
            leader = node_world.state(w, index, at=3 if node != 3 else 1)[0]
            w.at(leader, "Produce", 9, produce_message("t", batch(b"a", now=w.schedule.now_ms()), index))
        for _ in range(4):
            w.pass_ms(17_000)
            yield stored(w)
        w.pass_ms(600_000)
        yield stored(w)


class Forgetful(dict[Any, None]):
    """Holds nothing."""

    def __setitem__(self, key: object, value: None) -> None:
        """Does nothing."""


def let_nothing_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Round, "_due_ms", lambda self, due_ms: 0)
    monkeypatch.setattr(GroupShard, "_has_groups", lambda self: True)
    monkeypatch.setattr(TransactionShard, "_has_ids", lambda self: True)
    for kind in (ShareShard, TransactionShard):

        def loaded(self: Any, now_ms: int, loaded: Any = kind.on_loaded) -> Any:
            self.timers.resting = Forgetful()
            return loaded(self, now_ms)

        monkeypatch.setattr(kind, "on_loaded", loaded)


@pytest.mark.long
@pytest.mark.parametrize("history", [history, share_history, node_history])
def test_what_rests_is_done_when_it_would_be_done_without_a_rest(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    rested = list(history())
    let_nothing_rest(monkeypatch)
    for number, (one, other) in enumerate(zip(rested, history(), strict=True)):
        differ = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
        assert (number, differ) == (number, [])


class Rounds:
    """A turn with one round every 10 ms, and when it ran."""

    def __init__(self) -> None:
        self.schedule = VirtualSchedule()
        self.turn = Turn(self.schedule)
        self.due_ms: Due = float("inf")
        self.ran: list[int] = []
        self.turn.every(lambda: 10, self.run, due_ms=lambda: self.due_ms)

    def run(self) -> None:
        self.ran.append(self.schedule.monotonic_ms())
        self.due_ms = float("inf")


def test_a_round_runs_at_its_intervals_after_a_rest() -> None:
    rounds = Rounds()
    rounds.schedule.advance(1013)
    assert (rounds.ran, len(rounds.schedule.timers)) == ([], 0)
    rounds.due_ms = 1013
    rounds.turn.settle()
    assert [name_of(call) for _, call in rounds.schedule.timers.first(9)] == ["Rounds.run"]
    rounds.schedule.advance(100)
    assert rounds.ran == [1020]


def test_a_round_that_is_due_later_rests_until_then() -> None:
    rounds = Rounds()
    rounds.due_ms = 501
    rounds.schedule.advance(1000)
    assert rounds.ran == [510]
    rounds.due_ms = rounds.schedule.monotonic_ms() + 10.0 * REST_MS_MAX
    rounds.turn.settle()
    rounds.schedule.advance(10)
    (at_ms, _), *_ = rounds.schedule.timers.first(1)
    assert at_ms == 1000 + REST_MS_MAX, "wall time may pass without monotonic time"


def test_an_event_while_a_round_waits_does_not_delay_it() -> None:
    rounds = Rounds()
    rounds.due_ms = 95
    rounds.schedule.advance(91)
    for _ in range(20):
        rounds.turn.settle()
        rounds.schedule.advance(1)
    assert rounds.ran == [100]


def test_an_event_at_the_time_of_a_round_does_not_delay_it() -> None:
    rounds = Rounds()
    rounds.due_ms = 95
    rounds.schedule.later(100, rounds.turn.settle)
    rounds.schedule.advance(150)
    assert rounds.ran == [100]


def test_a_round_whose_time_cannot_be_told_does_not_rest() -> None:
    rounds, ran = Rounds(), []
    rounds.turn.every(lambda: 10, lambda: ran.append(rounds.schedule.monotonic_ms()), due_ms=lambda: 1 // 0)
    rounds.schedule.advance(35)
    assert (ran, rounds.ran) == ([10, 20, 30], [])


class Looked:
    """A round that looks at much. `seen`: how many parts it has looked at; `steps`: of the loop."""

    def __init__(self, parts: int) -> None:
        self.rounds, self.seen, self.parts, self.due_ms = Rounds(), 0, parts, float("inf")
        self.rounds.schedule.advance(9)
        self.rounds.due_ms = self.look()

    def look(self) -> Iterator[float]:
        for number in range(self.parts):
            self.seen += 1
            yield self.due_ms if number == self.parts - 1 else float("inf")

    def step(self) -> None:
        schedule = self.rounds.schedule
        schedule.elapsed_ms = max(schedule.elapsed_ms, schedule.timers.next_ms())
        schedule.take_next()()


def test_a_round_looks_at_much_in_steps_which_are_no_events() -> None:
    looked = Looked(2 * LOOK_STEP + 5)
    other: list[int] = []

    def never() -> float:
        other.append(1)
        return float("inf")

    looked.rounds.turn.every(lambda: 10, lambda: None, first_ms=0, due_ms=never)
    looked.step()
    for seen in (LOOK_STEP, 2 * LOOK_STEP, 2 * LOOK_STEP + 5):
        looked.step()
        assert (looked.seen, looked.rounds.ran, len(other)) == (seen, [], 1)
    assert len(looked.rounds.schedule.timers) == 0, "both rest"


def test_a_round_that_finds_something_in_a_later_step_does_it_at_once() -> None:
    looked = Looked(LOOK_STEP + 5)
    looked.due_ms = 10
    looked.step()
    assert looked.rounds.ran == []
    looked.step()
    assert looked.rounds.ran == [10]


def test_what_happens_while_a_round_looks_makes_it_run() -> None:
    looked = Looked(3 * LOOK_STEP)
    looked.step()
    looked.rounds.turn.settle()
    looked.step()
    assert (looked.seen, looked.rounds.ran) == (LOOK_STEP, [10])
