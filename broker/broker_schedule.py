"""The broker's time, timers and threads in a process: those of the machine, until a clock of the lab is followed.

All timers are in one queue of ours, and one timer of the loop waits for the first of them. That is cheaper than a timer
of the loop for each (most are cancelled soon), and it lets the time change while timers are pending: only the one timer
of the loop depends on how fast the time passes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from . import bugs
from .clock import Cancellable
from .machine import Done, Handle, MachineTime
from .timer_queue import Timer, TimerQueue

T = TypeVar("T")
WAIT_MS_MAX = 86_400_000  # the alarm may ring before anything is due


class Time(Protocol):
    """The time of a broker. `rate`: how many milliseconds pass in one of the machine's; 0 while time stands still."""

    rate: float

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...

    def exact_ms(self) -> float:
        """Returns the monotonic time with its fractions."""


class BrokerSchedule:
    """A `Schedule`. What reads the time must ask for it each time: which function that is changes with `follow`.

    `running`: how many threads work for the broker. `repeatable`: a run depends on nothing but its input. What would
    run in a thread runs on the loop, work takes no time, and everything that an event causes at its time happens before
    the loop looks for input again.
    """

    def __init__(self, machine: MachineTime, repeatable: bool = False) -> None:
        self.machine = machine
        self.timers = TimerQueue()
        self.running = 0
        self.is_machines = True
        self.now_ms: Callable[[], int] = machine.wall_ms
        self.monotonic_ms: Callable[[], int] = machine.uptime_ms
        self.work_ns: Callable[[], int] = machine.work_ns
        self.soon: Callable[[Callable[[], None]], object] = machine.at_end_of_turn
        self.run_all = machine.run_all
        self._exact_ms: Callable[[], float] = machine.exact_uptime_ms
        self._rate = 1.0
        self._alarm: Handle | None = None
        self._alarm_ms = math.inf  # for when it is set
        self._wake: Callable[[], None] | None = None  # of what runs the timers instead of the alarm
        self._repeatable = repeatable
        self._closed = False
        if repeatable:
            self.work_ns, self.soon = self._no_work, self._as_timer

    def later(self, delay_ms: float, call: Callable[[], None]) -> Timer:
        now_ms = self._exact_ms()
        deadline_ms = now_ms + delay_ms if delay_ms > 0 else now_ms
        timer = self.timers.add(deadline_ms, call)
        if deadline_ms < self._alarm_ms:
            self._await(deadline_ms, now_ms)
        return timer

    def in_thread(self, work: Callable[[], T], done: Done[T]) -> None:
        self.running += 1

        def ended(result: T | None, error: BaseException | None) -> None:
            self.running -= 1
            try:
                done(result, error)
            finally:
                if self._wake is not None:
                    self._wake()

        if self._repeatable:
            self.soon(partial(_run, work, ended))
        else:
            self.machine.run_in_thread(work, ended)

    def _no_work(self) -> int:
        """Returns the broker's time as the clock of work: a step of work never takes long."""
        return int(self._exact_ms()) * 1_000_000

    def close(self) -> None:
        """Lets no timer fire any more: what the loop still does after the end concerns logs that are closed."""
        self._closed = True
        self._await_next()

    # the time that passes

    def follow(self, time: Time) -> None:
        """Takes the time from `time` from now on, which must not be before the present time. Timers that are pending
        keep their deadlines. Call it again when its rate has changed.
        """
        self.is_machines = False
        self.now_ms, self.monotonic_ms, self._exact_ms = time.now_ms, time.monotonic_ms, time.exact_ms
        self._rate = time.rate
        self._await_next()

    def _await_next(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._alarm_ms = None, math.inf
        next_ms = self.timers.next_ms()
        if next_ms < math.inf:
            self._await(next_ms, self._exact_ms())

    def _await(self, deadline_ms: float, now_ms: float) -> None:
        """Sets the alarm to a deadline that is earlier than the one that it is set to."""
        if self._closed:
            return
        if self._wake is not None:
            if deadline_ms <= now_ms:
                self._wake()
            return
        if deadline_ms <= now_ms:
            wait_ms = 0
        elif self._rate:
            wait_ms = min(WAIT_MS_MAX, math.ceil((deadline_ms - now_ms) / self._rate))
        else:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_ms = deadline_ms
        self._alarm = self.machine.after(wait_ms, self._ring)

    def _ring(self) -> None:
        self._alarm, self._alarm_ms = None, -math.inf
        now_ms, last = self._exact_ms(), self.timers.last
        if self._repeatable:  # everything that follows too, before the loop looks for input
            last = sys.maxsize
        while (call := self.timers.pop(now_ms, last)) is not None:
            bugs.guarded("a timer", call)
        self._await_next()

    # timers that someone else runs

    def hand_over(self, wake: Callable[[], None]) -> None:
        """Leaves the timers, and what is called at the end of a turn, to the caller, until `take_back`. `wake` is
        called when there is something to run at the present time, or when a thread has ended.
        """
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._alarm_ms, self._wake = None, math.inf, wake
        self.soon = self._as_timer

    def take_back(self) -> None:
        self._wake = None
        self.soon = self._as_timer if self._repeatable else self.machine.at_end_of_turn
        self._await_next()

    def _as_timer(self, call: Callable[[], None]) -> Cancellable:
        return self.later(0, call)


def _run(work: Callable[[], T], done: Done[T]) -> None:
    try:
        result = work()
    except Exception as error:
        done(None, error)
    else:
        done(result, None)
