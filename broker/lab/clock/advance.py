"""Lets a span of time pass at once: everything that is due happens in the order of the deadlines, at its own time.

What a timer causes at the end of its turn happens before the time moves on, and so does what it lets a thread do. The
work is done in slices, between which the loop serves connections. So what clients send meanwhile is served at the time
that has been reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ... import bugs
from ...broker_schedule import BrokerSchedule
from ...later import Later
from ...machine import Handle
from .lab_time import LabTime

SLICE_NS = 5_000_000
CALLS_AT_ONCE = 16  # between two looks at the machine's time
THREAD_MS_MAX = 30_000  # of the machine's time, to wait for threads


@dataclass(frozen=True, slots=True)
class Advanced:
    """How far the time has come. `events`: the timers that fired, and what they caused at the end of their turns.
    `stopped_by`: why the rest did not pass: the `events` were too many, `threads` took too long,
    or there was a `reset`.
    """

    advanced_ms: float
    left_ms: float
    events: int
    stopped_by: str | None


class Advance:
    """One span. The time must stand still; it moves until `outcome` is complete. Cancelling that stops it."""

    def __init__(self, schedule: BrokerSchedule, time: LabTime, by_ms: float, events_max: int) -> None:
        self.outcome: Later[Advanced] = Later()
        self.outcome.on_cancel = self._end
        self.on_end: Callable[[], None] = lambda: None
        self._schedule = schedule
        self._time = time
        self._began_ms = time.exact_ms()
        self._until_ms = self._began_ms + by_ms
        self._events_max = events_max
        self.events = 0
        self._patience: Handle | None = None
        self._is_due = self._has_ended = False

    @property
    def advanced_ms(self) -> float:
        return self._time.exact_ms() - self._began_ms

    def begin(self) -> None:
        self._schedule.hand_over(self._wake)
        self._wake()

    def stop(self) -> None:
        """Ends early, at the time that has been reached."""
        self._finish("reset")

    def _wake(self) -> None:
        """Runs a slice in the next turn of the loop."""
        if not self._is_due and not self._has_ended:
            self._is_due = True
            self._schedule.machine.at_end_of_turn(self._slice)

    def _slice(self) -> None:
        self._is_due = False
        if self._has_ended:
            return
        machine = self._schedule.machine
        until_ns = machine.work_ns() + SLICE_NS
        while machine.work_ns() < until_ns:
            for _ in range(CALLS_AT_ONCE):
                if not self._step():
                    return
        self._wake()

    def _step(self) -> bool:
        """Lets the next thing happen; returns False if nothing can happen at once."""
        timers, now_ms = self._schedule.timers, self._time.exact_ms()
        next_ms = timers.next_ms()
        if next_ms > now_ms and self._schedule.running:
            self._wait_for_threads()
            return False
        self._end_patience()
        if next_ms > self._until_ms:
            self._time.jump(self._until_ms)
            self._finish(None)
            return False
        if self.events >= self._events_max:
            self._finish("events")
            return False
        if next_ms > now_ms:
            self._time.jump(next_ms)
        call = timers.pop(next_ms, timers.last)
        assert call is not None
        self.events += 1
        bugs.guarded("a timer", call)
        return True

    def _wait_for_threads(self) -> None:
        if self._patience is None:
            self._patience = self._schedule.machine.after(THREAD_MS_MAX, self._give_up)

    def _end_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        self._finish("threads")

    def _finish(self, stopped_by: str | None) -> None:
        advanced_ms = self.advanced_ms
        self._end()
        left_ms = self._until_ms - self._began_ms - advanced_ms
        self.outcome.finish(Advanced(advanced_ms, left_ms, self.events, stopped_by))

    def _end(self) -> None:
        """Gives the timers back; the time stays where it is."""
        self._has_ended = True
        self._end_patience()
        self._schedule.take_back()
        self.on_end()
