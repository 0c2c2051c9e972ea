"""The clock of a running broker, for tests: `broker.clock.advance("45s")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lab_client import Lab

if TYPE_CHECKING:
    from .broker.lab.clock.clock import ClockView
    from .broker.lab.clock.routes import AdvancedView

ADVANCE_S_MAX = 3600.0


class NotAdvanced(RuntimeError):
    """A span of time did not pass to its end; the message says how much is left, and why."""


class Clock:
    """The clock of a broker. A `span` is a number of milliseconds, or a text such as `45s` or `7d`. Every method raises
    LabRefused or LabUnreachable.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab.with_timeout(ADVANCE_S_MAX)

    def show(self) -> ClockView:
        """Returns what time it is for the broker, and what is due next."""
        found: ClockView = self._lab.get("clock")
        return found

    @property
    def now_ms(self) -> int:
        """The broker's wall time."""
        return self.show()["now_ms"]

    def freeze(self) -> None:
        """Lets the time stand still."""
        self._lab.put("clock", mode="frozen")

    def rate(self, rate: float) -> None:
        """Lets the time pass so many times as fast as the machine's: between 0.01 and 1000."""
        self._lab.put("clock", mode="rate", rate=rate)

    def system(self) -> None:
        """Lets the time pass as the machine's, from where it is."""
        self._lab.put("clock", mode="system")

    def advance(self, span: int | str) -> AdvancedView:
        """Lets a span pass at once; returns when everything that was due has happened. Raises NotAdvanced."""
        advanced: AdvancedView = self._lab.post("clock", span=span)["advanced"]
        if advanced["stopped_by"] is not None:
            raise NotAdvanced(f"{advanced['left_ms']} ms are left: {advanced['stopped_by']}")
        return advanced
