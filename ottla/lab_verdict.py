"""The verdict of a running broker on its clients, for tests in Python: `Lab.verdict`, the fixture `ottla_verdict`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from .lab_client import LabRefused
from .lab_ending import Ending

if TYPE_CHECKING:
    from .broker.lab.verdict.routes import ProvokedView, VerdictView
    from .lab_client import Lab
    from .verdict.report import ClientReport


class RunningVerdict(Ending):
    """A verdict that was begun. As a context manager it ends at the end, and its report stays."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._last: VerdictView | None = None

    @property
    def view(self) -> VerdictView:
        """What is known so far; after the end, what was known then."""
        found: VerdictView = self._lab.get("verdict") if self._last is None else self._last
        return found

    @property
    def clients(self) -> list[ClientReport]:
        """The report of each client, in the form of docs/reference/verdict.md."""
        return list(self.view["clients"])

    @property
    def provoked(self) -> list[ProvokedView]:
        """What the examination provokes, and how often it did."""
        return list(self.view["provoked"])

    def outcomes(self, client_id: str | None = None) -> dict[str, str]:
        """The outcome of each rule, by its id: failed if a client failed it, passed if one passed it. `client_id`: only
        of these clients.
        """
        found: dict[str, str] = {}
        for client in self.clients:
            for rule in client["rules"] if client_id in (None, client["client_id"]) else ():
                before = found.get(rule["id"], "not exercised")
                found[rule["id"]] = min(before, rule["outcome"], key=("failed", "passed", "not exercised").index)
        return found

    def check(self, *, strict: bool = False) -> None:
        """Raises AssertionError, with the report, if a rule is failed; with `strict` also if it is a warning."""
        from .verdict.report import has_failed, lines

        clients = self.clients
        assert not has_failed(clients, strict), "\n".join(lines(clients))

    def stop(self) -> None:
        """Ends the verdict, if it has not ended."""
        if self._last is None:
            with suppress(LabRefused):
                self._last = self._lab.delete("verdict")

    def _end(self) -> None:
        self.stop()
