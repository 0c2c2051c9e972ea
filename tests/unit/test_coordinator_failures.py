"""Whatever fails in the runtime of a shard is answered and leaves the state as it was."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.coordinator import runtime as runtime_module
from ottla.coordinator.journaled import JournaledDict
from ottla.coordinator.lifecycle import State
from ottla.coordinator.shard import Result
from ottla.coordinator.timers import Timer
from ottla.protocol.control import Marker
from ottla.protocol.errors import ApiError, Errors

from ..support.shards import (
    World,
)

EXCEPTIONS = [
    RuntimeError("of a test"),
    ValueError("of a test"),
    KeyError("k"),
    MemoryError(),
    OSError(28, "No space left"),
    RecursionError(),
]


@pytest.mark.parametrize("error", EXCEPTIONS, ids=repr)
def test_an_append_that_fails_with_anything_answers_and_leaves_the_state_as_it_was(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The encoder's exceptions too: a codec that cannot be had, for one."""
    for place in ("append", "encode"):
        world = World()
        world.runtime.timers.set(Timer("before", 500, lambda now: Result([])))

        def fail(*_: Any) -> Any:
            raise error

        with monkeypatch.context() as patch:
            if place == "append":
                patch.setattr(world.log, "append", fail)
            else:
                patch.setattr(runtime_module, "encode_batch", fail)
            world.write(("a", 1))
            world.runtime.write("test", lambda: Result(reply="a read"), world.answered, 0)
            world.runtime.flush()
        assert world.replies == [Errors.UNKNOWN_SERVER_ERROR] * 2
        assert "a" not in world.shard.values
        assert world.runtime.bugs.count == 1
        assert "before" in world.runtime.timers
        world.write(("b", 1))
        world.runtime.flush()
        world.runtime.advance(world.log.end)
        assert world.replies[-1] == "ok"
        assert dict(world.shard.values.items()) == {"b": 1}


def test_an_append_that_fails_after_it_reached_the_log_makes_the_shard_fail_with_the_next_write() -> None:
    world = World()
    failed: list[str] = []
    world.runtime.on_failed = lambda: failed.append("failed")
    append = world.log.append

    def halfway(batch: bytearray, now_ms: int) -> tuple[int, int]:
        append(batch, now_ms)
        raise RuntimeError("of a test")

    world.log.append = halfway  # type: ignore[method-assign]
    world.write(("a", 1))
    world.runtime.flush()
    world.log.append = append  # type: ignore[method-assign]
    world.write(("b", 1))
    world.runtime.flush()
    assert world.replies == [Errors.UNKNOWN_SERVER_ERROR, Errors.NOT_COORDINATOR]
    assert failed == ["failed"]
    assert world.runtime.state is State.FAILED


