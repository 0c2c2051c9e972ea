"""What all pages have: the broker and its state above, the list of pages at the left, and how actions are done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from nicegui import events, ui

from ..lab_client import LabRefused, LabUnreachable
from .health import Health
from .links import Link
from .live import Live

if TYPE_CHECKING:
    from ..broker.lab.clock.clock import ClockView
    from ..broker.lab.state_routes import StateView

T = TypeVar("T")
THEME_COOKIE = "ottla-theme"


class Refreshed(Protocol):
    """What is shown again after an action."""

    async def now(self) -> None: ...


class Section(NamedTuple):
    """A page in the list. `key`: after `g`, what opens it."""

    path: str
    label: str
    icon: str
    key: str


SECTIONS = (
    Section("topics", "Topics", "view_list", "t"),
    Section("groups", "Groups", "groups", "g"),
    Section("queues", "Queues", "low_priority", "q"),
    Section("transactions", "Transactions", "swap_horiz", "x"),
    Section("clients", "Clients", "devices", "c"),
    Section("requests", "Requests", "sync_alt", "r"),
    Section("faults", "Faults", "bolt", "f"),
    Section("clock", "Clock", "schedule", "k"),
    Section("metrics", "Metrics", "show_chart", "m"),
    Section("verdict", "Verdict", "rule", "v"),
)


class Page:
    """A page of a broker. Made in the function of the page; what it shows is made in `with page:`."""

    def __init__(self, links: Sequence[Link], link: Link, path: str, *crumbs: str) -> None:
        self.link = link
        section = next(one for one in SECTIONS if one.path == path)
        prepare(" · ".join((*reversed(crumbs), section.label, link.name)))
        with ui.header().classes("top"):
            ui.link("Skip to the content", "#main").classes("skip")
            ui.link("ottla", "/").classes("brand")
            if len(links) > 1:
                options = {one.number: one.name for one in links}
                chosen = ui.select(options, value=link.number, on_change=lambda e: _go(f"/b/{e.value}/{path}"))
                chosen.props('dense borderless options-dense aria-label="Broker"').classes("broker")
            else:
                ui.label(link.name).classes("broker mono")
            chip = ui.label("connecting").classes("chip").props('role="status" data-state')
            self._clock = ui.label().classes("chip chip-clock")
            ui.space()
            self._numbers = ui.label().classes("numbers")
            with ui.element("button").classes("icon").props('type="button" aria-label="Light or dark" data-theme'):
                ui.icon("contrast")
        with ui.left_drawer(value=True, bordered=True).props("width=168 breakpoint=700").classes("side"):
            with ui.element("nav").props('aria-label="Pages"'):
                for one in SECTIONS:
                    with ui.link(target=link.at(one.path)).classes(
                        "item" + (" here" if one.path == path else "")
                    ) as item:
                        item.props(f'aria-keyshortcuts="g {one.key}" data-key="{one.key}"')
                        if one.path == path:
                            item.classes("here").props('aria-current="page"')
                        ui.icon(one.icon).props('aria-hidden="true"')
                        ui.label(one.label)
            ui.label("/ filters, g and a letter goes").classes("hint")
        banner = ui.label().classes("banner").props('role="alert"')
        with ui.element("main").classes("main").props('id="main" tabindex="-1"') as self.content:
            if crumbs:
                with ui.element("nav").classes("crumbs").props('aria-label="Path"'):
                    ui.link(section.label, link.at(path))
                    for crumb in crumbs:
                        ui.label("/").props('aria-hidden="true"')
                        ui.label(crumb).classes("mono")
            else:
                ui.label(section.label).classes("title").props('role="heading" aria-level="1"')
        self.health = Health(chip, banner, self.content)
        ui.on("visibility", lambda event: self.health.note_visible(event.args == "visible"))
        self.live(self._state, self._show_state)

    def __enter__(self) -> Page:
        self.content.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.content.__exit__(*error)

    def live(
        self,
        fetch: Callable[[], Awaitable[T]],
        show: Callable[[T], None],
        *,
        every_s: float | None = None,
        absent: Callable[[str], None] | None = None,
    ) -> Live[T]:
        """Shows what a function returns, now and whenever it has changed."""
        more = {} if every_s is None else {"every_s": every_s}
        return Live(self.health, fetch, show, absent=absent, **more)

    async def asked(self, asking: Awaitable[T]) -> T | None:
        """The broker's answer; None if it refuses, and says why."""
        try:
            return await asking
        except (LabRefused, LabUnreachable) as error:
            self._say(error)
            return None

    @staticmethod
    def _say(error: Exception) -> None:
        ui.notify(str(error), type="negative", timeout=8000, close_button="close")

    async def act(self, action: Awaitable[object], done: str, *after: Refreshed) -> bool:
        """Carries out what the user asked for, says how it went, and shows what has changed."""
        try:
            await action
        except (LabRefused, LabUnreachable) as error:
            self._say(error)
            return False
        if done:
            ui.notify(done, type="positive", timeout=2000)
        for one in after:
            await one.now()
        return True

    async def _state(self) -> tuple[StateView, ClockView]:
        return await self.link.get("state"), await self.link.get("clock", deadlines=0)

    def _show_state(self, found: tuple[StateView, ClockView]) -> None:
        state, clock = found
        lag = state["loop_lag_ms_max"]
        self._numbers.set_text(f"node {state['node_id']}   {state['connections']} connections   loop {lag:.1f} ms")
        mode = clock["mode"]
        word = {"frozen": "clock frozen", "rate": f"clock × {clock['rate']:g}"}.get(mode, "")
        self._clock.set_text(word)
        self._clock.set_visibility(bool(word))


def _go(path: str) -> None:
    ui.navigate.to(path)


def prepare(title: str) -> None:
    """The title of a page, and the theme that the browser was given, or the one of its system."""
    ui.page_title(f"{title} · ottla")
    ui.colors(primary="#2563eb", negative="#c0362c", positive="#1f8a5b")
    request = ui.context.client.request
    chosen = request.cookies.get(THEME_COOKIE) if request is not None else None
    mode = ui.dark_mode({"dark": True, "light": False}.get(chosen or ""))
    # whenever the page is drawn again, the theme is the one that this element has
    ui.on("theme", lambda event: mode.set_value(event.args is True))


def ask(words: str, yes: str) -> ui.dialog:
    """A dialog that asks before something is done that cannot be undone; awaited, it returns True or something else."""
    with ui.dialog() as dialog, ui.card().classes("ask"):
        ui.label(words).props('id="ask"')
        with ui.row().classes("end"):
            ui.button("cancel", on_click=lambda: dialog.submit(False)).props("flat no-caps")
            ui.button(yes, on_click=lambda: dialog.submit(True)).props("no-caps unelevated color=negative data-yes")
    dialog.props('aria-labelledby="ask"')
    return dialog


def value_of(event: events.ValueChangeEventArguments[T]) -> str:
    return str(event.value or "")
