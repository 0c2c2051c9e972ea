"""The records of a topic: by offset, time or key, one in detail, and a new one."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nicegui import ui

from ...lab_client import segment
from .. import words
from ..frame import Page
from ..grid import Column, Grid, Row

if TYPE_CHECKING:
    from ...broker.lab.records.routes import RecordsView
    from ...broker.lab.records.views import RecordView

COLUMNS = (
    Column("offset", "offset", "open"),
    Column("time", "time", "mono"),
    Column("type", "type"),
    Column("record_key", "key", "mono"),
    Column("value", "value", "clip"),
    Column("headers", "headers", "mono"),
    Column("seen", "seen by", "badge"),
)
WAYS = {
    "latest": "the last ones",
    "offset": "from offset",
    "timestamp": "from time",
    "key": "with key",
    "contains": "with text",
}
LIMIT = 50


class Records:
    """The part of a topic's page with its records."""

    def __init__(self, page: Page, topic: str) -> None:
        self._page, self._topic = page, topic
        self._partitions = {0: "partition 0"}
        self._next: int | None = None
        self._from: int | None = None
        self._by_offset: dict[str, RecordView] = {}
        with ui.row().classes("tools part"):
            ui.label("Records").classes("heading").props('role="heading" aria-level="2"')
            self._partition = ui.select(self._partitions, value=0, on_change=self._again)
            self._partition.props('dense outlined options-dense aria-label="Partition"')
            self._way = ui.select(WAYS, value="latest", on_change=self._again)
            self._way.props('dense outlined options-dense aria-label="Which records"')
            self._what = ui.input(on_change=self._again).props(
                'dense outlined debounce=300 aria-label="Offset, time, key or text"'
            )
            self._what.classes("filter").bind_visibility_from(self._way, "value", lambda way: way != "latest")
            self._older = ui.button("older", on_click=self._back).props("flat dense no-caps")
            self._newer = ui.button("newer", on_click=self._on).props("flat dense no-caps")
            self._state = ui.label().classes("dim").props('role="status"')
            ui.space()
            write = ui.button("produce", on_click=self._produce).props("no-caps unelevated dense color=primary")
            write.props("data-produce")
        with ui.element("div").classes("beside"):
            self._grid = Grid("Records", COLUMNS, empty="There are no records here.", on_open=self._open, page=0)
            self._detail = ui.element("aside").classes("detail").props('aria-label="Record"')
            self._detail.set_visibility(False)
        self._live = page.live(self._fetch, self._show, absent=lambda _: None)

    def note(self, partitions: list[int]) -> None:
        """What partitions there are."""
        options = {one: f"partition {one}" for one in partitions}
        if options and options != self._partitions:
            self._partitions = options
            kept = self._partition.value if self._partition.value in options else partitions[0]
            self._partition.set_options(options, value=kept)

    async def _fetch(self) -> RecordsView | str:
        asked: dict[str, object] = {"limit": LIMIT}
        way, what = str(self._way.value), str(self._what.value or "").strip()
        if self._from is not None:
            asked["offset"] = self._from
        elif way == "latest":
            asked["offset"] = -LIMIT
        if way in ("key", "contains") and what:
            asked[way] = what
        if way == "offset" and self._from is None and what:
            wanted = offset_of(what)
            if wanted is None:
                return "an offset is a whole number, such as 42, or -10 for the last ten"
            asked["offset"] = wanted
        if way == "timestamp" and self._from is None and what:
            at = time_of(what)
            if at is None:
                return "a time is written as 2026-01-31 18:30, as 18:30 for today (UTC), or in milliseconds"
            asked["timestamp"] = at
        found: RecordsView = await self._page.link.get(
            f"records/{segment(self._topic)}/{self._partition.value}", **asked
        )
        return found

    def _show(self, found: RecordsView | str) -> None:
        if isinstance(found, str):
            self._state.set_text(found)
            return
        records = found["records"]
        self._by_offset = {str(one["offset"]): one for one in records}
        self._next = None if found["is_end"] else found["next"]
        self._newer.set_enabled(self._next is not None)
        first = records[0]["offset"] if records else found["log_end_offset"]
        self._older.set_enabled(first > found["log_start_offset"] and self._way.value not in ("key", "contains"))
        part = "" if found["is_end"] or records else f", searched up to {found['next']}"
        self._state.set_text(f"{found['log_start_offset']}–{found['log_end_offset']}{part}")
        self._grid.show(row(one, found) for one in reversed(records))

    async def _again(self) -> None:
        self._from = None
        await self._live.now()

    async def _back(self) -> None:
        first = min((one["offset"] for one in self._by_offset.values()), default=0)
        self._from = max(0, first - LIMIT)
        await self._live.now()

    async def _on(self) -> None:
        self._from = self._next
        await self._live.now()

    async def _open(self, offset: str) -> None:
        if offset not in self._by_offset:
            return
        place = f"records/{segment(self._topic)}/{self._partition.value}"
        found = await self._page.asked(self._page.link.get(place, offset=int(offset), limit=1, shown=1 << 18))
        if found is not None and found["records"]:
            self._detail.clear()
            self._detail.set_visibility(True)
            with self._detail:
                detail(found["records"][0], lambda: self._detail.set_visibility(False))

    async def _produce(self) -> None:
        wanted = await new_record(self._partitions, self._partition.value)
        if wanted is None:
            return
        where = f"records/{segment(self._topic)}"
        await self._page.act(self._page.link.post(where, **wanted), "the record is written", self._live)


