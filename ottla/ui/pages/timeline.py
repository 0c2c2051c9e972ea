"""What happened to a group: a lane for each member, and the events as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from ...lab_client import segment
from .. import words
from ..charts import chart, colors
from ..frame import Page
from ..grid import Column, Grid

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
        if found["last"] < self._last:  # the broker started again
            self._events.clear()
        if not found["events"]:
            return
        self._events = [*self._events, *found["events"]][-KEPT:]
        self._last = found["last"]
        self._grid.show(row(one) for one in reversed(self._events))
        self._chart.options.clear()
        self._chart.options.update(options(self._events))
        self._chart.update()


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
    return {
        "animation": False,
        "grid": {"left": 8, "right": 24, "top": 8, "bottom": 8, "containLabel": True},
        "xAxis": {"type": "time", "axisLabel": {"color": colors.text, "hideOverlap": True}},
        "yAxis": {
            "type": "category",
            "data": [words.short(lane, 28) for lane in lanes],
            "axisLabel": {"color": colors.text},
            "splitLine": {"show": True, "lineStyle": {"color": colors.line}},
        },
        "tooltip": {"renderMode": "richText", "formatter": "{b}"},
        "series": [
            {"type": "scatter", "symbolSize": 8, "data": found, "itemStyle": {"color": color[kind]}}
            for kind, found in points.items()
        ],
    }
