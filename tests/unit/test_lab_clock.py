"""The lab's clock on a virtual machine: what passes when, in which order, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.broker.alarm import Alarm
from ottla.broker.broker_schedule import BrokerSchedule
from ottla.broker.clock import Cancellable, VirtualSchedule
from ottla.broker.config.lab_clock import MACHINE, ClockStart, parse_clock
from ottla.broker.lab.clock import clock as clocks
from ottla.broker.lab.clock.advance import THREAD_MS_MAX, Advanced
from ottla.broker.lab.clock.clock import ClockBusy, LabClock
from ottla.broker.lab.clock.naming import name_of
from ottla.broker.turn import Turn

from ..support.machine import VirtualMachine


class Bench:
    """A schedule with a clock, and what was called at which of its times."""

    def __init__(self, start_ms: int | None = None, repeatable: bool = False) -> None:
        self.machine = VirtualMachine()
        self.machine.advance(500)
        self.schedule = BrokerSchedule(self.machine, repeatable)
        self.clock = LabClock(self.schedule, MACHINE if start_ms is None else ClockStart(0, start_ms))
        self.called: list[tuple[str, int]] = []

    def note(self, name: str) -> None:
        self.called.append((name, self.schedule.monotonic_ms()))

    def later(self, delay_ms: float, name: str) -> Cancellable:
        return self.schedule.later(delay_ms, partial(self.note, name))

    def advance(self, by_ms: float, events_max: int = 1000) -> Advanced:
        outcome = self.clock.advance(by_ms, events_max)
        self.machine.advance(1)
        return outcome.get()


def test_without_a_call_the_time_is_that_of_the_machine_itself() -> None:
    bench = Bench()
    assert bench.schedule.now_ms == bench.machine.wall_ms
    assert bench.schedule.monotonic_ms == bench.machine.uptime_ms
    bench.clock.show()
    bench.clock.system()
    assert bench.schedule.now_ms == bench.machine.wall_ms, "neither looking nor `system` changes anything"
    bench.later(20, "a")
    bench.later(10, "b")
    bench.machine.advance(30)
    assert bench.called == [("b", 510), ("a", 520)]


def test_frozen_time_stands_still_for_timers_that_were_pending_too() -> None:
    bench = Bench()
    bench.later(20, "before")
    bench.clock.freeze()
    before = bench.schedule.now_ms(), bench.schedule.monotonic_ms()
    bench.later(10, "after")
    bench.machine.advance(1000)
    assert (bench.schedule.now_ms(), bench.schedule.monotonic_ms()) == before
    assert bench.called == []
    bench.clock.system()
    bench.machine.advance(15)
    assert bench.called == [("after", 510)]
    bench.machine.advance(10)
    assert bench.called == [("after", 510), ("before", 520)]


def test_time_that_stands_still_from_the_start_on_is_the_one_that_was_given() -> None:
    class Slow(VirtualMachine):
        """Lets the process wait whenever it looks at the time."""

        def exact_uptime_ms(self) -> float:
            self.advance(3)
            return super().exact_uptime_ms()

    schedule = BrokerSchedule(Slow())
    LabClock(schedule, ClockStart(0, 1_000_000))
    assert (schedule.now_ms(), schedule.monotonic_ms()) == (1_000_000, 0)


def test_what_is_due_now_happens_while_time_stands_still() -> None:
    """A timer of no delay gives others a turn; it does not wait for time to pass."""
    bench = Bench()
    bench.clock.freeze()
    bench.later(0, "yield")
    bench.schedule.soon(partial(bench.note, "soon"))
    bench.machine.advance(0)
    assert bench.called == [("yield", 500), ("soon", 500)]


def test_at_a_rate_timers_fire_sooner_or_later() -> None:
    bench = Bench()
    bench.later(1000, "session")
    bench.clock.run(100)
    bench.machine.advance(9)
    assert bench.called == []
    bench.machine.advance(2)
    assert [name for name, _ in bench.called] == ["session"]
    bench.clock.run(0.01)
    now = bench.schedule.monotonic_ms()
    bench.later(10, "slow")
    bench.machine.advance(990)
    assert len(bench.called) == 1
    bench.machine.advance(20)
    assert bench.called[-1] == ("slow", now + 10)


def test_time_never_goes_back() -> None:
    bench = Bench()
    clock, seen = bench.clock, [(bench.schedule.now_ms(), bench.schedule.monotonic_ms())]
    changes: list[Callable[[], object]] = [
        clock.freeze, lambda: bench.advance(90_000), clock.system, lambda: clock.run(0.5), clock.freeze, clock.system,
        lambda: clock.run(7), lambda: bench.advance(0.5), clock.system,
    ]  # fmt: skip
    for change in changes:
        for passed_ms in (0, 0.3, 11):
            bench.machine.advance(passed_ms)
            seen.append((bench.schedule.now_ms(), bench.schedule.monotonic_ms()))
        change()
        seen.append((bench.schedule.now_ms(), bench.schedule.monotonic_ms()))
    assert seen == sorted(seen)
    walls, uptimes = zip(*seen, strict=True)
    assert list(uptimes) == sorted(uptimes)
    assert list(walls) == sorted(walls)
    assert clock.show()["offset_ms"] > 89_000, "after `system` the broker is ahead of the machine"


def test_an_advance_lets_everything_happen_at_its_own_time() -> None:
    bench = Bench()
    bench.clock.freeze()
    wall = bench.schedule.now_ms()

    def chain() -> None:
        bench.note("first")
        bench.later(5, "set by the first")
        bench.schedule.soon(partial(bench.note, "soon"))

    bench.schedule.later(10, chain)
    bench.later(12, "second")
    bench.later(45_001, "not yet")
    done = bench.advance(45_000)
    assert bench.called == [("first", 510), ("soon", 510), ("second", 512), ("set by the first", 515)]
    assert done == Advanced(45_000, 0, 4, None)
    assert bench.schedule.now_ms() == wall + 45_000
    assert bench.schedule.monotonic_ms() == 45_500
    bench.machine.advance(10)
    assert len(bench.called) == 4, "time stands still again"


def test_wall_time_moves_as_far_as_monotonic_time() -> None:
    """Also when the deadlines between have fractions, a thousand times."""
    bench = Bench()
    bench.machine.advance(0.7)
    bench.clock.freeze()
    wall_ms, uptime_ms = bench.schedule.now_ms(), bench.schedule.monotonic_ms()
    for n in range(1000):
        bench.later(n * 1.1, "x")
    for _ in range(10):
        bench.clock.freeze()
        bench.advance(110)
    assert bench.schedule.monotonic_ms() - uptime_ms == 1100
    assert bench.schedule.now_ms() - wall_ms == 1100


def test_an_advance_leaves_the_way_in_which_time_passes() -> None:
    bench = Bench()
    bench.later(100_010, "later")
    bench.advance(100_000)
    assert bench.clock.show()["mode"] == "system"
    bench.machine.advance(12)
    assert [name for name, _ in bench.called] == ["later"]


def test_threads_are_awaited_before_time_moves_on() -> None:
    bench = Bench()
    bench.clock.freeze()

    def sync() -> None:
        bench.schedule.in_thread(lambda: None, lambda _, error: bench.note("synced"))

    bench.schedule.later(10, sync)
    bench.later(11, "after")
    outcome = bench.clock.advance(20)
    bench.machine.advance(5)
    assert bench.called == [("synced", 510), ("after", 511)]
    assert outcome.done
    assert bench.schedule.running == 0


def test_a_thread_that_does_not_end_stops_the_advance() -> None:
    bench = Bench()
    bench.clock.freeze()
    ends: list[Callable[[None, None], None]] = []
    bench.machine.run_in_thread = lambda work, done: ends.append(done)  # type: ignore[method-assign]
    bench.schedule.in_thread(lambda: None, lambda _, error: bench.note("synced"))
    bench.later(10, "after")
    outcome = bench.clock.advance(20)
    bench.machine.advance(THREAD_MS_MAX - 1)
    assert not outcome.done
    assert bench.clock.show()["is_advancing"]
    bench.machine.advance(2)
    assert outcome.get() == Advanced(0, 20, 0, "threads")
    ends.pop()(None, None)
    assert bench.called == [("synced", 500)]
    assert bench.advance(20).stopped_by is None
    assert bench.called[1:] == [("after", 510)]


def test_an_advance_is_bounded_by_events_and_can_be_continued() -> None:
    bench = Bench()
    bench.clock.freeze()

    def tick() -> None:
        bench.note("tick")
        bench.schedule.later(10, tick)

    tick()
    assert bench.advance(1000, events_max=7) == Advanced(70, 930, 7, "events")
    assert bench.advance(930) == Advanced(930, 0, 93, None)


def test_an_advance_gives_the_loop_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's clock says that each look at it takes 3 ms: every slice of 5 ms is some calls long."""
    bench = Bench()
    bench.clock.freeze()
    looks = iter(range(0, 10**12, 3_000_000))
    bench.machine.work_ns = lambda: next(looks)
    turns, end_of_turn = list[int](), bench.machine.at_end_of_turn

    def counted(call: Callable[[], None]) -> object:
        turns.append(len(bench.called))
        return end_of_turn(call)

    bench.machine.at_end_of_turn = counted  # type: ignore[method-assign]
    for n in range(200):
        bench.later(n, "x")
    assert bench.advance(1000).events == 200
    assert len(turns) > 5
    assert max(b - a for a, b in zip(turns, turns[1:], strict=False)) <= 40


