"""Transactions, and who holds back whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from .. import words
from ..frame import Page
from ..grid import Column, Grid, Row

if TYPE_CHECKING:
    from ...broker.lab.transaction_views import HeldBackView, TransactionsView, TransactionView

HELD = (
    Column("place", "partition", "mono"),
    Column("behind", "records behind", "number"),
    Column("stable", "last stable offset", "number"),
    Column("high", "high watermark", "number"),
    Column("by", "held back by", "mono"),
    Column("producer", "producer", "number"),
    Column("idle", "silent for", "number"),
    Column("why", "why"),
)
TRANSACTIONS = (
    Column("id", "transactional id", "mono"),
    Column("state", "state", "badge"),
    Column("open", "open for", "number"),
    Column("aborts", "aborted in", "number"),
    Column("producer", "producer", "number"),
    Column("epoch", "epoch", "number"),
    Column("version", "client's version", "number"),
    Column("partitions", "partitions from offset", "mono"),
    Column("problem", "problem"),
)


def build(page: Page) -> None:
    Transactions(page)


class Transactions:
    def __init__(self, page: Page) -> None:
        self._page = page
        ui.label("Who holds back whom").classes("heading part").props('role="heading" aria-level="2"')
        self._held = Grid("Held back", HELD, empty="No last stable offset is held back.", page=20)
        with ui.row().classes("tools part"):
            ui.label("Transactional ids").classes("heading").props('role="heading" aria-level="2"')
            self._all = ui.switch("also those at rest", value=True)
        self._grid = Grid("Transactions", TRANSACTIONS, empty="There are no transactions.", filtered=True)
        page.live(self._fetch, self._show)

    async def _fetch(self) -> TransactionsView:
        path = "transactions/all" if self._all.value else "transactions"
        found: TransactionsView = await self._page.link.get(path)
        return found

    def _show(self, found: TransactionsView) -> None:
        self._held.show(map(held, found["held_back"]))
        self._grid.show(map(transaction, found["transactions"]))


def held(one: HeldBackView) -> Row:
    place = f"{one['topic']}/{one['partition']}"
    return {
        "key": place,
        "place": place,
        "behind": words.number(one["records_behind"]),
        "stable": words.number(one["last_stable_offset"]),
        "high": words.number(one["high_watermark"]),
        "by": one["transactional_id"] or words.MINUS,
        "producer": words.number(one["producer_id"]),
        "idle": words.span(one["idle_ms"]),
        "why": one["why"],
    }


def transaction(one: TransactionView) -> Row:
    partitions = (f"{p['topic']}/{p['partition']}@{words.number(p['first_offset'])}" for p in one["partitions"])
    return {
        "key": one["transactional_id"],
        "id": one["transactional_id"],
        "state": one["state"],
        "open": words.span(one["open_ms"]),
        "aborts": words.span(one["aborts_in_ms"]),
        "producer": one["producer_id"],
        "epoch": one["producer_epoch"],
        "version": one["client_version"],
        "partitions": words.short("  ".join(partitions) or words.MINUS, 200),
        "problem": one["given_up"] or "",
    }
