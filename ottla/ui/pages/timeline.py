"""What happened to a group: who had which partitions, a lane for each member, and the events as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from ...lab_client import segment
from .. import words
from ..charts import chart, colors, rows_over_time
from ..frame import Page
from ..grid import Column, Grid
from .ownership import drawing

if TYPE_CHECKING:
    from ...broker.lab.group_routes import TimelineView
    from ...coordinator.group.events import GroupEventView

COLUMNS = (
    Column("number", "#", "number"),
    Column("time", "time", "mono"),
    Column("what", "event", "badge"),
    Column("epoch", "epoch", "number"),
    Column("words", "what happened"),
    Column("source", "known from"),
)
KEPT = 500
LANES_MAX = 30
GROUP = "the group"
GOOD = {"joined", "synced", "assigned", "acknowledged", "member-added", "all-joined", "assignment"}
BAD = {"late", "session-ended", "refused", "member-removed", "left", "away", "offsets-expired"}


class Timeline:
    """The part of a group's page with what happened."""

    def __init__(self, page: Page, group: str) -> None:
        self._page, self._group = page, group
        self._events: list[GroupEventView] = []
        self._last = 0
        with ui.element("div") as self._owned:
            ui.label("Who had what").classes("heading part").props('role="heading" aria-level="2"')
            self._ownership = chart("Who had what", 0)
            self._left_out = ui.label().classes("hint")
        self._owned.set_visibility(False)
        ui.label("Timeline").classes("heading part").props('role="heading" aria-level="2"')
        self._chart = chart("Timeline of the group", 220)
        self._grid = Grid("Timeline", COLUMNS, empty="Nothing has happened yet.", filtered=True, page=30)
        page.live(self._fetch, self._show)

    async def _fetch(self) -> TimelineView:
        found: TimelineView = await self._page.link.get(
            f"groups/{segment(self._group)}/timeline", after=self._last, limit=1000
        )
        return found

    def _show(self, found: TimelineView) -> None:
        has_started, self._last = found["last"] < self._last, found["last"]
        if has_started:  # the broker tells all again, next time from its first event on
            self._events = []
        elif not found["events"]:
            return
        self._events = [*self._events, *found["events"]][-KEPT:]
        self._grid.show(row(one) for one in reversed(self._events))
        drawn = drawing(self._events)
        self._owned.set_visibility(drawn.height_px > 0)
        self._ownership.style(f"height: {drawn.height_px}px")
        self._left_out.set_text(f"and {drawn.left_out} more partitions")
        self._left_out.set_visibility(drawn.left_out > 0)
        for made, of in ((self._ownership, drawn.options), (self._chart, options(self._events))):
            made.options.clear()
            made.options.update(of)
            made.update()


def row(one: GroupEventView) -> dict[str, object]:
    return {
        "key": str(one["number"]),
        "number": one["number"],
        "time": words.time(one["at_ms"]),
        "what": one["what"],
        "epoch": words.number(one["epoch"]),
        "words": words.short(one["words"], 300),
        "source": one["source"],
    }


def options(events: list[GroupEventView]) -> dict[str, object]:
    """A point for each event, in the lane of its member."""
    lanes = list(dict.fromkeys(one["member"] or GROUP for one in reversed(events)))[:LANES_MAX]
    lanes.sort(key=lambda lane: (lane == GROUP, lane), reverse=True)
    points: dict[str, list[object]] = {"good": [], "bad": [], "other": []}
    for one in events:
        lane = one["member"] or GROUP
        if lane in lanes:
            kind = "good" if one["what"] in GOOD else "bad" if one["what"] in BAD else "other"
            points[kind].append({"value": [one["at_ms"], lanes.index(lane)], "name": words.short(one["words"], 100)})
    color = dict(zip(points, (colors.good, colors.bad, colors.accent), strict=True))
    series: list[dict[str, object]] = [
        {"type": "scatter", "symbolSize": 8, "data": found, "itemStyle": {"color": color[kind]}}
        for kind, found in points.items()
    ]
    return rows_over_time([words.short(lane, 28) for lane in lanes], "{b}", series)
