"""The runtime of a shard: what is appended, replayed, answered, and taken back."""

from __future__ import annotations

import sys
from functools import partial

import pytest
from ottla.coordinator.aftermath import Aftermath
from ottla.coordinator.batch import APPEND_ERRORS
from ottla.coordinator.journal import Journal
from ottla.coordinator.parked import Bugs
from ottla.coordinator.shard import Decision, Result
from ottla.protocol.control import Marker
from ottla.protocol.errors import ApiError, Errors
from ottla.protocol.records import Template

from ..support.shards import FakeLog, World


def test_a_reply_waits_for_the_high_watermark() -> None:
    world = World()
    world.write(("a", 1))
    world.write(("a", 2), ("b", 3), reply="second")
    world.runtime.flush()
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
    world.runtime.flush()

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
    world.runtime.flush()
    world.write(reply="another")
    assert world.replies == ["at once"]
    world.runtime.advance(1)
    assert world.replies == ["at once", "write", "read of it", "another"]


@pytest.mark.parametrize(("code", "told"), list(APPEND_ERRORS.items()))
def test_a_failed_append_reverts_its_batch_and_no_other(code: int, told: int) -> None:
    world = World()
    world.write(("a", 1))
    world.runtime.flush()
    world.log.error = ApiError(code)
    world.write(("a", 2))
    world.write(("b", 2))
    world.runtime.flush()
    assert world.replies == [told, told]
    assert world.shard.values.get("a") == 1
    assert "b" not in world.shard.values
    world.log.error = None
    world.write(("b", 5), reply="later")
    world.runtime.flush()
    world.runtime.advance(2)
    assert world.replies == [told, told, "ok", "later"]


def test_a_handler_that_decides_against_it_changes_nothing() -> None:
    world = World()

    def refuse() -> Result:
        raise ApiError(Errors.GROUP_ID_NOT_FOUND)

    world.runtime.write("test", refuse, world.answered, 0)
    assert world.replies == [Errors.GROUP_ID_NOT_FOUND]
    assert world.log.batches == []


def test_a_bug_in_a_handler_or_in_replay_answers_and_leaves_the_state_as_it_was() -> None:
    world = World()
    bugs: list[tuple[str, Exception]] = []
    world.runtime.bugs.on_bug = lambda name, bug: bugs.append((name, bug))
    world.runtime.write("test", lambda: Result([1 / 0]), world.answered, 0)
    world.write(("a", 1), reply="same batch")
    world.write(("b", b"poison"))
    assert world.replies == [Errors.UNKNOWN_SERVER_ERROR] * 3
    assert len(bugs) == world.runtime.bugs.count == 2
    assert {name for name, _ in bugs} == {"test"}, "the name of the write"
    assert "a" not in world.shard.values
    world.write(("c", 1))
    world.runtime.flush()
    world.runtime.advance(1)
    assert world.replies[-1] == "ok"


def test_sizes_are_checked_before_replay() -> None:
    world = World()
    world.write(("a", b"1" * 2000))
    assert world.replies == [Errors.UNKNOWN_SERVER_ERROR]
    assert "a" not in world.shard.values
    for n in range(100):
        world.write((f"key-{n:050}", n))
    world.runtime.flush()
    assert len(world.log.batches) > 5, "a full batch is flushed and another begun"
    assert world.log.end == 100


def test_a_transactional_write_is_a_batch_of_its_own_and_goes_at_once() -> None:
    world = World()
    world.write(("a", 1))
    world.write(("t", 2), template=Template(producer_id=9, producer_epoch=3, transactional=True))
    assert [(b.record_count, b.producer_id, b.is_transactional) for b in world.log.batches] == [
        (1, -1, False),
        (1, 9, True),
    ]


def test_a_marker_is_appended_and_replayed_in_one_step() -> None:
    world = World()
    world.write(("a", 1))

    def append() -> tuple[int, int]:
        world.log.end += 1
        return world.log.end - 1, world.log.end

    world.runtime.append_marker(append, 9, 0, Marker(True, 1), world.answered, 0)
    assert world.shard.markers == [(1, 9, True)], "after the write before it"
    world.runtime.advance(2)
    assert world.replies == ["ok", None]


