"""A shard is loaded from its log, unloaded, and fails where the log is not its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ottla.coordinator.lifecycle import State
from ottla.coordinator.loading import Entry
from ottla.coordinator.runtime import Runtime
from ottla.coordinator.shard import Result
from ottla.coordinator.timeline import Timeline
from ottla.coordinator.timers import Timer
from ottla.protocol.control import Marker
from ottla.protocol.errors import ApiError, Errors
from ottla.protocol.records import Record

from ..support.shards import (
    Counter,
    FakeLog,
    Pairs,
    World,
)


def entry(offset: int, record: Record | None, marker: Marker | None = None) -> Entry:
    return Entry(offset, -1, -1, record, marker)


def test_loading_replays_and_answers_who_comes_too_early() -> None:
    timeline = Timeline()
    shard, log = Counter(timeline), FakeLog()
    runtime = Runtime("test-0", shard, Pairs(), log, timeline)
    replies: list[Any] = []

    def answered(reply: Any, error: ApiError | None) -> None:
        replies.append(error.code if error else reply)

    entries = [entry(n, Record(b"k", str(n).encode())) for n in range(600)]
    entries += [entry(600, Record(b"unknown", b"?")), entry(601, None, Marker(False, -1))]
    steps = runtime.load(iter(entries), 1, 0, 602, 602)
    next(steps)
    assert runtime.state is State.LOADING
    runtime.write("test", Result, answered, 0)
    with pytest.raises(ApiError, match="coordinator"):
        runtime.read(lambda offset: None)
    for _ in steps:
        continue
    runtime.write("test", lambda: Result([], "fine"), answered, 0)
    assert replies == [Errors.COORDINATOR_LOAD_IN_PROGRESS, "fine"]
    assert shard.values.get("k") == 599
    assert shard.markers == [(601, -1, False)]
    assert shard.loaded
    assert runtime.committed_offset == 602


def test_a_shard_gets_its_timers_in_steps_unless_it_is_closed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_loaded(shard: Counter, now_ms: int) -> Iterator[Timer | None]:
        yield None
        yield Timer("after-load", now_ms + 10, lambda now: Result())

    monkeypatch.setattr(Counter, "on_loaded", on_loaded)
    for is_closed in (False, True):
        timeline = Timeline()
        runtime = Runtime("test-0", Counter(timeline), Pairs(), FakeLog(), timeline)
        steps = runtime.load(iter(()), 1, 0, 0, 0)
        next(steps)
        assert runtime.state is State.LOADING
        if is_closed:
            runtime.close()
        assert list(steps) == []
        assert runtime.state is (State.CLOSED if is_closed else State.ACTIVE)
        assert runtime.next_deadline_ms() == (None if is_closed else 10)


def test_unloading_answers_everything_that_waits() -> None:
    world = World()
    world.write(("a", 1))
    world.runtime.flush()
    world.write(("b", 1))
    world.runtime.close()
    assert world.replies == [Errors.NOT_COORDINATOR, Errors.NOT_COORDINATOR]
    assert world.shard.unloaded
    world.write(("c", 1))
    assert world.replies[-1] == Errors.NOT_COORDINATOR


def test_somebody_else_in_the_log_fails_the_shard() -> None:
    world = World()
    world.write(("a", 1))
    world.runtime.flush()
    world.log.end += 5
    world.write(("b", 1))
    world.runtime.flush()
    assert world.runtime.state is State.FAILED
    assert world.replies == [Errors.NOT_COORDINATOR, Errors.NOT_COORDINATOR]


def test_a_record_that_cannot_be_replayed_is_left_out_at_loading() -> None:
    """Kafka's loader fails there: whoever may write to the topic could end its coordinator for good."""
    timeline = Timeline()
    shard = Counter(timeline)
    runtime = Runtime("test-0", shard, Pairs(), FakeLog(), timeline)
    skipped: list[int] = []
    runtime.replay.on_skipped = lambda offset, error: skipped.append(offset)
    entries = [entry(0, Record(b"k", b"1")), entry(1, Record(b"k", b"poison")), entry(2, Record(b"l", b"2"))]
    list(runtime.load(iter(entries), 1, 0, 3, 3))
    assert runtime.state is State.ACTIVE
    assert skipped == [1]
    assert runtime.replay.skipped == 1
    assert dict(shard.values.items()) == {"k": 1, "l": 2}


def test_a_log_that_cannot_be_read_fails_the_load() -> None:
    timeline = Timeline()
    runtime = Runtime("test-0", Counter(timeline), Pairs(), FakeLog(), timeline)

    def entries() -> Iterator[Entry]:
        yield entry(0, Record(b"k", b"1"))
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input"):
        list(runtime.load(entries(), 1, 0, 1, 1))
    assert runtime.state is State.FAILED
