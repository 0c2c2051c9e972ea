"""Queues: the share-partitions of share groups, and each record in flight with its state, holder, lock and count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from ...lab_client import segment
from .. import words
from ..frame import Page
from ..grid import Column, Grid, Row

if TYPE_CHECKING:
    from ...broker.lab.share_views import SharePartitionsView, SharePartitionView

PARTITIONS = (
    Column("place", "share-partition", "open"),
    Column("bar", "records in flight", "bar"),
    Column("state", "state", "badge"),
    Column("start", "start", "number"),
    Column("end", "end", "number"),
    Column("high", "high watermark", "number"),
    Column("lag", "lag", "number"),
    Column("flight", "in flight", "number"),
    Column("done", "done in the window", "number"),
    Column("timeouts", "lock timeouts", "number"),
    Column("waiting", "waiting", "number"),
)
RUNS = (
    Column("offsets", "offsets", "mono"),
    Column("count", "records", "number"),
    Column("state", "state", "badge"),
    Column("member", "held by", "mono"),
    Column("lock", "lock left", "number"),
    Column("deliveries", "deliveries", "number"),
    Column("written", "being written"),
)
EVENTS = (
    Column("time", "ago", "number"),
    Column("what", "event", "badge"),
    Column("offsets", "offsets", "mono"),
    Column("member", "member", "mono"),
)
COLORS = {
    "AVAILABLE": "var(--accent)",
    "ACQUIRED": "var(--warn)",
    "ACKNOWLEDGED": "var(--good)",
    "ARCHIVED": "var(--hidden)",
}


def build(page: Page) -> None:
    Queues(page)


class Queues:
    def __init__(self, page: Page) -> None:
        self._page = page
        request = ui.context.client.request
        self._group = (request.query_params.get("group") if request is not None else None) or ""
        self._place = ""  # topic/partition
        with ui.row().classes("tools"):
            self._choice = ui.select({"": "no group"}, value="", on_change=lambda e: self._choose(str(e.value or "")))
            self._choice.props('dense outlined options-dense aria-label="Share group"')
            with ui.row().classes("legend").props('aria-label="Colours"'):
                for name, color in COLORS.items():
                    ui.element("span").classes("dot").style(f"background: {color}")
                    ui.label(name.lower()).classes("dim")
        self._partitions = Grid(
            "Share-partitions",
            PARTITIONS,
            on_open=self._open,
            page=20,
            empty="No member of a share group has fetched yet: share-partitions are loaded by the first fetch.",
        )
        self._head = ui.label("Records").classes("heading part").props('role="heading" aria-level="2"')
        self._runs = Grid("Records in flight", RUNS, empty="No record is in flight.")
        ui.label("What happened").classes("heading part").props('role="heading" aria-level="2"')
        self._events = Grid("What happened", EVENTS, empty="Nothing has happened yet.", page=20)
        self._live = page.live(self._fetch, self._show, absent=lambda _: self._show_partitions([]))

    async def _fetch(self) -> tuple[list[str], SharePartitionsView | None]:
        groups = [one["group"] for one in (await self._page.link.get("share"))["groups"]]
        if self._group not in groups and groups and not self._group:
            self._group = groups[0]
        if not self._group or self._group not in groups:
            return groups, None
        found: SharePartitionsView = await self._page.link.get(f"share/{segment(self._group)}")
        return groups, found

    def _show(self, found: tuple[list[str], SharePartitionsView | None]) -> None:
        groups, shown = found
        names = dict.fromkeys([*groups, *([self._group] if self._group else [])])
        options = {name: name for name in names} or {"": "no group"}
        if options != self._choice.options or self._choice.value != self._group:
            self._choice.set_options(options, value=self._group if self._group in options else next(iter(options)))
        self._show_partitions([] if shown is None else list(shown["share_partitions"]))

    def _show_partitions(self, found: list[SharePartitionView]) -> None:
        self._partitions.show(map(partition, found))
        chosen = next((one for one in found if place_of(one) == self._place), found[0] if found else None)
        self._head.set_text("Records" if chosen is None else f"Records of {place_of(chosen)}")
        self._runs.show([] if chosen is None else runs(chosen))
        self._events.show([] if chosen is None else events(chosen))

    def _choose(self, group: str) -> None:
        if group:
            self._group = group

    async def _open(self, place: str) -> None:
        self._place = place
        await self._live.now()


def place_of(one: SharePartitionView) -> str:
    return f"{one['topic']}/{one['partition']}"


def partition(one: SharePartitionView) -> Row:
    return {
        "key": place_of(one),
        "place": place_of(one),
        "bar": strip(one),
        "bar_words": ", ".join(f"{n} {state.lower()}" for state, n in counts(one).items()) or "nothing in flight",
        "state": one["state"],
        "start": words.number(one["start_offset"]),
        "end": words.number(one["end_offset"]),
        "high": words.number(one["high_watermark"]),
        "lag": words.number(one["lag"]),
        "flight": words.number(one["in_flight"]),
        "done": words.number(one["complete"]),
        "timeouts": words.number(one["lock_timeouts"]),
        "waiting": words.number(one["waiting_fetches"]),
    }


def counts(one: SharePartitionView) -> dict[str, int]:
    found: dict[str, int] = {}
    for run in one["records"]:
        found[run["state"]] = found.get(run["state"], 0) + run["last"] - run["first"] + 1
    return found


def strip(one: SharePartitionView) -> str:
    """The records from the first to the last in flight, in the colours of their states."""
    found = one["records"]
    if not found:
        return "var(--line)"
    first, count = found[0]["first"], found[-1]["last"] - found[0]["first"] + 1
    stops = []
    for run in found[:200]:
        begin, end = (100 * (at - first) / count for at in (run["first"], run["last"] + 1))
        stops.append(f"{COLORS.get(run['state'], 'var(--line)')} {begin:.2f}% {end:.2f}%")
    return f"linear-gradient(90deg, {', '.join(stops)})"


def runs(one: SharePartitionView) -> list[Row]:
    return [
        {
            "key": str(run["first"]),
            "offsets": str(run["first"]) if run["first"] == run["last"] else f"{run['first']}–{run['last']}",
            "count": words.number(run["last"] - run["first"] + 1),
            "state": run["state"].lower(),
            "member": run["member"] or words.MINUS,
            "lock": words.span(run["lock_remaining_ms"]),
            "deliveries": run["delivery_count"],
            "written": "yes" if run["being_written"] else "",
        }
        for run in one["records"]
    ]


def events(one: SharePartitionView) -> list[Row]:
    history = one["history"]
    latest = history[-1]["at_ms"] if history else 0
    return [
        {
            "key": str(number),
            "time": words.span(latest - step["at_ms"]),
            "what": step["what"],
            "offsets": f"{step['first']}–{step['last']}",
            "member": step["member_id"] or words.MINUS,
        }
        for number, step in reversed(list(enumerate(history)))
    ]
