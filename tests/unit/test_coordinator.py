"""The coordinator runtime with a shard that uses all of its contract, its timeline and its timers."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ottla.coordinator.runtime import APPEND_ERRORS, Runtime, State
from ottla.coordinator.shard import Result
from ottla.coordinator.timeline import Timeline, TimelineDict
from ottla.coordinator.timers import Timer, Timers
from ottla.protocol import records
from ottla.protocol.errors import ApiError, Errors
from ottla.protocol.records import Record, Template

# timeline


@pytest.mark.parametrize("seed", range(300))
def test_a_timeline_is_a_list_of_copies(seed: int) -> None:
    """Against the simplest model: a full copy of two dicts at every snapshot."""
    chance = random.Random(seed)
    timeline = Timeline()
    dicts = [TimelineDict[int, int](timeline), TimelineDict[int, int](timeline)]
    timeline.snapshot(0)
    model: dict[int, list[dict[int, int]]] = {0: [{}, {}]}
    offset = 0
    for _ in range(60):
        action = chance.random()
        if action < 0.6:
            one = chance.choice(dicts)
            key = chance.randrange(5)
            how = chance.random()
            if how < 0.3:
                one.pop(key)
            elif how < 0.6:
                one.update({chance.randrange(5): chance.randrange(100) for _ in range(3)})
            else:
                one[key] = chance.randrange(100)
        elif action < 0.8:
            offset += chance.randint(1, 3)
            timeline.snapshot(offset)
            model[offset] = [dict(d.items()) for d in dicts]
        elif action < 0.9:
            committed = chance.choice(timeline.offsets)
            timeline.commit(committed)
            model = {o: m for o, m in model.items() if o >= committed}
        else:
            offset = chance.choice(timeline.offsets)
            timeline.revert(offset)
            model = {o: m for o, m in model.items() if o <= offset}
            assert [dict(d.items()) for d in dicts] == model[offset]
        for known in timeline.offsets:
            for number, one in enumerate(dicts):
                assert dict(one.items(as_of=known)) == model[known][number], (seed, known)
                assert all(one.get(key, as_of=known) == model[known][number].get(key) for key in range(5))


def test_a_snapshot_costs_what_changed_and_not_what_exists() -> None:
    timeline = Timeline()
    big = TimelineDict[int, int](timeline)
    for n in range(100_000):
        big[n] = n
    timeline.snapshot(1)
    big[5] = 0
    assert sum(len(before) for before in timeline._snapshots[-1].before.values()) == 1


# timers


def test_timers_fire_in_order_once_and_move() -> None:
    timers = Timers()
    timers.set(Timer("a", 100, lambda now: None))
    timers.set(Timer("b", 50, lambda now: None))
    timers.set(Timer("c", 70, lambda now: None))
    timers.set(Timer("b", 500, lambda now: None))  # a heartbeat
    timers.set(Timer("c", None))  # cancelled
    assert timers.due(99) == []
    assert [t.key for t in timers.due(100)] == ["a"]
    assert timers.due(499) == []
    assert [t.key for t in timers.due(500)] == ["b"]
    assert len(timers) == 0
    timers.set(Timer("d", 900, lambda now: None))
    timers.set(Timer("d", 600, lambda now: None))  # sooner
    assert timers.next_deadline_ms() == 600
    assert [t.key for t in timers.due(600)] == ["d"]
    assert timers.due(900) == []


# runtime


class Counter:
    """A shard that counts by name: every record is `name=value`."""

    def __init__(self, timeline: Timeline) -> None:
        self.values = TimelineDict[str, int](timeline)
        self.markers: list[tuple[int, int, bool]] = []
        self.offsets: list[int] = []
        self.loaded = self.unloaded = False

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: Any, value: Any) -> None:
        if value == b"poison":
            raise RuntimeError("cannot be replayed")
        self.offsets.append(offset)
        self.values[key.decode()] = int(value)

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, coordinator_epoch: int, committed: bool) -> None:
        self.markers.append((offset, producer_id, committed))

    def on_loaded(self, now_ms: int) -> list[Timer]:
        self.loaded = True
        return [Timer("after-load", now_ms + 10, lambda now: Result([("timer", 1)]))]

    def on_unloaded(self) -> None:
        self.unloaded = True


class Pairs:
    def encode(self, record: tuple[str, Any]) -> Record:
        value = record[1]
        return Record(record[0].encode(), value if isinstance(value, bytes) else str(value).encode())

    def replayed(self, record: tuple[str, Any]) -> tuple[Any, Any]:
        encoded = self.encode(record)
        return encoded.key, encoded.value

    def decode(self, record: Record) -> tuple[Any, Any] | None:
        return None if record.key == b"unknown" else (record.key, record.value)


class FakeLog:
    """A partition in memory that fails when told to."""

    def __init__(self) -> None:
        self.batches: list[records.BatchHeader] = []
        self.end = 0
        self.error: ApiError | None = None
        self.limit = 1000

    def append(self, batch: bytearray, now_ms: int) -> tuple[int, int]:
        if self.error is not None:
            raise self.error
        header = records.header_at(batch)
        self.batches.append(header)
        first = self.end
        self.end += header.record_count
        return first, self.end

    def max_batch_bytes(self) -> int:
        return self.limit


class World:
    """A loaded runtime and what came out of it."""

    def __init__(self) -> None:
        timeline = Timeline()
        self.shard = Counter(timeline)
        self.log = FakeLog()
        self.runtime = Runtime("test-0", self.shard, Pairs(), self.log, timeline)
        self.replies: list[Any] = []
        for _ in self.runtime.load(iter(()), 1, 0, 0, 0):
            continue

    def write(self, *pairs: tuple[str, Any], reply: Any = "ok", **more: Any) -> None:
        self.runtime.write(lambda: Result(list(pairs), reply), self.answered, 0, **more)

    def answered(self, reply: Any, error: ApiError | None) -> None:
        self.replies.append(reply if error is None else error.code)


def test_a_reply_waits_for_the_high_watermark() -> None:
    world = World()
    world.write(("a", 1))
    world.write(("a", 2), ("b", 3), reply="second")
    world.runtime.flush(0)
    assert world.replies == []
    world.runtime.advance(2)  # within the batch
    assert world.replies == []
    world.runtime.advance(3)
    assert world.replies == ["ok", "second"]
    assert [b.record_count for b in world.log.batches] == [3], "the writes of one turn are one batch"
    assert world.shard.offsets == [0, 1, 2]


def test_reads_see_only_what_is_committed() -> None:
    world = World()
    world.write(("a", 1))
    world.runtime.flush(0)

    def read(offset: int) -> int | None:
        found: int | None = world.shard.values.get("a", as_of=offset)
        return found

    assert world.runtime.read(read) is None
    world.runtime.advance(1)
    assert world.runtime.read(read) == 1
    world.write(("a", 2))
    assert world.runtime.read(read) == 1
    assert world.shard.values.get("a") == 2, "writes see what is not committed yet"


def test_a_write_without_records_waits_for_what_it_saw() -> None:
    world = World()
    world.write(reply="at once")
    assert world.replies == ["at once"]
    world.write(("a", 1), reply="write")
    world.write(reply="read of it")
    world.runtime.flush(0)
    world.write(reply="another")
    assert world.replies == ["at once"]
    world.runtime.advance(1)
    assert world.replies == ["at once", "write", "read of it", "another"]


@pytest.mark.parametrize(("code", "told"), list(APPEND_ERRORS.items()))
def test_a_failed_append_reverts_its_batch_and_no_other(code: int, told: int) -> None:
    world = World()
    world.write(("a", 1))
    world.runtime.flush(0)
    world.log.error = ApiError(code)
    world.write(("a", 2))
    world.write(("b", 2))
    world.runtime.flush(0)
    assert world.replies == [told, told]
    assert world.shard.values.get("a") == 1
    assert "b" not in world.shard.values
    world.log.error = None
    world.write(("b", 5), reply="later")
    world.runtime.flush(0)
    world.runtime.advance(2)
    assert world.replies == [told, told, "ok", "later"]


def test_a_handler_that_decides_against_it_changes_nothing() -> None:
    world = World()

    def refuse() -> Result:
        raise ApiError(Errors.GROUP_ID_NOT_FOUND)

    world.runtime.write(refuse, world.answered, 0)
    assert world.replies == [Errors.GROUP_ID_NOT_FOUND]
    assert world.log.batches == []


def test_a_bug_in_a_handler_or_in_replay_answers_and_leaves_the_state_as_it_was() -> None:
    world = World()
    bugs: list[Exception] = []
    world.runtime.on_bug = bugs.append
    world.runtime.write(lambda: Result([1 / 0]), world.answered, 0)
    world.write(("a", 1), reply="same batch")
    world.write(("b", b"poison"))
    assert world.replies == [Errors.UNKNOWN_SERVER_ERROR] * 3
    assert len(bugs) == world.runtime.bugs == 2
    assert "a" not in world.shard.values
    world.write(("c", 1))
    world.runtime.flush(0)
    world.runtime.advance(1)
    assert world.replies[-1] == "ok"


def test_sizes_are_checked_before_replay() -> None:
    world = World()
    world.write(("a", b"1" * 2000))
    assert world.replies == [Errors.UNKNOWN_SERVER_ERROR]
    assert "a" not in world.shard.values
    for n in range(100):
        world.write((f"key-{n:050}", n))
    world.runtime.flush(0)
    assert len(world.log.batches) > 5, "a full batch is flushed and another begun"
    assert world.log.end == 100


def test_a_transactional_write_is_a_batch_of_its_own_and_goes_at_once() -> None:
    world = World()
    world.write(("a", 1))
    world.write(("t", 2), template=Template(producer_id=9, producer_epoch=3, transactional=True))
    assert [(b.record_count, b.producer_id, b.is_transactional) for b in world.log.batches] == [(1, -1, False), (1, 9, True)]


def test_a_marker_is_appended_and_replayed_in_one_step() -> None:
    world = World()
    world.write(("a", 1))

    def append() -> tuple[int, int]:
        world.log.end += 1
        return world.log.end - 1, world.log.end

    world.runtime.append_marker(append, 9, 0, 1, True, world.answered, 0)
    assert world.shard.markers == [(1, 9, True)], "after the write before it"
    world.runtime.advance(2)
    assert world.replies == ["ok", None]


def test_a_reply_that_waits_too_long_leaves_with_an_error_and_its_records_stay() -> None:
    world = World()
    world.write(("a", 1), deadline_ms=50)
    world.runtime.flush(0)
    assert world.runtime.next_deadline_ms() == 10, "the timer of on_loaded comes first"
    world.runtime.tick(50)
    assert world.replies == [Errors.REQUEST_TIMED_OUT]
    world.runtime.flush(50)
    world.runtime.advance(2)
    assert world.replies == [Errors.REQUEST_TIMED_OUT], "once is enough"
    assert world.runtime.read(lambda offset: world.shard.values.get("a", as_of=offset)) == 1


def test_a_timer_is_a_write_and_is_tried_again_when_its_append_fails() -> None:
    world = World()
    world.log.error = ApiError(Errors.NOT_ENOUGH_REPLICAS)
    world.runtime.tick(10)
    world.runtime.flush(10)
    assert "timer" not in world.shard.values
    world.log.error = None
    world.runtime.tick(510)
    world.runtime.flush(510)
    assert world.shard.values.get("timer") == 1


class Entry:
    def __init__(self, offset: int, record: Record | None, committed: bool | None = None) -> None:
        self.offset, self.next_offset, self.record, self.committed = offset, offset + 1, record, committed
        self.producer_id = self.producer_epoch = self.coordinator_epoch = -1


def test_loading_replays_and_answers_who_comes_too_early() -> None:
    timeline = Timeline()
    shard, log = Counter(timeline), FakeLog()
    runtime = Runtime("test-0", shard, Pairs(), log, timeline)
    replies: list[Any] = []

    def answered(reply: Any, error: ApiError | None) -> None:
        replies.append(error.code if error else reply)

    entries = [Entry(n, Record(b"k", str(n).encode())) for n in range(600)]
    entries += [Entry(600, Record(b"unknown", b"?")), Entry(601, None, committed=False)]
    steps = runtime.load(iter(entries), 1, 0, 602, 602)
    next(steps)
    assert runtime.state is State.LOADING
    runtime.write(Result, answered, 0)
    with pytest.raises(ApiError, match="coordinator"):
        runtime.read(lambda offset: None)
    for _ in steps:
        continue
    runtime.write(lambda: Result([], "fine"), answered, 0)
    assert replies == [Errors.COORDINATOR_LOAD_IN_PROGRESS, "fine"]
    assert shard.values.get("k") == 599
    assert shard.markers == [(601, -1, False)]
    assert shard.loaded
    assert runtime.committed_offset == 602


def test_unloading_answers_everything_that_waits() -> None:
    world = World()
    world.write(("a", 1))
    world.runtime.flush(0)
    world.write(("b", 1))
    world.runtime.close()
    assert world.replies == [Errors.NOT_COORDINATOR, Errors.NOT_COORDINATOR]
    assert world.shard.unloaded
    world.write(("c", 1))
    assert world.replies[-1] == Errors.NOT_COORDINATOR


def test_somebody_else_in_the_log_fails_the_shard() -> None:
    world = World()
    world.write(("a", 1))
    world.runtime.flush(0)
    world.log.end += 5
    world.write(("b", 1))
    world.runtime.flush(0)
    assert world.runtime.state is State.FAILED
    assert world.replies == [Errors.NOT_COORDINATOR, Errors.NOT_COORDINATOR]


def test_a_record_that_cannot_be_replayed_fails_the_load() -> None:
    timeline = Timeline()
    runtime = Runtime("test-0", Counter(timeline), Pairs(), FakeLog(), timeline)
    with pytest.raises(RuntimeError):
        list(runtime.load(iter([Entry(0, Record(b"k", b"poison"))]), 1, 0, 1, 1))
    assert runtime.state is State.FAILED