def row(one: RecordView, page: RecordsView) -> Row:
    seen = "nobody" if one["offset"] >= page["high_watermark"] else "all"
    if seen == "all" and one["offset"] >= page["last_stable_offset"]:
        seen = "uncommitted"
    decoded = one["decoded"] if isinstance(one["decoded"], dict) else {}
    key, value = decoded.get("key", one["key"]), decoded.get("value", one["value"])
    name = "delete" if decoded and value is None else words.short(_text(value))
    return {
        "key": str(one["offset"]),
        "title": f"offset {one['offset']}",
        "offset": one["offset"],
        "time": words.time(one["timestamp"]),
        "type": one["type"] or "",
        "record_key": words.short(_text(key), 60),
        "value": one["problem"] or name,
        "headers": words.short(" ".join(f"{h['name']}={words.text(h['value'])}" for h in one["headers"]), 60),
        "seen": "damaged" if one["problem"] else seen,
    }


def _text(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return " ".join(f"{name}={words.brief(one)}" for name, one in value.items())
    return str(value)


def detail(one: RecordView, close: Callable[[], object]) -> None:
    """All of a record."""
    with ui.row().classes("end"):
        ui.label(f"offset {one['offset']}").classes("heading").props('role="heading" aria-level="3"')
        ui.space()
        ui.button("close", on_click=close).props("flat dense no-caps")
    facts = {
        "time": words.time(one["timestamp"]),
        "batch": f"from offset {one['batch_offset']}, {one['codec']}, leader epoch {one['leader_epoch']}",
        "producer": words.MINUS
        if one["producer_id"] is None
        else f"{one['producer_id']}, epoch {one['producer_epoch']}",
        "kind": " ".join(name for name in ("transactional", "control") if one[name]) or "plain",
        "type": one["type"] or words.MINUS,
    }
    with ui.element("dl"):
        for name, fact in facts.items():
            ui.element("dt").props(f'innerText="{name}"')
            with ui.element("dd"):
                ui.label(fact).classes("mono")
        for header in one["headers"]:
            with ui.element("dt"):
                ui.label(header["name"]).classes("mono")
            with ui.element("dd"):
                ui.label(words.text(header["value"])).classes("mono header-value")
    decoded = one["decoded"]
    parts = {"decoded": words.indented(decoded)} if decoded is not None else {}
    for name, value in (("key", one["key"]), ("value", one["value"])):
        parts[f"{name} ({one[f'{name}_bytes']} bytes)"] = words.text(value)  # type: ignore[literal-required]
    for name, value in parts.items():
        ui.label(name).classes("dim")
        ui.label(value).classes("code").props(f'role="region" tabindex="0" aria-label="{name}"')


async def new_record(partitions: dict[int, str], partition: int) -> dict[str, object] | None:
    """Asks for a record; None if the user does not want one."""
    with ui.dialog() as dialog, ui.card().classes("ask wide"):
        ui.label("Produce a record").classes("heading")
        with ui.row():
            where = ui.select(partitions, value=partition, label="partition").props("dense outlined options-dense")
            coding = ui.select(["text", "hex", "base64"], value="text", label="written as").props(
                "dense outlined options-dense"
            )
        key = ui.input("key").props("dense outlined autofocus clearable")
        value = ui.textarea("value").props("dense outlined autogrow")
        headers = ui.textarea("headers, a line each: name=value").props("dense outlined autogrow")
        is_tombstone = ui.checkbox("a tombstone: the value is null")
        with ui.row().classes("end"):
            ui.button("cancel", on_click=lambda: dialog.submit(False)).props("flat no-caps")
            ui.button("produce", on_click=lambda: dialog.submit(True)).props("no-caps unelevated data-yes")
    if await dialog is not True:
        return None
    lines = [line for line in str(headers.value or "").splitlines() if line.strip()]
    return {
        "partition": where.value,
        "key": key.value or None,
        "value": None if is_tombstone.value else value.value or "",
        "headers": dict(_header(line) for line in lines),
        "encoding": coding.value,
    }


def _header(line: str) -> tuple[str, str | None]:
    name, equals, value = line.partition("=")
    return name.strip(), value if equals else None


def offset_of(text: str) -> int | None:
    """A whole number, also one below 0; None if it is none."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else None


def time_of(text: str, today: datetime | None = None) -> int | None:
    """Milliseconds since 1970 of a time in UTC; None if it is none."""
    if text.isdecimal() and len(text) <= 15:
        return int(text)
    now = datetime.now(UTC) if today is None else today
    for full in (text, f"{now:%Y-%m-%d} {text}"):
        try:
            found = datetime.fromisoformat(full)
        except ValueError:
            continue  # a time of today, maybe
        moment = found.replace(tzinfo=UTC) if found.tzinfo is None else found
        return int(moment.timestamp() * 1000)
    return None