def test_an_advance_that_nothing_waits_for_stops_where_it_is() -> None:
    bench = Bench()
    bench.clock.freeze()
    ends: list[object] = []
    bench.machine.run_in_thread = lambda work, done: ends.append(done)  # type: ignore[method-assign]
    bench.schedule.later(10, lambda: bench.schedule.in_thread(lambda: None, lambda _, error: None))
    bench.later(50, "not reached")
    outcome = bench.clock.advance(100)
    bench.machine.advance(1)
    outcome.cancel()
    bench.machine.advance(100)
    assert bench.schedule.monotonic_ms() == 510
    assert not bench.clock.show()["is_advancing"]
    assert bench.called == []


def test_nothing_disturbs_an_advance() -> None:
    bench = Bench()
    bench.clock.freeze()
    bench.clock.advance(10)
    for change in (bench.clock.freeze, bench.clock.system, lambda: bench.clock.run(2), lambda: bench.clock.advance(1)):
        with pytest.raises(ClockBusy, match="an advance is going on"):
            change()
    bench.machine.advance(1)
    bench.clock.system()


def test_a_reset_stops_an_advance_and_lets_time_pass_as_at_the_start() -> None:
    bench = Bench()
    outcome = bench.clock.advance(100)
    bench.clock.reset()
    bench.machine.advance(1)
    assert outcome.get() == Advanced(0, 100, 0, "reset"), "who waits for it gets an answer"
    assert bench.clock.show()["mode"] == "system"
    frozen = Bench(start_ms=0)
    frozen.clock.run(2)
    frozen.clock.reset()
    assert frozen.clock.show()["mode"] == "frozen"


