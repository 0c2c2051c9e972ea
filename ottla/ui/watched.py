"""The trace that a page reads while it is looked at."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..lab_client import LabRefused, LabUnreachable
from .links import Link

if TYPE_CHECKING:
    from ..broker.lab.traces.routes import TraceEventsView


class WatchedTrace:
    """A trace of a broker, or none. The page may be left, and a button pressed twice, while the broker is asked to
    begin one: what comes then is carried out after that, so that no trace goes on that nobody reads.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._number: int | None = None
        self._after = 0
        self._one_at_a_time = asyncio.Lock()

    @property
    def is_there(self) -> bool:
        return self._number is not None

    async def turn(self, wanted: dict[str, object]) -> None:
        """Ends the trace, or begins one if there is none. Raises LabRefused or LabUnreachable."""
        async with self._one_at_a_time:
            if self.is_there:
                await self._end()
            else:
                self._number = (await self._link.post("traces", **wanted))["number"]
                self._after = 0

    async def end(self) -> None:
        async with self._one_at_a_time:
            await self._end()

    async def _end(self) -> None:
        number, self._number = self._number, None
        if number is None:
            return
        try:
            await self._link.delete(f"traces/{number}")
        except (LabRefused, LabUnreachable):
            return  # the broker has ended, or has ended it

    async def events(self) -> TraceEventsView | None:
        """Returns the events since the last ones that were taken; None without a trace. Raises LabUnreachable, and
        LabRefused: with 404 the broker started again, or its lab was reset, and there is no trace any more.
        """
        number = self._number
        if number is None:
            return None
        try:
            found: TraceEventsView = await self._link.get(f"traces/{number}/events", after=self._after)
        except LabRefused as error:
            if error.status == 404 and self._number == number:
                self._number = None
            raise
        return found if self._number == number else None

    def took(self, found: TraceEventsView) -> None:
        """Notes that events were shown."""
        self._after = found["next"]
