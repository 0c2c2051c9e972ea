"""A trace of a running broker, for tests."""

from __future__ import annotations

from contextlib import suppress

from ..lab_client import Lab, LabRefused
from ..lab_ending import Ending
from ..verdict.trace_lines import Event
from .lines import line
from .reading import ask
from .walking import Topics


class RunningTrace(Ending):
    """A trace that was started; its last events are in the broker's memory. `number`: by which the lab knows it. As a
    context manager it ends at the end, and then its events are gone.
    """

    def __init__(self, lab: Lab, number: int) -> None:
        self.number = number
        self._lab = lab

    @property
    def events(self) -> list[Event]:
        """The events so far, as far as they are kept, in the form of docs/reference/trace.md."""
        return list(ask(self._lab, self.number, following=False))[1:]

    def lines(self, last: int | None = None) -> list[str]:
        """The events so far as `ottla trace show` prints them; only the `last` ones if it is given."""
        topics = Topics()
        found = [line(one, topics) for one in self.events]
        return found if last is None else found[-last:]

    def stop(self) -> None:
        """Ends the trace, if it has not ended."""
        with suppress(LabRefused):
            self._lab.delete(f"traces/{self.number}")

    def _end(self) -> None:
        self.stop()
