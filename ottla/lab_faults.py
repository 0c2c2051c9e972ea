"""Faults and holds of requests, as objects for tests in Python: `Lab.fault`, `Lab.hold_requests`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .lab_ending import Ending

if TYPE_CHECKING:
    from .broker.lab.faults.routes import FaultView
    from .broker.lab.requests.routes import HeldView
    from .lab_client import Lab

OF_THE_RULE = frozenset(
    (
        *("api", "versions", "client_id", "principal", "listener", "node", "topic", "partition", "group", "member"),
        *("transactional_id", "nth", "every", "share", "seed", "times", "duration"),
    )
)


def fault_body(kind: str, values: Mapping[str, object]) -> dict[str, object]:
    """Returns a rule as the HTTP API takes it. `values`: of the rule, and of its action."""
    given = {name: value for name, value in values.items() if value is not None}
    action = {name: value for name, value in given.items() if name not in OF_THE_RULE}
    return {
        **{name: value for name, value in given.items() if name in OF_THE_RULE},
        "action": {"kind": kind, **action},
    }


class FaultRule(Ending):
    """A rule in force. As a context manager it is removed at the end, if it has not ended before."""

    def __init__(self, lab: Lab, view: FaultView) -> None:
        self._lab = lab
        self._view = view
        self._is_removed = False
        self.number = view["number"]

    @property
    def view(self) -> FaultView:
        """The rule with its counts, and its latest applications; after its removal, as it was then."""
        if not self._is_removed:
            self._view = self._lab.get(f"faults/{self.number}")
        return self._view

    @property
    def matched(self) -> int:
        """How many requests it was for."""
        return self.view["matched"]

    @property
    def applied(self) -> int:
        """To how many of them it was applied."""
        return self.view["applied"]

    def remove(self) -> FaultView:
        """Removes the rule; returns its counts."""
        if not self._is_removed:
            self._view = self._lab.delete(f"faults/{self.number}")
            self._is_removed = True
        return self._view

    def _end(self) -> None:
        self.remove()


class RequestHold(Ending):
    """A hold of requests or replies. As a context manager it ends at the end, and what it holds goes on."""

    def __init__(self, lab: Lab, number: int) -> None:
        self._lab = lab
        self.number = number

    def held(self, at_least: int = 0, within: str | int = "10s") -> list[HeldView]:
        """Returns what is held, oldest first; waits until there are so many. Raises LabRefused if there are not."""
        reply = self._lab.get("requests", hold=self.number, at_least=at_least, within=within)
        found: list[HeldView] = reply["requests"]
        return found

    def release(self, *numbers: int, count: int | None = None) -> list[int]:
        """Lets requests go on, in this order; the oldest `count` or all if none is named. Returns their numbers."""
        return self._go_on(numbers, count, "go-on")

    def close(self, *numbers: int, count: int | None = None) -> list[int]:
        """Closes the connections of requests instead."""
        return self._go_on(numbers, count, "close")

    def _go_on(self, numbers: Sequence[int], count: int | None, then: str) -> list[int]:
        body: dict[str, object] = {"requests": list(numbers), "hold": self.number, "then": then}
        if count is not None:
            body["count"] = count
        released: list[int] = self._lab.post("requests/release", body)["released"]
        return released

    def end(self) -> None:
        """Ends the hold; what it holds goes on."""
        self._lab.delete(f"requests/holds/{self.number}")

    def _end(self) -> None:
        self.end()
