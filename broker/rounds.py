"""What the broker does at intervals, while there is something to do.

A round that says when it has something to do next rests until then: it has no timer, or one for that time. Any event
may change what it said, so an event wakes the rounds that rest. Each runs at the times at which it would run without
resting. So a broker to which nothing happens has next to no timers, and lets a year pass in seconds.

Where there is very much to look at, a round looks in steps, one in a turn of the loop, which are no events: they wake
nothing. What happens meanwhile may change what it has seen, so that it does its work without having seen all.

A rest ends after an hour at the latest, because wall time may pass without monotonic time: the machine slept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Protocol, TypeVar

from . import bugs
from .clock import Cancellable, Schedule

T = TypeVar("T")
REST_MS_MAX = 3_600_000
LOOK_STEP = 1024  # parts that a round looks at in a turn of the loop
Due = float | Iterator[float]
"""The monotonic time at which there is something to do, if nothing happens before; infinity for never. Or such a time
of each part of what a round looks at, the earliest of which counts.
"""


class Events(Protocol):
    """The turn, of which a round uses this."""

    schedule: Schedule
    stopped: bool
    resting: dict[Round, None]

    def event(self, call: Callable[[], object]) -> None: ...


class Round:
    """One thing to do. `due_ms`: returns when there is something to do. None: always at the next interval."""

    __slots__ = ("_at_ms", "_events", "_look", "_timer", "call", "due_ms", "interval_ms")

    def __init__(
        self,
        events: Events,
        interval_ms: Callable[[], float],
        call: Callable[[], object],
        due_ms: Callable[[], Due] | None,
    ) -> None:
        self._events = events
        self.interval_ms = interval_ms
        self.call = call
        self.due_ms = due_ms
        self._at_ms = 0  # when it ran last, or would have
        self._timer: Cancellable | None = None  # of a round that rests
        self._look: Iterator[float] | None = None  # what is left to look at

    def begin(self, delay_ms: float) -> None:
        self._events.schedule.later(delay_ms, partial(self._fire, self.call))

    def _fire(self, _: Callable[[], object]) -> None:
        """The argument names, for the view of the clock, what is called."""
        events, schedule = self._events, self._events.schedule
        if events.stopped:
            return
        self._timer = None
        events.resting.pop(self, None)
        self._at_ms = now_ms = schedule.monotonic_ms()
        due_ms = now_ms if self.due_ms is None else self._due_ms(self.due_ms)
        if isinstance(due_ms, Iterator):
            self._look = due_ms
            return self._go_on(self.call, math.inf)
        self._decide(due_ms)

    def _go_on(self, _: Callable[[], object], due_ms: float) -> None:
        """Looks at the next parts. `due_ms`: the earliest time of those before."""
        events, look = self._events, self._look
        if events.stopped:
            return
        events.resting.pop(self, None)
        if look is None:  # something has happened
            return self._decide(-math.inf)
        found = self._told(lambda: list(islice(look, LOOK_STEP)), [-math.inf])
        due_ms = min([due_ms, *found])
        if len(found) == LOOK_STEP and due_ms > events.schedule.monotonic_ms():
            events.resting[self] = None
            events.schedule.soon(partial(self._go_on, self.call, due_ms))
            return
        self._look = None
        self._decide(due_ms)

    def _decide(self, due_ms: float) -> None:
        """Does the work if it is due, or rests."""
        events, now_ms = self._events, self._events.schedule.monotonic_ms()
        if due_ms <= now_ms:
            self.begin(self.interval_ms())
            events.event(self.call)
            return
        events.resting[self] = None
        if due_ms < math.inf:
            self._timer = self._await(min(due_ms, now_ms + REST_MS_MAX))

    def _due_ms(self, due_ms: Callable[[], Due]) -> Due:
        now: Due = -math.inf
        return self._told(due_ms, now)

    @staticmethod
    def _told(ask: Callable[[], T], now: T) -> T:
        """Returns what is answered, or `now` after an exception."""
        try:
            return ask()
        except Exception as error:
            bugs.report("a round that may rest", error)
            return now

    def wake(self) -> None:
        if self._look is not None:
            self._look = None
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._await(self._at_ms)

    def _await(self, due_ms: float) -> Cancellable:
        """Sets a timer for the end of the first interval that is not over, or ends right now, and ends at `due_ms` or
        later.
        """
        interval_ms, now_ms = max(1.0, self.interval_ms()), self._events.schedule.monotonic_ms()
        ends = max(1, math.ceil((max(now_ms, due_ms) - self._at_ms) / interval_ms))
        return self._events.schedule.later(self._at_ms + ends * interval_ms - now_ms, partial(self._fire, self.call))
