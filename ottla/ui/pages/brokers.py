"""The first page: which brokers there are, and how they are."""

from __future__ import annotations

import time
from collections.abc import Sequence

from nicegui import ui

from ...lab_client import LabRefused, LabUnreachable
from .. import words
from ..frame import prepare
from ..links import Link
from ..live import EVERY_S, pause_s


def build(links: Sequence[Link]) -> None:
    prepare("brokers")
    with ui.header().classes("top"):
        ui.label("ottla").classes("brand")
        ui.space()
        with ui.element("button").classes("icon").props('type="button" aria-label="Light or dark" data-theme'):
            ui.icon("contrast")
    with ui.element("main").classes("main").props('id="main"'):
        ui.label("Brokers").classes("title").props('role="heading" aria-level="1"')
        with ui.element("div").classes("cards"):
            for one in links:
                Card(one)


class Card:
    """A broker."""

    def __init__(self, link: Link) -> None:
        self._link = link
        with ui.link(target=link.at("topics")).classes("card-link") as card:
            card.props(f'aria-label="Broker {link.name}"')
            with ui.row().classes("line"):
                ui.label(link.name).classes("heading mono")
                ui.space()
                self._chip = ui.label("connecting").classes("chip")
            self._facts = ui.label().classes("dim pre")
        self._timer = ui.timer(EVERY_S, self._round)

    async def _round(self) -> None:
        began = time.monotonic()
        await self._ask()
        self._timer.interval = pause_s(began)

    async def _ask(self) -> None:
        try:
            state = await self._link.get("state")
            sums = await self._link.get("topic-sums", limit=1)
            groups = await self._link.get("groups", limit=1000)
            nodes = words.nodes((await self._link.get("nodes"))["nodes"])
        except (LabUnreachable, LabRefused) as error:
            word = "refused" if isinstance(error, LabRefused) else "gone"
            self._chip.set_text(word)
            self._chip.classes(replace=f"chip chip-{word}")
            self._facts.set_text(str(error))
            return
        self._chip.set_text("ready" if state["ready"] else "starting")
        self._chip.classes(replace="chip chip-connected")
        more = "+" if groups["next"] else ""
        self._facts.set_text(
            f"cluster {state['cluster_id']}, node {state['node_id']}\n"
            f"{words.number(sums['total'])} topics, {words.number(len(groups['groups']))}{more} groups, "
            f"{state['connections']} connections" + (f"\n{nodes}" if nodes else "")
        )
