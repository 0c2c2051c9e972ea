"""Waiting: a reply that comes after some time of the broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypedDict

from ..later import Later
from .lab import Lab
from .routes import route
from .shapes import Millis


@dataclass(frozen=True)
class Wait:
    """A time to wait."""

    duration: Annotated[Millis, "How long, by the broker's clock."]


class WaitedView(TypedDict):
    """How long the request waited, by the broker's clock."""

    waited_ms: int


@route("POST /v1/wait", example=Wait(50))
def wait(lab: Lab, asked: Wait) -> Later[WaitedView]:
    """Answers after some time of the broker's clock."""
    later: Later[WaitedView] = Later()
    schedule = lab.broker.schedule
    began_ms = schedule.monotonic_ms()
    timer = schedule.later(
        asked.duration, lambda: later.finish(WaitedView(waited_ms=schedule.monotonic_ms() - began_ms))
    )
    later.on_cancel = timer.cancel
    return later
