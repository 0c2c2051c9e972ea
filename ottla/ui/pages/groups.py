"""Groups of all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from nicegui import ui

from .. import words
from ..frame import Page, value_of
from ..grid import PAGE, Column, Grid, Pager, Row

if TYPE_CHECKING:
    from ...broker.lab.group_views import GroupListView
    from ...coordinator.group.views import GroupSummaryView

COLUMNS = (
    Column("group", "group", "link"),
    Column("kind", "kind"),
    Column("state", "state", "badge"),
    Column("members", "members", "number"),
    Column("epoch", "epoch", "number"),
    Column("type", "protocol"),
)
KINDS = {"": "all kinds", "classic": "classic", "consumer": "consumer", "share": "share", "streams": "streams"}


def build(page: Page) -> None:
    Groups(page)


class Groups:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._filter, self._kind = "", ""
        self._afters: list[str | None] = [None]
        self._next: str | None = None
        with ui.row().classes("tools"):
            field = ui.input(placeholder="filter", on_change=lambda e: self._wanted(value_of(e), self._kind))
            field.props('dense outlined clearable aria-label="Filter groups" data-filter').classes("filter")
            kind = ui.select(KINDS, value="", on_change=lambda e: self._wanted(self._filter, value_of(e)))
            kind.props('dense outlined options-dense aria-label="Kind"')
            self._loading = ui.label().classes("dim").props('role="status"')
        self._grid = Grid("Groups", COLUMNS, empty="There are no groups.", page=0)
        self._pager = Pager(self._turn)
        self._live = page.live(self._fetch, self._show)

    async def _fetch(self) -> GroupListView:
        name = f"*{self._filter}*" if self._filter and "*" not in self._filter else self._filter or None
        found: GroupListView = await self._page.link.get(
            "groups", limit=PAGE, after=self._afters[-1], name=name, type=self._kind or None
        )
        return found

    def _show(self, found: GroupListView) -> None:
        rows = [self._row(one) for one in found["groups"]]
        self._next = found["next"]
        self._grid.show(rows)
        first = (len(self._afters) - 1) * PAGE
        self._pager.show(first, len(rows), first + len(rows) + (self._next is not None), "more" if self._next else "")
        self._loading.set_text(f"{len(found['loading'])} partitions are loading" if found["loading"] else "")

    def _row(self, one: GroupSummaryView) -> Row:
        return {
            "key": one["group"],
            "group": one["group"] or '""',
            "group_href": self._page.link.at(f"group?name={quote(one['group'], safe='')}"),
            "kind": one["kind"],
            "state": one["state"],
            "members": words.number(one["members"]),
            "epoch": words.number(one["epoch"]),
            "type": one["protocol_type"] or words.MINUS,
        }

    def _wanted(self, text: str, kind: str) -> None:
        self._filter, self._kind, self._afters = text, kind, [None]

    async def _turn(self, pages: int) -> None:
        if pages < 0:
            self._afters = self._afters[:-1] or [None]
        elif self._next is not None:
            self._afters.append(self._next)
        await self._live.now()