def test_a_marker_that_ends_very_much_is_replayed_in_steps() -> None:
    """It is in the log, and nothing else is written or committed until all of it is in the state."""
    world = World()
    runtime = world.runtime
    world.write(("a", 1))
    world.shard.marker_steps = 3

    def append() -> tuple[int, int]:
        world.log.end += 1
        return world.log.end - 1, world.log.end

    runtime.append_marker(append, 9, 0, Marker(True, 1), world.answered, 0)
    runtime.advance(2)
    assert (runtime.committed_offset, world.replies) == (0, [])
    runtime.go_on()
    assert runtime.long is not None
    assert runtime.last_written_offset == 1
    runtime.go_on()
    assert runtime.long is None
    runtime.flush()
    assert (runtime.committed_offset, world.replies) == (2, ["ok", None])


def test_a_marker_whose_steps_are_under_way_may_be_forgotten_and_is_answered_when_the_shard_closes() -> None:
    for closes in (True, False):
        world = World()
        runtime = world.runtime
        world.shard.marker_steps = 2

        def append(log: FakeLog = world.log) -> tuple[int, int]:
            log.end += 1
            return log.end - 1, log.end

        parked = runtime.append_marker(append, 9, 0, Marker(True, 1), world.answered, 0)
        assert parked is not None
        if closes:
            runtime.close()
            assert world.replies == [Errors.NOT_COORDINATOR]
            continue
        runtime.forget(parked)
        runtime.go_on()
        world.write(("a", 1))
        runtime.flush()
        runtime.advance(2)
        assert world.replies == ["ok"]
        assert runtime.describe(0)["parked_replies"] == 0


def test_what_was_appended_before_a_long_write_has_its_effects_also_if_the_shard_closes_meanwhile() -> None:
    world = World()
    runtime, answered = world.runtime, []

    def decision() -> Decision[None]:
        yield
        yield
        return Result()

    def joins() -> Result:
        runtime.journal.after(lambda: answered.append("the reply to another request"))
        return Result([("a", 1)])

    runtime.write("test", joins, world.answered, 0)
    runtime.write("test", decision, world.answered, 0)
    runtime.go_on()
    assert runtime.long is not None
    assert runtime.last_written_offset == 1
    runtime.close()
    assert answered == ["the reply to another request"]
    assert world.replies == [Errors.NOT_COORDINATOR] * 2


def test_a_reply_that_waits_too_long_leaves_with_an_error_and_its_records_stay() -> None:
    world = World()
    world.write(("a", 1), deadline_ms=50)
    world.runtime.flush()
    assert world.runtime.next_deadline_ms() == 10, "the timer of on_loaded comes first"
    world.runtime.tick(50)
    assert world.replies == [Errors.REQUEST_TIMED_OUT]
    world.runtime.flush()
    world.runtime.advance(2)
    assert world.replies == [Errors.REQUEST_TIMED_OUT], "once is enough"
    assert world.runtime.read(lambda offset: world.shard.values.get("a", as_of=offset)) == 1


def test_every_batch_has_the_wall_time_also_one_that_is_written_at_once() -> None:
    """Writes come with monotonic times; retention and readers need the time of day."""
    world = World()
    world.write(("a", 1))
    world.write(("t", 2), template=Template(producer_id=9, producer_epoch=3, transactional=True))
    world.write(("b", 3))
    world.runtime.flush()
    assert [batch.base_timestamp for batch in world.log.batches] == [world.log.wall_ms] * 3


def test_a_timer_is_a_write_and_is_tried_again_when_its_append_fails() -> None:
    world = World()
    world.log.error = ApiError(Errors.NOT_ENOUGH_REPLICAS)
    world.runtime.tick(10)
    world.runtime.flush()
    assert "timer" not in world.shard.values
    world.log.error = None
    world.runtime.tick(510)
    world.runtime.flush()
    assert world.shard.values.get("timer") == 1


def test_effects_that_cause_others_are_carried_out_one_after_another() -> None:
    """However many there are: each may make a write, whose effects come after those that wait."""
    bugs, seen = Bugs(), list[str]()
    aftermath = Aftermath(Journal(), bugs)

    def effect(number: int) -> None:
        seen.append(f"effect {number}")
        aftermath.effects.append(lambda: seen.append(f"of {number}"))
        aftermath.carry_out()

    count = 2 * sys.getrecursionlimit()
    aftermath.effects.extend(partial(effect, number) for number in range(count))
    aftermath.when_settled(lambda: seen.append("at once"))
    aftermath.carry_out()
    assert seen == ["at once", *(f"{what} {n}" for what in ("effect", "of") for n in range(count))]
    assert bugs.count == 0