def test_a_marker_that_fails_with_anything_is_answered() -> None:
    world = World()
    world.write(("a", 1))
    world.runtime.append_marker(lambda: 1 // 0, 9, 0, Marker(True, 1), world.answered, 0)  # type: ignore[arg-type, return-value]
    world.runtime.advance(1)
    assert world.replies == [Errors.UNKNOWN_SERVER_ERROR, "ok"]
    assert world.runtime.state is State.ACTIVE


def test_a_marker_that_is_in_the_log_and_cannot_be_replayed_makes_the_shard_fail() -> None:
    world = World()
    world.write(("a", 1))

    def append() -> tuple[int, int]:
        world.log.end += 1
        return world.log.end - 1, world.log.end

    def replay_marker(*_: Any) -> None:
        raise RuntimeError("of a test")

    world.shard.replay_marker = replay_marker  # type: ignore[method-assign, assignment]
    world.runtime.append_marker(append, 9, 0, Marker(True, 1), world.answered, 0)
    assert world.replies == [Errors.NOT_COORDINATOR] * 2
    assert world.runtime.state is State.FAILED


def test_an_answer_that_raises_takes_no_other_with_it() -> None:
    world = World()

    def raises(reply: Any, error: ApiError | None) -> None:
        raise RuntimeError("of a test")

    appended: list[ApiError | None] = []
    world.runtime.write("test", lambda: Result([("a", 1)], "first", on_committed=appended.append), raises, 0)
    world.runtime.write(
        "test",
        lambda: Result([("b", 1)], "second", on_committed=lambda error: 1 // 0),  # type: ignore[arg-type]
        world.answered,
        0,
    )
    world.write(("c", 1))
    world.runtime.flush()
    world.runtime.advance(3)
    assert world.replies == ["second", "ok"]
    assert appended == [None]
    assert world.runtime.bugs.count == 2


# what is not in the log


class SoftWorld(World):
    """With soft state, a timer and effects."""

    def __init__(self) -> None:
        super().__init__()
        self.soft = JournaledDict[str, int](self.runtime.journal)
        self.effects: list[str] = []

    def change(self, name: str, *pairs: tuple[str, Any], error: Exception | None = None, **more: Any) -> None:
        """A write that changes something of each kind."""

        def handler() -> Result:
            self.soft[name] = self.soft.get(name, 0) + 1
            self.runtime.timers.set(Timer(name, 100, lambda now: Result()))
            self.runtime.journal.after(lambda: self.effects.append(name))
            if error is not None:
                raise error
            return Result(list(pairs), None, **more)

        self.runtime.write(name, handler, self.answered, 0)

    def seen(self) -> tuple[dict[str, int], set[Any], list[str]]:
        return dict(self.soft), {timer.key for timer in self.runtime.timers} - {"after-load"}, self.effects


def test_soft_state_timers_and_effects_are_part_of_their_batch() -> None:
    world = SoftWorld()
    world.change("without records")
    assert world.seen() == ({"without records": 1}, {"without records"}, ["without records"]), "no batch was open"
    world.change("a", ("a", 1))
    world.change("b")
    assert world.seen() == (
        {"without records": 1, "a": 1, "b": 1},
        {"without records", "a", "b"},
        ["without records"],
    ), "later writes see it"
    world.log.error = ApiError(Errors.NOT_ENOUGH_REPLICAS)
    world.runtime.flush()
    assert world.seen() == ({"without records": 1}, {"without records"}, ["without records"])
    world.log.error = None
    world.change("a", ("a", 1))
    world.runtime.flush()
    assert world.seen() == ({"without records": 1, "a": 1}, {"without records", "a"}, ["without records", "a"])


@pytest.mark.parametrize("error", [ApiError(Errors.GROUP_ID_NOT_FOUND), RuntimeError("of a test")], ids=repr)
def test_a_handler_that_raises_has_changed_nothing_and_its_batch_goes_on(error: Exception) -> None:
    world = SoftWorld()
    world.change("a", ("a", 1))
    world.change("b", error=error)
    world.change("c", ("c", b"1" * 2000))
    assert world.seen() == ({"a": 1}, {"a"}, [])
    world.runtime.flush()
    assert world.seen() == ({"a": 1}, {"a"}, ["a"])


def test_a_write_that_finds_its_batch_full_fails_with_it() -> None:
    world = SoftWorld()
    world.change("a", ("a", b"1" * 600))
    world.log.error = ApiError(Errors.NOT_ENOUGH_REPLICAS)
    world.change("b", ("b", b"1" * 600))
    assert world.replies == [Errors.COORDINATOR_NOT_AVAILABLE] * 2
    assert world.seen() == ({}, set(), [])
    world.log.error = None
    world.change("a", ("a", b"1" * 600))
    world.change("b", ("b", b"1" * 600))
    assert world.seen() == ({"a": 1, "b": 1}, {"a", "b"}, ["a"]), "the effects of the batch that is in the log"
    world.log.error = ApiError(Errors.NOT_ENOUGH_REPLICAS)
    world.runtime.flush()
    assert world.seen() == ({"a": 1}, {"a"}, ["a"])


def test_what_a_commit_causes_is_not_taken_back_with_a_later_batch() -> None:
    world = SoftWorld()
    world.change("a", ("a", 1), on_committed=lambda error: world.soft.pop("a"))
    world.runtime.flush()
    world.change("b", ("b", 1))
    world.runtime.advance(1)
    world.runtime.aftermath.when_settled(lambda: world.soft.__setitem__("outside", 1))
    world.log.error = ApiError(Errors.NOT_ENOUGH_REPLICAS)
    world.runtime.flush()
    assert world.seen() == ({"outside": 1}, {"a"}, ["a"])
    assert world.replies == [Errors.COORDINATOR_NOT_AVAILABLE, None]
