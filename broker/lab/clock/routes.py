"""The clock: shows it, and lets time stand still or pass."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Literal, TypedDict, cast

from ...config.lab_clock import RATE_MAX, RATE_MIN
from ...later import Later, after
from ..lab import Lab
from ..routes import Refused, route
from ..shapes import Invalid, Millis, Range
from .advance import Advanced
from .clock import ADVANCE_MS_MAX, EVENTS_MAX, NEXT_MAX, ClockBusy, ClockView, LabClock

DEADLINES_MAX = 1000


@dataclass(frozen=True)
class ShowClock:
    """What to show of the clock."""

    deadlines: Annotated[int, "How many of the next deadlines.", Range(0, DEADLINES_MAX)] = NEXT_MAX


@dataclass(frozen=True)
class SetClock:
    """How time passes from now on."""

    mode: Annotated[
        Literal["frozen", "rate", "system"],
        "`frozen`: time stands still; `rate`: it passes faster or slower than the machine's; `system`: as the "
        "machine's, from where it is.",
    ]
    rate: Annotated[float | None, "How many milliseconds pass in one of the machine's.", Range(RATE_MIN, RATE_MAX)] = (
        None
    )

    def __post_init__(self) -> None:
        if (self.rate is not None) != (self.mode == "rate"):
            raise Invalid("rate", "must be given with the mode rate, and only with it")


@dataclass(frozen=True)
class AdvanceClock:
    """A span of time that passes at once."""

    span: Annotated[Millis, "How much time passes, such as 45s.", Range(0, ADVANCE_MS_MAX)]
    events_max: Annotated[int, "How many events the span may have; then it ends early.", Range(1)] = EVENTS_MAX


class AdvancedView(TypedDict):
    """How a span passed. `events`: the timers that fired, and what they caused at the end of their turns. `stopped_by`:
    why some of it is left: the events were too many, a thread has not ended, or the lab was reset.
    """

    advanced_ms: float
    left_ms: float
    events: int
    stopped_by: Literal["events", "threads", "reset"] | None


class ClockAnswer(TypedDict):
    """How a span passed, and the time of the broker afterwards."""

    advanced: AdvancedView
    clock: ClockView


class ClockPart:
    """The server's clock as a part of the lab."""

    def __init__(self, lab: Lab) -> None:
        self.clock = lab.server.clock()
        self.reset = self.clock.reset


def _clock(lab: Lab) -> LabClock:
    return lab.part(ClockPart).clock


@route("GET /v1/clock", example=ShowClock())
def show_clock(lab: Lab, asked: ShowClock) -> ClockView:
    """Shows what time it is for the broker, and what is due next."""
    return _clock(lab).show(asked.deadlines)


BUSY = {409: "an advance is going on"}


@route("PUT /v1/clock", example=SetClock("system"), errors=BUSY)
def set_clock(lab: Lab, asked: SetClock) -> ClockView:
    """Lets the time of the broker stand still, or pass at a rate, or as the machine's. It never goes back."""
    found = _clock(lab)
    try:
        if asked.rate is not None:
            found.run(asked.rate)
        elif asked.mode == "frozen":
            found.freeze()
        else:
            found.system()
    except ClockBusy as error:
        raise Refused(409, str(error)) from None
    return found.show()


@route("POST /v1/clock", example=AdvanceClock(1_000), errors=BUSY)
def advance_clock(lab: Lab, asked: AdvanceClock) -> Later[ClockAnswer]:
    """Lets a span of time pass at once; answers when everything that was due has happened. Then time passes as before.
    A request that is aborted stops it.
    """
    found = _clock(lab)
    try:
        advanced = found.advance(asked.span, asked.events_max)
    except ClockBusy as error:
        raise Refused(409, str(error)) from None

    def view(done: Later[Advanced]) -> ClockAnswer:
        return ClockAnswer(advanced=cast(AdvancedView, asdict(done.get())), clock=found.show())

    return after(advanced, view)
