"""A topic: its partitions with their offsets, and its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from ...lab_client import segment
from .. import words
from ..frame import Page, ask
from ..grid import Action, Column, Grid, Row
from .records import Records

if TYPE_CHECKING:
    from ...broker.lab.state_routes import PartitionView, TopicView

COLUMNS = (
    Column("partition", "partition", "number"),
    Column("bar", "start → stable → high watermark → end", "bar"),
    Column("start", "log start", "number"),
    Column("stable", "last stable", "number"),
    Column("high", "high watermark", "number"),
    Column("end", "log end", "number"),
    Column("hidden", "hidden", "number"),
    Column("size", "size", "number"),
    Column("waiting", "waiting", "number"),
    Column("epoch", "epoch", "number"),
    Column("policy", "high watermark", "badge"),
)
ACTIONS = (Action("hold", "hold"), Action("step", "step"), Action("release", "release"))
DONE = {"hold": "held", "step": "moved by a batch", "release": "released"}


def build(page: Page, topic: str) -> None:
    Topic(page, topic)


class Topic:
    def __init__(self, page: Page, topic: str) -> None:
        self._page, self._topic = page, topic
        self._absent = ui.label().classes("empty")
        self._absent.set_visibility(False)
        with ui.element("div") as self._whole:
            with ui.row().classes("tools"):
                self._id = ui.label().classes("mono dim")
                ui.space()
                for one in ACTIONS:
                    button = ui.button(one.label, on_click=lambda _, name=one.name: self._all(name))
                    button.props(f'flat dense no-caps aria-label="{one.label} all partitions" data-all="{one.name}"')
                delete = ui.button("delete topic", on_click=self._delete).props("flat dense no-caps color=negative")
                delete.props("data-delete")
            self._grid = Grid(
                "Partitions", COLUMNS, empty="There are no partitions.", actions=ACTIONS, on_act=self._act, page=20
            )
            self._records = Records(page, topic)
        self._live = page.live(self._fetch, self._show, absent=self._gone)

    async def _fetch(self) -> TopicView:
        found: TopicView = await self._page.link.get(f"topics/{segment(self._topic)}")
        return found

    def _show(self, found: TopicView) -> None:
        self._absent.set_visibility(False)
        self._whole.set_visibility(True)
        partitions = list(found["partitions"])
        self._id.set_text(f"id {found['topic_id']}")
        self._grid.show(map(self._row, partitions))
        self._records.note([one["partition"] for one in partitions])

    def _gone(self, problem: str) -> None:
        self._absent.set_text(problem)
        self._absent.set_visibility(True)
        self._whole.set_visibility(False)

    def _row(self, one: PartitionView) -> Row:
        start, end = one["log_start_offset"], one["log_end_offset"]
        stable, high = one["last_stable_offset"], one["high_watermark"]
        return {
            "key": str(one["partition"]),
            "title": f"partition {one['partition']}",
            "partition": one["partition"],
            "bar": bar(start, stable, high, end),
            "bar_words": f"{stable - start} stable, {high - stable} in transactions, {end - high} hidden",
            "start": words.number(start),
            "stable": words.number(stable),
            "high": words.number(high),
            "end": words.number(end),
            "hidden": words.number(end - high or None),
            "size": words.size(one["size_bytes"]),
            "waiting": words.number(one["parked_produces"] + one["waiting_fetches"] or None),
            "epoch": one["leader_epoch"],
            "policy": one["policy"] if one["state"] == "online" else one["state"],
        }

    async def _act(self, action: str, partition: str) -> None:
        body = self._page.link.post(action, topic=self._topic, partition=int(partition))
        await self._page.act(body, f"partition {partition}: {DONE[action]}", self._live)

    async def _all(self, action: str) -> None:
        await self._page.act(self._page.link.post(action, topic=self._topic), f"all: {DONE[action]}", self._live)

    async def _delete(self) -> None:
        if await ask(f"Delete the topic {self._topic} with all its records?", "delete") is not True:
            return
        if await self._page.act(self._page.link.delete(f"topics/{segment(self._topic)}"), ""):
            ui.navigate.to(self._page.link.at("topics"))


def bar(start: int, stable: int, high: int, end: int) -> str:
    """A bar as a CSS gradient: what is stable, in transactions, and hidden."""
    if end <= start:
        return "var(--line)"
    at = [100 * (one - start) / (end - start) for one in (stable, high)]
    return (
        f"linear-gradient(90deg, var(--good) 0 {at[0]:.1f}%, var(--warn) {at[0]:.1f}% {at[1]:.1f}%, "
        f"var(--hidden) {at[1]:.1f}% 100%)"
    )
