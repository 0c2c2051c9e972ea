"""Topics: how many records, how many of them consumers do not see, and how the high watermark follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from ...lab_client import segment
from .. import words
from ..frame import Page, ask, value_of
from ..grid import PAGE, Action, Column, Grid, Pager, Row

if TYPE_CHECKING:
    from ...broker.lab.topic_routes import TopicSumsView, TopicSumView

COLUMNS = (
    Column("topic", "topic", "link"),
    Column("partitions", "partitions", "number"),
    Column("records", "records", "number"),
    Column("hidden", "above high watermark", "number"),
    Column("unstable", "in transactions", "number"),
    Column("size", "size", "number"),
    Column("waiting", "waiting", "number"),
    Column("policy", "high watermark", "badge"),
)
ACTIONS = (Action("hold", "hold"), Action("step", "step"), Action("release", "release"), Action("delete", "delete"))
DONE = {"hold": "held", "step": "moved by a batch", "release": "released"}


def build(page: Page) -> None:
    Topics(page)


class Topics:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._filter, self._internal = "", True
        self._afters: list[str | None] = [None]  # of the pages up to this one
        self._next: str | None = None
        with ui.row().classes("tools"):
            field = ui.input(placeholder="filter", on_change=lambda e: self._filtered(value_of(e)))
            field.props('dense outlined clearable aria-label="Filter topics" data-filter').classes("filter")
            ui.switch("internal topics", value=True, on_change=lambda e: self._shown(bool(e.value)))
            ui.space()
            ui.button("new topic", on_click=self._create).props("no-caps unelevated dense color=primary data-new")
        self._grid = Grid("Topics", COLUMNS, empty="There are no topics.", actions=ACTIONS, on_act=self._act, page=0)
        self._pager = Pager(self._turn)
        self._live = page.live(self._fetch, self._show)

    async def _fetch(self) -> TopicSumsView:
        name = f"*{self._filter}*" if self._filter and "*" not in self._filter else self._filter or None
        found: TopicSumsView = await self._page.link.get(
            "topic-sums", limit=PAGE, after=self._afters[-1], name=name, internal=self._internal
        )
        return found

    def _show(self, found: TopicSumsView) -> None:
        rows = [self._row(one) for one in found["topics"]]
        self._next = found["next"]
        self._grid.show(rows)
        self._pager.show((len(self._afters) - 1) * PAGE, len(rows), found["total"])

    def _row(self, one: TopicSumView) -> Row:
        name = one["topic"]
        problem = "offline" if one["offline"] else "opening" if one["opening"] else None
        waiting = one["parked_produces"] + one["waiting_fetches"]
        return {
            "key": name,
            "title": name,
            "topic": name,
            "topic_href": self._page.link.at(f"topics/{segment(name)}"),
            "partitions": words.number(one["partitions"]),
            "records": words.number(one["records"]),
            "hidden": words.number(one["hidden"] or None),
            "unstable": words.number(one["unstable"] or None),
            "size": words.size(one["size_bytes"]),
            "waiting": words.number(waiting or None),
            "policy": problem or one["policy"] or "mixed",
            "off": "delete" if one["internal"] else "",
        }

    def _filtered(self, text: str) -> None:
        self._filter, self._afters = text, [None]

    def _shown(self, internal: bool) -> None:
        self._internal, self._afters = internal, [None]

    async def _turn(self, pages: int) -> None:
        if pages < 0:
            self._afters = self._afters[:-1] or [None]
        elif self._next is not None:
            self._afters.append(self._next)
        await self._live.now()

    async def _act(self, action: str, topic: str) -> None:
        link = self._page.link
        if action == "delete":
            if await ask(f"Delete the topic {topic} with all its records?", "delete") is True:
                await self._page.act(link.delete(f"topics/{segment(topic)}"), f"{topic} is deleted", self._live)
            return
        await self._page.act(link.post(action, topic=topic), f"{topic}: {DONE[action]}", self._live)

    async def _create(self) -> None:
        with ui.dialog() as dialog, ui.card().classes("ask"):
            ui.label("New topic").classes("heading")
            name = ui.input("name").props("autofocus dense outlined")
            partitions = ui.number("partitions", value=1, min=1, max=1000, precision=0).props("dense outlined")
            with ui.row().classes("end"):
                ui.button("cancel", on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button("create", on_click=lambda: dialog.submit(True)).props("no-caps unelevated data-yes")
        if await dialog is not True:
            return
        wanted = {"name": str(name.value or "").strip(), "partitions": int(partitions.value or 1)}
        await self._page.act(self._page.link.post("seed", topics=[wanted]), f"{wanted['name']} is there", self._live)
