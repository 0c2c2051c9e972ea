"""Who had which partitions of a group, and when: found in the events of its timeline, and drawn as bars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from .. import words
from ..charts import LEGEND, PALETTE, colors, rows_over_time

if TYPE_CHECKING:
    from ...coordinator.group.events import GroupEventView, Place, TopicPartitionsView

ROWS_MAX = 40
ROW_PX = 18
AROUND_PX = 58  # the legend and the axis
LEAST_MS = 200  # what a member got last is drawn so wide at least
LEGEND_CHARACTERS = 32
ALL_GONE = {"ended", "emptied"}


class Span(NamedTuple):
    """A member has had a partition. `to_ms` is None while it has it."""

    topic: str
    partition: int
    member: str
    from_ms: int
    to_ms: int | None


class Bar(NamedTuple):
    """A span in its row."""

    row: int
    span: Span


def spans(events: Iterable[GroupEventView]) -> list[Span]:
    """Who had what, in the order in which it began. Of what a member gives up whose beginning is not among the events
    (old ones are dropped), the first event is the beginning.
    """
    held: dict[tuple[str, Place], int] = {}  # since when
    found: list[Span] = []
    first_ms: int | None = None
    for one in events:
        member, at_ms = one["member"] or "", one["at_ms"]
        first_ms = at_ms if first_ms is None else first_ms
        if one["what"] == "assigned":
            held.update({(member, place): at_ms for place in _places(one["partitions"])})
        elif one["what"] == "revoked":
            for place in _places(one["partitions"]):
                found.append(Span(*place, member, held.pop((member, place), first_ms), at_ms))
        elif one["what"] in ALL_GONE or one["what"] == "member-removed":
            for key in [key for key in held if one["what"] in ALL_GONE or key[0] == member]:
                found.append(Span(*key[1], key[0], held.pop(key), at_ms))
    found += [Span(*place, member, from_ms, None) for (member, place), from_ms in held.items()]
    return sorted(found, key=lambda one: (one.from_ms, one.topic, one.partition, one.member))


def _places(partitions: Iterable[TopicPartitionsView]) -> Iterator[Place]:
    for one in partitions:
        for partition in one["partitions"]:
            yield one["topic"], partition


def rows(found: Iterable[Span]) -> tuple[list[str], list[Bar]]:
    """The names of the rows, and each span in one of them: a partition has a row, and another one for each member that
    has it at the same time as others, as in a share group.
    """
    of_place: dict[Place, list[list[Span]]] = {}
    for one in found:
        of = of_place.setdefault((one.topic, one.partition), [])
        free = next((lane for lane in of if lane[-1].to_ms is not None and lane[-1].to_ms <= one.from_ms), None)
        if free is None:
            of.append([one])
        else:
            free.append(one)
    names: list[str] = []
    bars: list[Bar] = []
    for (topic, partition), of in sorted(of_place.items()):
        for lane in of:
            bars += [Bar(len(names), one) for one in lane]
            names.append(f"{words.short(topic, 24)}/{partition}")
    return names, bars


class Drawing(NamedTuple):
    """Options of the chart, how high it is (0 without rows), and how many rows are left out."""

    options: dict[str, object]
    height_px: int
    left_out: int


def drawing(events: list[GroupEventView]) -> Drawing:
    """A line of bars for each member. What it still has ends a little after the last event."""
    names, bars = rows(spans(events))
    first_ms, last_ms = (events[0]["at_ms"], events[-1]["at_ms"]) if events else (0, 0)
    until_ms = last_ms + max(LEAST_MS, (last_ms - first_ms) // 20)
    points: dict[str, list[list[object]]] = {}
    for row, span in bars:
        if row < ROWS_MAX:
            to_ms = until_ms if span.to_ms is None else span.to_ms
            points.setdefault(span.member, []).extend([[span.from_ms, row], [to_ms, row], ["-", "-"]])
    shown = names[:ROWS_MAX]
    height_px = AROUND_PX + ROW_PX * len(shown) if shown else 0
    return Drawing(_options(shown, points, until_ms), height_px, len(names) - len(shown))


def _options(names: list[str], points: dict[str, list[list[object]]], until_ms: int) -> dict[str, object]:
    series: list[dict[str, object]] = [
        {
            "type": "line",
            "name": words.middle(member, LEGEND_CHARACTERS),
            "data": of,
            "symbolSize": 9,
            "showSymbol": False,
            "triggerLineEvent": True,
            "lineStyle": {"width": 9, "cap": "butt"},
        }
        for member, of in sorted(points.items())
    ]
    return rows_over_time(names, "{a}", series, is_downwards=True) | {
        "color": list(PALETTE),
        "grid": {"left": 8, "right": 24, "top": 30, "bottom": 4, "containLabel": True},
        "legend": {**LEGEND, "icon": "roundRect", "textStyle": {"color": colors.text}},
        "xAxis": {"type": "time", "max": until_ms, "axisLabel": {"color": colors.text, "hideOverlap": True}},
    }
