"""The clock: what time it is for the broker, what is due next, and how time passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from .. import words
from ..frame import Page
from ..grid import Column, Grid

if TYPE_CHECKING:
    from ...broker.lab.clock.clock import ClockView

COLUMNS = (Column("left", "in", "number"), Column("what", "what is due", "mono"))
DEADLINES = 100


def build(page: Page) -> None:
    Clock(page)


class Clock:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._now = ui.label().classes("now mono").props('data-now aria-label="Time of the broker"')
        self._facts = ui.label().classes("dim").props('role="status"')
        with ui.row().classes("tools"):
            ui.button("freeze", on_click=lambda: self._set("frozen")).props("dense no-caps unelevated data-freeze")
            ui.button("as the machine", on_click=lambda: self._set("system")).props(
                "dense no-caps unelevated data-system"
            )
            self._rate = ui.number(value=10, min=0.001).props('dense outlined aria-label="Rate"').classes("tiny")
            ui.button("run at this rate", on_click=self._run).props("dense no-caps flat")
            self._span = ui.input(value="45s").props('dense outlined aria-label="Span"').classes("tiny")
            ui.button("advance", on_click=self._advance).props("dense no-caps unelevated color=primary data-advance")
        ui.label("What is due next").classes("heading part").props('role="heading" aria-level="2"')
        self._grid = Grid("Deadlines", COLUMNS, empty="Nothing is due.", page=20)
        self._live = page.live(self._fetch, self._show)

    async def _fetch(self) -> ClockView:
        found: ClockView = await self._page.link.get("clock", deadlines=DEADLINES)
        return found

    def _show(self, found: ClockView) -> None:
        self._now.set_text(words.time(found["now_ms"]))
        how = {"frozen": "stands still", "rate": f"passes at a rate of {found['rate']:g}"}.get(
            found["mode"], "passes as the machine's"
        )
        ahead = f", {words.span(abs(found['offset_ms']))} {'ahead' if found['offset_ms'] >= 0 else 'behind'}"
        advancing = "; an advance is going on" if found["is_advancing"] else ""
        self._facts.set_text(
            f"time {how}{ahead if found['offset_ms'] else ''}{advancing}; {words.number(found['timers'])} timers"
        )
        self._grid.show(
            {"key": str(number), "left": words.span(one["in_ms"]), "what": one["what"]}
            for number, one in enumerate(found["next"])
        )

    async def _set(self, mode: str) -> None:
        await self._page.act(self._page.link.put("clock", mode=mode), f"time is {mode}", self._live)

    async def _run(self) -> None:
        await self._page.act(
            self._page.link.put("clock", mode="rate", rate=float(self._rate.value or 1)), "time runs", self._live
        )

    async def _advance(self) -> None:
        span = str(self._span.value or "").strip()
        body = self._page.link.post("clock", span=int(span) if span.isdecimal() else span)
        await self._page.act(body, f"{span} have passed", self._live)
