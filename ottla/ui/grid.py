"""Tables: rows with a key, of which the browser gets one page, and only when it has changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from nicegui import events, ui

Kind = Literal["text", "number", "mono", "clip", "link", "open", "badge", "bar"]
Row = Mapping[str, object]
PAGE = 50
ACTIONS = "actions"
RIGHT = ("number",)
# What the browser makes of a cell. Values are put in as text, never as HTML.
TEMPLATES: Mapping[Kind, str] = {
    "text": '<q-td :props="props">{{ props.value }}</q-td>',
    "number": '<q-td :props="props" class="num">{{ props.value }}</q-td>',
    "mono": '<q-td :props="props" class="mono" :title="props.value">{{ props.value }}</q-td>',
    "clip": '<q-td :props="props" class="mono clip" :title="props.value">{{ props.value }}</q-td>',
    "link": '<q-td :props="props"><a class="mono" :href="props.row[props.col.name + \'_href\']">{{ props.value }}</a>'
    "</q-td>",
    "open": '<q-td :props="props"><button type="button" class="cell mono" '
    "@click=\"$parent.$emit('open', props.row.key)\">{{ props.value }}</button></q-td>",
    "badge": '<q-td :props="props"><span :class="\'badge badge-\' + String(props.value).toLowerCase()'
    ".replace(/[^a-z]+/g, '-')\">{{ props.value }}</span></q-td>",
    "bar": '<q-td :props="props"><div class="bar" role="img" :aria-label="props.row[props.col.name + \'_words\']" '
    ':title="props.row[props.col.name + \'_words\']" :style="{ background: props.value }"></div></q-td>',
}
BUTTON = (
    '<button type="button" class="act" :disabled="props.row.off.includes(\'{name}\')" '
    ":aria-label=\"'{label} ' + props.row.title\" @click=\"$parent.$emit('act', '{name}', props.row.key)\">"
    "{label}</button>"
)


class Column(NamedTuple):
    name: str
    label: str
    kind: Kind = "text"


class Action(NamedTuple):
    """A button in each row. `name`: what `on_act` gets."""

    name: str
    label: str


OnAct = Callable[[str, str], Awaitable[None]]
OnOpen = Callable[[str], object]


class Grid:
    """A table. Each row has `key`, and `title` for the accessible names of its buttons if there are `actions`; `off`
    names those that are disabled. A row may have `mark`, a CSS class.

    `page`: how many rows the browser gets; 0 for all. `filtered`: whether there is a field to filter by.
    """

    def __init__(
        self,
        name: str,
        columns: Sequence[Column],
        *,
        empty: str,
        actions: Sequence[Action] = (),
        on_act: OnAct | None = None,
        on_open: OnOpen | None = None,
        page: int = PAGE,
        filtered: bool = False,
    ) -> None:
        self._columns, self._page = columns, page
        self._rows: list[dict[str, object]] = []
        self._shown: list[dict[str, object]] | None = None
        self._first, self._filter = 0, ""
        self._section = ui.element("section").classes("grid").props(f'aria-label="{name}"')
        with self._section:
            if filtered:
                field = ui.input(placeholder="filter", on_change=self._on_filter).props("dense outlined clearable")
                field.props(f'aria-label="Filter {name}" data-filter').classes("filter")
            declared = [self._declared(one) for one in columns]
            if actions:
                declared.append({"name": ACTIONS, "label": "", "field": "key", "align": "right"})
            self._table = ui.table(columns=declared, rows=[], row_key="key", pagination=None)
            self._table.props("flat dense :rows-per-page-options=[0] hide-no-data wrap-cells")
            self._table.props(f':table-row-class-fn="(row) => row.mark" aria-label="{name}"')
            for one in columns:
                self._table.add_slot(f"body-cell-{one.name}", TEMPLATES[one.kind])
            if actions:
                buttons = "".join(BUTTON.format(name=one.name, label=one.label) for one in actions)
                self._table.add_slot(f"body-cell-{ACTIONS}", f'<q-td :props="props" class="acts">{buttons}</q-td>')
            self._table.set_visibility(False)
            self._empty = ui.label(empty).classes("empty")
            self._pager = Pager(self._turn) if page else None
        if on_act is not None:
            act = on_act

            async def acted(event: events.GenericEventArguments) -> None:
                name_of, key = _two(event.args)
                await act(name_of, key)

            self._table.on("act", acted)
        if on_open is not None:
            self._table.on("open", lambda event: on_open(str(event.args)))

    @staticmethod
    def _declared(column: Column) -> dict[str, object]:
        align = "right" if column.kind in RIGHT else "left"
        return {"name": column.name, "label": column.label, "field": column.name, "align": align}

    def show(self, rows: Iterable[Row]) -> None:
        self._rows = [{"off": "", "title": "", **one} for one in rows]
        self._render()

    def set_visibility(self, is_shown: bool) -> None:
        self._section.set_visibility(is_shown)

    def _render(self) -> None:
        rows = [one for one in self._rows if self._matches(one)] if self._filter else self._rows
        if self._first >= len(rows):
            self._first = 0
        part = rows[self._first : self._first + self._page] if self._page else rows
        if self._pager is not None:
            self._pager.show(self._first, len(part), len(rows))
        if part == self._shown:
            return
        self._shown = part
        self._table.rows = part
        self._table.set_visibility(bool(part))
        self._empty.set_visibility(not part)

    def _matches(self, row: dict[str, object]) -> bool:
        return any(self._filter in str(row.get(one.name, "")).lower() for one in self._columns)

    def _on_filter(self, event: events.ValueChangeEventArguments[str | None]) -> None:
        self._filter, self._first = str(event.value or "").lower(), 0
        self._render()

    def _turn(self, pages: int) -> None:
        self._first = max(0, self._first + pages * self._page)
        self._render()


def _two(args: object) -> tuple[str, str]:
    first, second = args if isinstance(args, list) else ("", "")
    return str(first), str(second)


class Pager:
    """`1-50 of 1,000`, and buttons to turn pages. Hidden if there is one page."""

    def __init__(self, turn: Callable[[int], object]) -> None:
        with ui.row().classes("pager") as self._row:
            self._label = ui.label().props('role="status"')
            self._back = ui.button("previous", on_click=lambda: turn(-1)).props("flat dense no-caps")
            self._on = ui.button("next", on_click=lambda: turn(1)).props("flat dense no-caps")
        self._row.set_visibility(False)

    def show(self, first: int, count: int, total: int, more: str = "") -> None:
        """`more`: stands for the total where it is not known."""
        self._row.set_visibility(count < total)
        self._label.set_text(f"{first + 1}–{first + count} of {more or f'{total:,}'}")
        self._back.set_enabled(first > 0)
        self._on.set_enabled(first + count < total)
