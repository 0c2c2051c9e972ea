"""`ottla clock`: shows and changes the time of a running broker, through its lab port."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from .clock import ADVANCE_S_MAX
from .lab_client import Lab
from .lab_output import Shown, lab_command, table
from .protocol.text import printable

if TYPE_CHECKING:
    from .broker.lab.clock.clock import ClockView
    from .broker.lab.clock.routes import AdvancedView, ClockAnswer

EXIT_NOT_ALL = 1
REASONS = {"events": "there were too many events", "threads": "a thread has not ended", "reset": "the lab was reset"}


@click.group()
def clock() -> None:
    """Freeze the time of a running broker, let a span of it pass at once, or change how fast it passes."""


@lab_command("show", watch=True)
@click.option("-n", "--deadlines", default=10, show_default=True, help="How many of the next deadlines.")
def show(lab: Lab, deadlines: int) -> Shown:
    """Show what time it is for the broker, and what is due next."""
    found: ClockView = lab.get("clock", deadlines=deadlines)
    return Shown(found, lambda: _clock(found))


@lab_command("freeze")
def freeze(lab: Lab) -> Shown:
    """Let the time stand still."""
    return _set(lab, mode="frozen")


@lab_command("system")
def system(lab: Lab) -> Shown:
    """Let the time pass as the machine's again, from where it is."""
    return _set(lab, mode="system")


@lab_command("rate")
@click.argument("rate", type=click.FloatRange(0.01, 1000))
def rate(lab: Lab, rate: float) -> Shown:
    """Let the time pass RATE times as fast as the machine's: between 0.01 and 1000."""
    return _set(lab, mode="rate", rate=rate)


@lab_command("advance")
@click.option("--events", "events_max", type=int, default=None, help="End early after so many events [10000000].")
@click.argument("span")
def advance(lab: Lab, events_max: int | None, span: str) -> Shown:
    """Let SPAN pass at once, such as 250ms, 45s, 5m, 2h or 7d: everything that is due happens before this ends.

    Exit code 1: not all of the span has passed, because there were too many events, or a thread has not ended.
    """
    more = {} if events_max is None else {"events_max": events_max}
    found: ClockAnswer = lab.with_timeout(ADVANCE_S_MAX).post("clock", span=span, **more)
    advanced = found["advanced"]
    return Shown(found, lambda: _answer(found), 0 if advanced["stopped_by"] is None else EXIT_NOT_ALL)


for _command in (show, freeze, system, rate, advance):
    clock.add_command(_command)


def _set(lab: Lab, **body: object) -> Shown:
    found: ClockView = lab.put("clock", body)
    return Shown(found, lambda: _clock(found))


def _answer(found: ClockAnswer) -> Iterator[str]:
    yield _passed(found["advanced"])
    yield from _clock(found["clock"])


def _passed(found: AdvancedView) -> str:
    line = f"{_seconds(found['advanced_ms'])} passed, with {found['events']} events"
    if found["stopped_by"] is not None:
        line += f"; {_seconds(found['left_ms'])} are left, because {REASONS[found['stopped_by']]}"
    return line


def _clock(found: ClockView) -> Iterator[str]:
    mode = f"rate {found['rate']:g}" if found["mode"] == "rate" else found["mode"]
    ahead = f"{found['offset_ms'] / 1000:+.3f} s from the machine's time"
    yield printable(f"{found['now']}  {mode}  {ahead}, {found['timers']} timers")
    rows = [{"due_in": _seconds(one["in_ms"]), "what": one["what"]} for one in found["next"]]
    yield from table(("due_in", "what"), rows, "  ")


def _seconds(ms: float) -> str:
    return f"{ms / 1000:,.3f} s"
