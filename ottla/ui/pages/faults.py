"""Faults: the rules in force, and new ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from nicegui import ui

from ...lab_client import Reply
from .. import words
from ..frame import Page
from ..grid import Action, Column, Grid, Row

if TYPE_CHECKING:
    from ...broker.lab.faults.routes import FaultsView, FaultView

COLUMNS = (
    Column("number", "#", "open"),
    Column("text", "what happens", "mono"),
    Column("match", "to which requests", "mono"),
    Column("matched", "matched", "number"),
    Column("applied", "applied", "number"),
    Column("left", "left", "number"),
    Column("ends", "ends in", "number"),
)
EXAMPLES = {"error": "NOT_LEADER_OR_FOLLOWER", "ms": "250ms", "of": "crc"}  # of values that an action must have


class Kind(NamedTuple):
    """A kind of action: what it does, and examples of the values that it must have."""

    words: str
    values: dict[str, str]


def build(page: Page) -> None:
    Faults(page)


class Faults:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._kinds: dict[str, Kind] = {}
        with ui.row().classes("tools"):
            self._kind = ui.select({"error": "error"}, value="error", on_change=self._chosen)
            self._kind.props('dense outlined options-dense aria-label="What happens"')
            self._action = (
                ui.input("its values").props('dense outlined aria-label="Values of the action"').classes("filter")
            )
            self._api = ui.input("API").props('dense outlined aria-label="API"').classes("small")
            self._client = ui.input("client id").props('dense outlined aria-label="Client id"').classes("small")
            self._topic = ui.input("topic").props('dense outlined aria-label="Topic"').classes("small")
            self._more = ui.input("more, such as every=3").props('dense outlined aria-label="More"').classes("small")
            self._times = ui.input("times").props('dense outlined aria-label="How often"').classes("tiny")
            ui.button("add", on_click=self._add).props(
                'dense no-caps unelevated color=primary data-add aria-label="add the fault"'
            )
            ui.space()
            ui.button("remove all", on_click=self._remove_all).props("dense flat no-caps")
        self._hint = ui.label().classes("dim")
        self._grid = Grid(
            "Faults",
            COLUMNS,
            empty="There are no faults: the broker does what it should.",
            actions=(Action("remove", "remove"),),
            on_act=self._remove,
            on_open=self._open,
        )
        self._detail = ui.element("section").classes("part").props('aria-label="Applications"')
        self._live = page.live(self._fetch, self._show)
        page.live(lambda: page.link.get("openapi.json"), self._note_kinds, every_s=3600.0)

    def _note_kinds(self, document: Reply) -> None:
        """The kinds of actions, as the broker describes them."""
        self._kinds = kinds_of(document)
        self._kind.set_options({name: name for name in self._kinds}, value="error")
        self._chosen()

    def _chosen(self) -> None:
        found = self._kinds.get(str(self._kind.value))
        if found is not None:
            values = " ".join(f"{name}={example}" for name, example in found.values.items())
            self._action.set_value(values)
            self._hint.set_text(found.words.replace("`", ""))

    async def _fetch(self) -> FaultsView:
        found: FaultsView = await self._page.link.get("faults")
        return found

    def _show(self, found: FaultsView) -> None:
        self._grid.show(map(row, found["faults"]))

    async def _add(self) -> None:
        wanted: dict[str, object] = {
            "api": self._api.value,
            "client_id": self._client.value,
            "topic": self._topic.value,
        }
        wanted = {name: one for name, one in wanted.items() if one}
        if self._times.value:
            wanted["times"] = value_of(str(self._times.value))
        action = {"kind": self._kind.value, **values_of(str(self._action.value or ""))}
        body = self._page.link.post("faults", **{**wanted, **values_of(str(self._more.value or ""))}, action=action)
        await self._page.act(body, "the fault is in force", self._live)

    async def _remove(self, _: str, number: str) -> None:
        await self._page.act(self._page.link.delete(f"faults/{number}"), f"fault {number} is gone", self._live)
        self._detail.clear()

    async def _remove_all(self) -> None:
        await self._page.act(self._page.link.delete("faults"), "all faults are gone", self._live)
        self._detail.clear()

    async def _open(self, number: str) -> None:
        found: FaultView | None = await self._page.asked(self._page.link.get(f"faults/{number}"))
        self._detail.clear()
        if found is None:
            return
        with self._detail:
            ui.label(f"Fault {number}: latest applications").classes("heading").props('role="heading" aria-level="2"')
            lines = [f"{words.time(one['at_ms'])}  {one['what']}" for one in reversed(found.get("latest", []))]
            ui.label("\n".join(lines) or "It was not applied yet.").classes("code")
            ui.label(words.indented(found["fault"])).classes("code")


def row(one: FaultView) -> Row:
    without = {"action", "times", "duration"}
    asked = {name: value for name, value in one["fault"].items() if name not in without and value not in (None, [], {})}
    return {
        "key": str(one["number"]),
        "title": f"fault {one['number']}",
        "number": one["number"],
        "text": one["text"],
        "match": words.short(" ".join(f"{name}={value}" for name, value in asked.items()) or "all"),
        "matched": words.number(one["matched"]),
        "applied": words.number(one["applied"]),
        "left": words.number(one["left"]),
        "ends": words.span(one["ends_in_ms"]),
    }


def kinds_of(document: Reply) -> dict[str, Kind]:
    """The kinds of actions in an OpenAPI document: what each does, and its values that must be given."""
    schemas = document["components"]["schemas"]
    found: dict[str, Kind] = {}
    for kind, place in schemas["Fault"]["properties"]["action"]["discriminator"]["mapping"].items():
        one = schemas[place.rpartition("/")[2]]
        needed = {name: _example(name, one["properties"][name]) for name in one.get("required", ()) if name != "kind"}
        found[kind] = Kind(one.get("description", ""), needed)
    return found


def _example(name: str, schema: Reply) -> str:
    choices = schema.get("enum", [""])
    return EXAMPLES.get(name, str(schema.get("default", choices[0])))


def values_of(text: str) -> dict[str, object]:
    """`name=value` pairs."""
    pairs = (one.partition("=") for one in text.split())
    return {name: value_of(value) for name, _, value in pairs}


def value_of(text: str) -> object:
    """A value as JSON if it is some, else as a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
