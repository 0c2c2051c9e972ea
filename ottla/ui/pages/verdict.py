"""The verdict on clients: which rules of the protocol each has kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from ...verdict.rule import EXAMINATIONS
from .. import words
from ..frame import Page
from ..grid import Column, Grid, Row

if TYPE_CHECKING:
    from ...broker.lab.verdict.routes import VerdictView
    from ...verdict.report import ClientReport, RuleReport

CLIENTS = (
    Column("client", "client", "open"),
    Column("software", "software", "mono"),
    Column("host", "host", "mono"),
    Column("outcome", "verdict", "badge"),
    Column("passed", "passed", "number"),
    Column("failed", "failed", "number"),
    Column("left", "not exercised", "number"),
)
RULES = (
    Column("rule", "rule", "open"),
    Column("examination", "examination"),
    Column("outcome", "outcome", "badge"),
    Column("kept", "kept", "number"),
    Column("broken", "failed", "number"),
    Column("what", "what a client does"),
)
ORDER = ("failed", "passed", "not exercised")


def build(page: Page) -> None:
    Verdict(page)


class Verdict:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._chosen = ""
        self._clients: dict[str, ClientReport] = {}
        with ui.row().classes("tools"):
            self._what = ui.select({"": "all rules", **{one: one for one in EXAMINATIONS}}, value="")
            self._what.props('dense outlined options-dense aria-label="Examination"')
            self._button = ui.button("examine", on_click=self._turn).props("dense no-caps unelevated color=primary")
            self._button.props("data-examine")
            self._state = ui.label().classes("dim").props('role="status"')
        self._grid = Grid(
            "Clients",
            CLIENTS,
            on_open=self._open,
            empty="Clients are not examined: press examine, and let them do their work.",
        )
        self._head = ui.label().classes("heading part").props('role="heading" aria-level="2"')
        with ui.element("div").classes("beside"):
            self._rules = Grid("Rules", RULES, empty="", on_open=self._open_rule, filtered=True)
            self._detail = ui.element("aside").classes("detail").props('aria-label="Rule"')
        self._detail.set_visibility(False)
        self._rules.set_visibility(False)
        self._live = page.live(self._fetch, self._show, absent=lambda _: self._show_none())

    async def _turn(self) -> None:
        link = self._page.link
        if self._button.text == "stop":
            await self._page.act(link.delete("verdict"), "the examination has ended", self._live)
            return
        body = {"examination": self._what.value} if self._what.value else {}
        await self._page.act(link.post("verdict", **body), "clients are examined from now on", self._live)

    async def _fetch(self) -> VerdictView:
        found: VerdictView = await self._page.link.get("verdict")
        return found

    def _show_none(self) -> None:
        self._button.set_text("examine")
        self._state.set_text("")

    def _show(self, found: VerdictView) -> None:
        self._button.set_text("stop")
        beyond = (
            f", {words.number(found['unexamined'])} of clients beyond the first 1,000" if found["unexamined"] else ""
        )
        dropped = f", {words.number(found['dropped'])} of them dropped" if found["dropped"] else ""
        events = f"{words.number(found['events'])} events{dropped}{beyond}"
        self._state.set_text(f"{found['examination'] or 'all rules'}: {events}")
        self._clients = {f"{number}": one for number, one in enumerate(found["clients"])}
        self._grid.show(client(key, one) for key, one in self._clients.items())
        self._show_rules()

    async def _open(self, key: str) -> None:
        self._chosen = key
        self._show_rules()

    def _show_rules(self) -> None:
        chosen = self._clients.get(self._chosen)
        self._rules.set_visibility(chosen is not None)
        if chosen is not None:
            self._head.set_text(f"Rules on {name_of(chosen)}")
            self._rules.show(rule(one) for one in sorted(chosen["rules"], key=lambda one: ORDER.index(one["outcome"])))

    def _open_rule(self, name: str) -> None:
        chosen = self._clients.get(self._chosen)
        found = next((one for one in chosen["rules"] if one["id"] == name), None) if chosen is not None else None
        if found is None:
            return
        self._detail.clear()
        self._detail.set_visibility(True)
        with self._detail:
            with ui.row().classes("end"):
                ui.label(name).classes("heading mono").props('role="heading" aria-level="3"')
                ui.space()
                ui.button("close", on_click=lambda: self._detail.set_visibility(False)).props("flat dense no-caps")
            ui.label(found["what"])
            ui.label(found["why"]).classes("dim")
            ui.label(found["link"]).classes("mono dim")
            for failure in found["failures"]:
                ui.label(failure["words"]).classes("bad")
                lines = [f"{one['what']}  {one['message']}" for one in failure["evidence"]]
                ui.label("\n".join(lines)).classes("code")


def name_of(one: ClientReport) -> str:
    return words.short(one["client_id"] or words.MINUS, 60)


def client(key: str, one: ClientReport) -> Row:
    counts = {outcome: sum(rule["outcome"] == outcome for rule in one["rules"]) for outcome in ORDER}
    errors = [rule for rule in one["rules"] if rule["outcome"] == "failed" and rule["severity"] == "error"]
    return {
        "key": key,
        "client": name_of(one),
        "software": words.short(f"{one['software']} {one['software_version']}".strip() or words.MINUS, 60),
        "host": one["host"],
        "outcome": "failed" if errors else "warnings" if counts["failed"] else "passed",
        "passed": counts["passed"],
        "failed": counts["failed"],
        "left": counts["not exercised"],
    }


def rule(one: RuleReport) -> Row:
    return {
        "key": one["id"],
        "rule": one["id"],
        "examination": one["examination"],
        "outcome": one["outcome"],
        "kept": one["kept"],
        "broken": one["failed"],
        "what": one["what"],
    }