@pytest.mark.parametrize("rate", [0, 0.009, 1001, -1, float("nan"), float("inf")])
def test_rates_have_bounds(rate: float) -> None:
    with pytest.raises(ValueError, match=r"between 0\.01 and 1000"):
        Bench().clock.run(rate)


@pytest.mark.parametrize("by_ms", [-1, clocks.ADVANCE_MS_MAX + 1, float("nan"), float("inf")])
def test_spans_have_bounds(by_ms: float) -> None:
    with pytest.raises(ValueError, match="can pass"):
        Bench().clock.advance(by_ms)


def test_a_deadline_in_a_hundred_years_is_awaited_in_parts() -> None:
    bench, waits = Bench(), list[float]()
    after = bench.machine.after
    bench.machine.after = lambda delay_ms, call: (waits.append(delay_ms), after(delay_ms, call))[1]  # type: ignore[method-assign, func-returns-value]
    bench.later(100 * 365 * 86_400_000, "late")
    bench.clock.run(0.01)
    assert max(waits) <= 86_400_000
    bench.machine.advance(90_000_000)
    assert bench.called == []


def test_a_timer_that_fails_stops_nothing() -> None:
    bench = Bench()
    bench.clock.freeze()
    bench.schedule.later(1, lambda: 1 // 0)  # type: ignore[arg-type]
    bench.later(2, "next")
    bench.advance(5)
    assert bench.called == [("next", 502)]


def test_a_broker_can_begin_at_a_time_of_its_own() -> None:
    bench = Bench(start_ms=1_767_225_600_000)
    shown = bench.clock.show()
    assert (shown["now"], shown["monotonic_ms"], shown["mode"]) == ("2026-01-01T00:00:00.000Z", 0, "frozen")
    bench.advance(1500)
    assert bench.clock.show()["now"] == "2026-01-01T00:00:01.500Z"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("system", MACHINE),
        ("frozen", ClockStart(0)),
        ("frozen@2026-01-01T00:00:00Z", ClockStart(0, 1_767_225_600_000)),
        ("frozen@2026-01-01T01:00:00+01:00", ClockStart(0, 1_767_225_600_000)),
        ("frozen@2026-01-01", ClockStart(0, 1_767_225_600_000)),
        ("rate=0.5", ClockStart(0.5)),
        ("rate=1000@1767225600000", ClockStart(1000, 1_767_225_600_000)),
    ],
)
def test_a_start_is_parsed(text: str, start: ClockStart) -> None:
    assert parse_clock(text) == start


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((text, "must be system, frozen or rate=N") for text in ("", "freeze", "system@5", "frozen@", "rate")),
        *((f"rate={rate}", "a rate is a number between") for rate in ("", "x", "0", "1001", "nan")),
        *((f"frozen@{time}", "a time is ISO 8601") for time in ("noon", "1969-01-01", "9" * 16)),
    ],
)
def test_a_start_that_cannot_be_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_clock(text)


