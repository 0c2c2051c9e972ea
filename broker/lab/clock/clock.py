"""The lab's clock: the one door to the time of a broker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypedDict

from ...broker_schedule import BrokerSchedule
from ...config.lab_clock import MACHINE, RATE_MAX, RATE_MIN, ClockStart
from ...later import Later
from .advance import Advance, Advanced
from .lab_time import LabTime, Mode
from .naming import name_of

EVENTS_MAX = 10_000_000  # of one advance, unless the caller says otherwise
ADVANCE_MS_MAX = 10 * 365 * 86_400_000
NEXT_MAX = 10
_EPOCH = datetime.fromtimestamp(0, UTC)


class ClockBusy(Exception):
    """An advance is going on, which no other change may disturb."""


class DeadlineView(TypedDict):
    """A timer that is pending. `what`: what it calls."""

    in_ms: float
    what: str


class ClockView(TypedDict):
    """What time it is for the broker. `offset_ms`: how far its wall time is ahead of the machine's. `is_advancing`: an
    advance is going on, and the time has come this far.
    """

    now_ms: int
    now: str
    monotonic_ms: int
    mode: str
    rate: float
    offset_ms: int
    is_advancing: bool
    timers: int
    next: list[DeadlineView]


class LabClock:
    """The clock of one broker. It changes nothing before the first call of `freeze`, `run` or `advance`.

    `start`: how it stands at first.
    """

    def __init__(self, schedule: BrokerSchedule, start: ClockStart = MACHINE) -> None:
        self._schedule = schedule
        self._start = start
        self._made: LabTime | None = None
        self._advance: Advance | None = None
        if start != MACHINE:
            mode = Mode.RATE if start.rate else Mode.FROZEN
            self._made = LabTime(schedule.machine, start.start_ms, mode, start.rate)
            schedule.follow(self._made)

    def show(self, count: int = NEXT_MAX) -> ClockView:
        """Returns the time, and the next `count` deadlines."""
        schedule, time = self._schedule, self._made or LabTime(self._schedule.machine)
        now_ms, exact_ms = schedule.now_ms(), time.exact_ms()
        return ClockView(
            now_ms=now_ms,
            now=_text(now_ms),
            monotonic_ms=schedule.monotonic_ms(),
            mode=time.mode.value,
            rate=time.rate,
            offset_ms=time.offset_ms,
            is_advancing=self._advance is not None,
            timers=len(schedule.timers),
            next=[
                DeadlineView(in_ms=round(max(0.0, deadline_ms - exact_ms), 3), what=name_of(call))
                for deadline_ms, call in schedule.timers.first(count)
            ],
        )

    def freeze(self) -> None:
        """Lets the time stand still. Raises ClockBusy."""
        self._change(Mode.FROZEN, 0)

    def run(self, rate: float) -> None:
        """Lets `rate` milliseconds pass in each of the machine's. Raises ClockBusy, or ValueError for a rate that is
        not between 0.01 and 1000.
        """
        if not RATE_MIN <= rate <= RATE_MAX:
            raise ValueError(f"the rate must be between {RATE_MIN:g} and {RATE_MAX:g}, not {rate:g}")
        self._change(Mode.RATE, rate)

    def system(self) -> None:
        """Lets the time pass as the machine's, from where it is: it does not go back. Raises ClockBusy."""
        if self._made is not None:
            self._change(Mode.SYSTEM, 1)

    def reset(self) -> None:
        """Lets the time pass as at the start, from where it is; stops an advance."""
        if self._advance is not None:
            self._advance.stop()
        if self._start.rate == 0:
            self.freeze()
        elif self._start == MACHINE:
            self.system()
        else:
            self.run(self._start.rate)

    def advance(self, by_ms: float, events_max: int = EVENTS_MAX) -> Later[Advanced]:
        """Lets `by_ms` pass at once. Completes when everything that was due has happened, or when `events_max` is
        reached. Then time passes as before. Raises ClockBusy or ValueError.
        """
        if not 0 <= by_ms <= ADVANCE_MS_MAX:
            raise ValueError(f"a time between 0 and {ADVANCE_MS_MAX} ms can pass, not {by_ms:g} ms")
        time = self._free()
        mode, rate = time.mode, time.rate
        time.change(Mode.FROZEN, 0)
        self._schedule.follow(time)
        self._advance = advance = Advance(self._schedule, time, by_ms, events_max)

        def ended() -> None:
            self._advance = None
            if mode is not Mode.FROZEN:
                self._change(mode, rate)

        advance.on_end = ended
        advance.begin()
        return advance.outcome

    def _free(self) -> LabTime:
        """Raises ClockBusy."""
        if self._advance is not None:
            raise ClockBusy(f"an advance is going on: {self._advance.advanced_ms:.0f} ms have passed")
        if self._made is None:
            self._made = LabTime(self._schedule.machine)
        return self._made

    def _change(self, mode: Mode, rate: float) -> None:
        time = self._free()
        time.change(mode, rate)
        self._schedule.follow(time)


def _text(now_ms: int) -> str:
    """Returns a wall time in ISO 8601, also one that is later than the calendar goes."""
    try:
        return (_EPOCH + timedelta(milliseconds=now_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return f"{now_ms} ms"
