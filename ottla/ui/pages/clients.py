"""Clients: who is connected, what each asked for, and the metrics that it pushed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from ...lab_client import segment
from .. import words
from ..frame import Page
from ..grid import Column, Grid, Row

if TYPE_CHECKING:
    from ...broker.lab.client_routes import ClientDetailView, ClientsView, ClientView

LIMIT = 1000
COLUMNS = (
    Column("id", "address", "open"),
    Column("client", "client id", "mono"),
    Column("software", "software", "mono"),
    Column("principal", "principal", "mono"),
    Column("listener", "listener"),
    Column("open", "open for", "number"),
    Column("idle", "idle", "number"),
    Column("requests", "requests", "number"),
    Column("last", "last request", "mono"),
    Column("groups", "groups", "mono"),
    Column("transaction", "transactional id", "mono"),
    Column("pushes", "pushes", "number"),
)


def build(page: Page) -> None:
    Clients(page)


class Clients:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._note = ui.label().classes("dim").props('role="status"')
        with ui.element("div").classes("beside"):
            self._grid = Grid("Clients", COLUMNS, empty="No client is connected.", on_open=self._open, filtered=True)
            self._detail = ui.element("aside").classes("detail").props('aria-label="Client"')
            self._detail.set_visibility(False)
        page.live(self._fetch, self._show)

    async def _fetch(self) -> ClientsView:
        found: ClientsView = await self._page.link.get("clients", limit=LIMIT)
        return found

    def _show(self, found: ClientsView) -> None:
        self._grid.show(map(row, found["clients"]))
        self._note.set_text(f"the first {LIMIT} clients by address" if found["next"] else "")

    async def _open(self, name: str) -> None:
        found: ClientDetailView | None = await self._page.asked(self._page.link.get(f"clients/{segment(name)}"))
        if found is None:
            return
        self._detail.clear()
        self._detail.set_visibility(True)
        with self._detail:
            with ui.row().classes("end"):
                ui.label(name).classes("heading mono").props('role="heading" aria-level="3"')
                ui.space()
                ui.button("close", on_click=lambda: self._detail.set_visibility(False)).props("flat dense no-caps")
            parts = {
                "requests by API and version": found["client"]["requests"],
                "groups": found["client"]["groups"],
                "telemetry": found["client"]["telemetry"],
                "pushed metrics": {
                    f"{one['name']} {one['labels'] or ''}".strip(): one["value"] for one in found["metrics"]
                },
            }
            for title, part in parts.items():
                ui.label(title).classes("dim")
                ui.label(words.indented(part)).classes("code").props(f'role="region" tabindex="0" aria-label="{title}"')


def row(one: ClientView) -> Row:
    telemetry = one["telemetry"]
    return {
        "key": one["id"],
        "id": one["id"],
        "client": words.short(one["client_id"] or words.MINUS, 60),
        "software": words.short(f"{one['software_name']} {one['software_version']}".strip() or words.MINUS, 60),
        "principal": words.short(one["principal"], 60),
        "listener": f"{one['listener']} {one['security_protocol']}",
        "open": words.span(one["open_ms"]),
        "idle": words.span(one["idle_ms"]),
        "requests": words.number(sum(one["requests"].values())),
        "last": one["last_request"] or words.MINUS,
        "groups": words.short(" ".join(one["groups"]) or words.MINUS, 60),
        "transaction": words.short(one["transactional_id"] or words.MINUS, 60),
        "pushes": words.MINUS if telemetry is None else words.number(telemetry["pushes"]),
        "mark": "" if one["connected"] else "faint",
    }