@pytest.mark.parametrize("repeatable", [False, True])
def test_nothing_fires_after_the_end(repeatable: bool) -> None:
    bench = Bench(start_ms=0, repeatable=repeatable)
    bench.later(5, "before")
    outcome = bench.clock.advance(100)
    bench.schedule.close()
    outcome.cancel()
    bench.later(0, "after")
    bench.clock.system()
    bench.machine.advance(1000)
    assert bench.called == []


def test_a_repeatable_schedule_has_no_threads_and_no_time_for_work() -> None:
    bench = Bench(start_ms=0, repeatable=True)
    bench.schedule.in_thread(lambda: 7, lambda result, error: bench.note(f"{result} {error}"))
    bench.schedule.in_thread(lambda: int("x"), lambda result, error: bench.note(f"{result} {error}"))
    work_ns = bench.schedule.work_ns()
    bench.machine.advance(3)
    assert bench.called == [("7 None", 0), ("None invalid literal for int() with base 10: 'x'", 0)]
    assert bench.schedule.work_ns() == work_ns


class Named:
    name = "t-0"

    def tick(self) -> None: ...


def test_the_next_deadlines_have_names() -> None:
    bench = Bench()
    turn, named = Turn(bench.schedule), Named()
    turn.later(30, named.tick)
    turn.every(lambda: 20, named.tick)
    Alarm(bench.schedule, partial(turn.event, named.tick)).set(510)
    bench.schedule.later(40, lambda: None)
    bench.schedule.later(5, lambda: None).cancel()
    shown = bench.clock.show(3)
    assert [(one["in_ms"], one["what"]) for one in shown["next"]] == [(at, "Named.tick of t-0") for at in (10, 20, 30)]
    assert shown["timers"] == 4
    assert name_of(lambda: None) == "test_the_next_deadlines_have_names"


class Timed(Protocol):
    def later(self, delay_ms: float, call: Callable[[], None]) -> Cancellable: ...

    def soon(self, call: Callable[[], None]) -> object: ...

    def monotonic_ms(self) -> int: ...


def plant(schedule: Timed, plan: Iterable[tuple[int, int, int]], fired: list[tuple[int, int]]) -> None:
    """Sets timers from a plan: delay, what it does when it fires, and a number for that."""
    timers: list[Cancellable] = []

    def fire(name: int, action: int, number: int) -> None:
        fired.append((name, schedule.monotonic_ms()))
        again = partial(fire, name + 1000, action // 4 if number else 0, number // 2)
        if action % 4 == 1:
            timers.append(schedule.later(number, again))
        elif action % 4 == 2:
            schedule.soon(again)
        elif action % 4 == 3:
            timers[number % len(timers)].cancel()

    for name, (delay_ms, action, number) in enumerate(plan):
        timers.append(schedule.later(delay_ms, partial(fire, name, action, number)))


PLANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255), st.integers(0, 40)), max_size=30)


@pytest.mark.long
@given(plan=PLANS, spans=st.lists(st.integers(0, 70), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_the_order_is_that_of_the_virtual_schedule(plan: list[tuple[int, int, int]], spans: list[int]) -> None:
    """Timers that set and cancel timers, or let something happen at the end of their turn."""
    virtual, wanted = VirtualSchedule(), list[tuple[int, int]]()
    plant(virtual, plan, wanted)
    bench, fired = Bench(start_ms=0), list[tuple[int, int]]()
    plant(bench.schedule, plan, fired)
    for span_ms in spans:
        virtual.advance(span_ms)
        bench.advance(span_ms)
        assert fired == wanted
        assert bench.schedule.monotonic_ms() == virtual.monotonic_ms()
