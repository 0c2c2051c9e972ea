"""The broker's time, timers and threads as an injected dependency: those of a process (`broker_schedule.py`), and
virtual ones for deterministic runs.

Wall time (`now_ms`) is for timestamps, retention and expiry; monotonic time (`monotonic_ms`) is for waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from .timer_queue import Timer, TimerQueue

T = TypeVar("T")


class Cancellable(Protocol):
    def cancel(self) -> object: ...


class Schedule(Protocol):
    """The time, timers and threads that the broker uses. `is_machines`: whether the wall time is the machine's."""

    is_machines: bool

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...

    def work_ns(self) -> int:
        """Returns a clock for the time that work takes: how long a step may last, how much of the processor a request
        used, how often a line is logged. No clock of the lab changes it.
        """

    def later(self, delay_ms: float, call: Callable[[], None]) -> Cancellable: ...

    def soon(self, call: Callable[[], None]) -> object:
        """Calls at the end of this turn, before the loop waits."""

    def in_thread(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """Runs `work` in a thread, and then `done` on the loop with its result or its exception."""

    def run_all(self, work: list[Callable[[], object]]) -> list[BaseException | None]:
        """Runs everything in `work` in threads, several at a time, and waits; returns the exception of each."""


def monotonic_at(schedule: Schedule, wall_ms: float) -> float:
    """Returns the monotonic time at which it is a wall time, if neither clock is set before."""
    return schedule.monotonic_ms() - schedule.now_ms() + wall_ms


class VirtualSchedule:
    """Time that advances only by `advance`. Threads are calls one millisecond later."""

    THREAD_MS = 1

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self.is_machines = False
        self._start_ms = start_ms
        self.elapsed_ms = 0.0
        self.timers = TimerQueue()

    def now_ms(self) -> int:
        return self._start_ms + int(self.elapsed_ms)

    def monotonic_ms(self) -> int:
        return int(self.elapsed_ms)

    def work_ns(self) -> int:
        return int(self.elapsed_ms * 1e6)

    def later(self, delay_ms: float, call: Callable[[], None]) -> Timer:
        return self.timers.add(self.elapsed_ms + max(0.0, delay_ms), call)

    def soon(self, call: Callable[[], None]) -> Timer:
        return self.later(0, call)

    def in_thread(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        def run() -> None:
            try:
                result = work()
            except Exception as error:
                done(None, error)
            else:
                done(result, None)

        self.later(self.THREAD_MS, run)

    def run_all(self, work: list[Callable[[], object]]) -> list[BaseException | None]:
        errors: list[BaseException | None] = []
        for one in work:
            try:
                one()
            except Exception as error:
                errors.append(error)
            else:
                errors.append(None)
        return errors

    def advance(self, by_ms: float) -> None:
        """Runs everything that is due within the next `by_ms`, in order."""
        until = self.elapsed_ms + by_ms
        while self.timers.next_ms() <= until:
            self.take_next()()
        self.elapsed_ms = until

    def take_next(self) -> Callable[[], None]:
        """Goes to the next deadline, of which there must be one; returns what is called then."""
        self.elapsed_ms = max(self.elapsed_ms, self.timers.next_ms())
        call = self.timers.pop(self.elapsed_ms, self.timers.last)
        assert call is not None
        return call
