"""Requests: those that are held, and all that come and are answered while one watches, decoded."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from nicegui import ui

from .. import words
from ..frame import Page
from ..grid import Action, Column, Grid, Row
from ..watched import WatchedTrace

if TYPE_CHECKING:
    from ...broker.lab.requests.routes import HeldView, HoldView
    from ...broker.lab.traces.routes import TraceEventsView

Event = dict[str, object]
KEPT = 300  # events of a watch
HELD = (
    Column("number", "#", "open"),
    Column("api", "request", "mono"),
    Column("at", "held", "badge"),
    Column("client", "client id", "mono"),
    Column("from", "from", "mono"),
    Column("waiting", "for", "number"),
)
HOLDS = (
    Column("what", "which are held", "mono"),
    Column("at", "when", "badge"),
    Column("held", "held so far", "number"),
    Column("waiting", "waiting", "number"),
)
EVENTS = (
    Column("number", "#", "open"),
    Column("time", "time", "mono"),
    Column("event", "", "badge"),
    Column("api", "API", "mono"),
    Column("client", "client id", "mono"),
    Column("from", "connection", "mono"),
    Column("correlation", "correlation", "number"),
    Column("took", "took", "number"),
    Column("message", "message", "clip"),
)


def build(page: Page) -> None:
    with ui.element("div").classes("beside"):
        with ui.element("div").classes("grow"):
            held = Held(page)
            watch = Watch(page)
        detail = ui.element("aside").classes("detail").props('aria-label="Message"')
        detail.set_visibility(False)

    def show(title: str, parts: dict[str, object]) -> None:
        detail.clear()
        detail.set_visibility(True)
        with detail:
            with ui.row().classes("end"):
                ui.label(title).classes("heading mono").props('role="heading" aria-level="3"')
                ui.space()
                ui.button("close", on_click=lambda: detail.set_visibility(False)).props("flat dense no-caps")
            for name, part in parts.items():
                ui.label(name).classes("dim")
                ui.label(words.indented(part)).classes("code").props(f'role="region" tabindex="0" aria-label="{name}"')

    held.show_detail = watch.show_detail = show


def _no_detail(title: str, parts: dict[str, object]) -> None:
    """Used until the page has a place for it."""


class Held:
    """Holds, and what they hold."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.show_detail = _no_detail
        self._by_number: dict[str, HeldView] = {}
        with ui.row().classes("tools"):
            ui.label("Held").classes("heading").props('role="heading" aria-level="2"')
            self._api = ui.input("API").props('dense outlined aria-label="API to hold"').classes("small")
            self._client = ui.input("client id").props('dense outlined aria-label="Client id to hold"').classes("small")
            self._at = ui.select(["request", "reply"], value="request").props('dense outlined aria-label="When"')
            add = ui.button("hold", on_click=self._add).props("dense no-caps unelevated color=primary data-hold")
            add.props('aria-label="hold these requests"')
            ui.space()
            ui.button("release all", on_click=self._release_all).props("dense flat no-caps")
        self._holds = Grid(
            "Holds", HOLDS, empty="No requests are held.", actions=(Action("end", "end"),), on_act=self._end, page=10
        )
        actions = Action("go-on", "release"), Action("close", "close")
        self._grid = Grid(
            "Held requests", HELD, empty="No request waits.", actions=actions, on_act=self._release, on_open=self._open
        )
        self._live = page.live(self._fetch, self._show)

    async def _fetch(self) -> tuple[list[HoldView], list[HeldView]]:
        link = self._page.link
        return (await link.get("requests/holds"))["holds"], (await link.get("requests"))["requests"]

    def _show(self, found: tuple[list[HoldView], list[HeldView]]) -> None:
        holds, held = found
        self._by_number = {str(one["number"]): one for one in held}
        self._holds.show(_hold(one) for one in holds)
        self._grid.show(_held(one) for one in held)

    async def _add(self) -> None:
        wanted = {"api": self._api.value or None, "client_id": self._client.value or None}
        body = {name: one for name, one in wanted.items() if one is not None}
        await self._page.act(
            self._page.link.post("requests/holds", at=self._at.value, **body), "requests are held", self._live
        )

    async def _end(self, _: str, key: str) -> None:
        await self._page.act(self._page.link.delete(f"requests/holds/{key}"), "the hold has ended", self._live)

    async def _release(self, then: str, key: str) -> None:
        body = self._page.link.post("requests/release", requests=[int(key)], then=then)
        await self._page.act(
            body, f"request {key} goes on" if then == "go-on" else "its connection is closed", self._live
        )

    async def _release_all(self) -> None:
        await self._page.act(self._page.link.post("requests/release"), "all go on", self._live)

    def _open(self, key: str) -> None:
        one = self._by_number.get(key)
        if one is not None:
            reply = {} if one["reply"] is None else {"reply": one["reply"]}
            self.show_detail(f"{one['api']} v{one['version']}", {"request": one["request"], **reply})


def _hold(one: HoldView) -> Row:
    asked = {name: value for name, value in one["asked"].items() if value not in (None, [], "request", "reply")}
    text = " ".join(f"{name}={words.brief(value)}" for name, value in asked.items())
    return {
        "key": str(one["number"]),
        "title": f"hold {one['number']}",
        "what": words.short(text or "all requests"),
        "at": one["asked"].get("at", "request"),
        "held": one["held"],
        "waiting": one["waiting"],
    }


def _held(one: HeldView) -> Row:
    return {
        "key": str(one["number"]),
        "title": f"request {one['number']}",
        "number": one["number"],
        "api": f"{one['api']} v{one['version']}",
        "at": one["at"],
        "client": words.short(one["client_id"] or words.MINUS, 60),
        "from": one["client"],
        "waiting": words.span(one["waiting_ms"]),
    }


class Watch:
    """A trace that is read while it is shown, and ends with the page."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.show_detail = _no_detail
        self._trace = WatchedTrace(page.link)
        self._missed = 0
        self._events: deque[tuple[int, Event]] = deque(maxlen=KEPT)
        with ui.row().classes("tools part"):
            ui.label("Live").classes("heading").props('role="heading" aria-level="2"')
            self._api = ui.input("API").props('dense outlined aria-label="API to watch"').classes("small")
            self._client = (
                ui.input("client id").props('dense outlined aria-label="Client id to watch"').classes("small")
            )
            self._button = ui.button("watch", on_click=self._turn).props("dense no-caps unelevated color=primary")
            self._button.props("data-watch")
            ui.button("clear", on_click=self._clear).props("dense flat no-caps")
            self._state = ui.label().classes("dim").props('role="status"')
        self._grid = Grid(
            "Live requests",
            EVENTS,
            empty="Press watch to see requests and replies as they come.",
            on_open=self._open,
            filtered=True,
        )
        page.live(self._trace.events, self._show, absent=lambda _: self._show(None))
        ui.on("left", self._trace.end)
        ui.context.client.on_delete(self._trace.end)  # the browser ended and could not say so

    async def _turn(self) -> None:
        wanted = {"api": self._api.value or None, "client_id": self._client.value or None}
        body: dict[str, object] = {name: one for name, one in wanted.items() if one is not None}
        await self._page.act(self._trace.turn(body), "")
        self._missed = 0
        self._show_whether()

    def _show_whether(self) -> None:
        self._button.set_text("stop" if self._trace.is_there else "watch")

    def _clear(self) -> None:
        self._events.clear()
        self._grid.show([])

    def _show(self, found: TraceEventsView | None) -> None:
        self._show_whether()
        if found is None:
            self._state.set_text("")
            return
        events = list(found["events"])
        first = found["next"] - len(events) + 1
        self._events.extend((first + at, one) for at, one in enumerate(events) if "api" in one)
        self._trace.took(found)
        self._missed += found["missed"]
        missed = f", {self._missed} were too many to show" if self._missed else ""
        self._state.set_text(f"{found['next']} events{missed}")
        self._grid.show(_event(number, one) for number, one in reversed(self._events))

    def _open(self, key: str) -> None:
        for number, one in self._events:
            if str(number) == key:
                rest = {name: value for name, value in one.items() if name != "message"}
                self.show_detail(f"{one['api']} v{one['version']}", {"message": one.get("message"), "event": rest})


def _event(number: int, one: Event) -> Row:
    message = one.get("message")
    took = one.get("latency_us")
    return {
        "key": str(number),
        "number": number,
        "time": words.time(int(str(one["at_ms"])), with_date=False),
        "event": one["event"],
        "api": f"{one['api']} v{one['version']}",
        "client": words.short(str(one.get("client_id") or words.MINUS), 40),
        "from": str(one.get("connection", "")),
        "correlation": one.get("correlation_id", ""),
        "took": words.MINUS if took is None else f"{int(str(took)) / 1000:.2f} ms",
        "message": words.short(_brief(message), 160),
    }


def _brief(message: object) -> str:
    if not isinstance(message, dict):
        return ""
    return " ".join(f"{name}={words.brief(one)}" for name, one in message.items())
