"""Asks again and again for what a page shows, while it is open."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from nicegui import ui

from ..lab_client import LabRefused, LabUnreachable
from .health import Health

T = TypeVar("T")
EVERY_S = 0.2
SHARE = 4  # a slow answer is asked for again after so many times the time that it took


def pause_s(began: float, every_s: float = EVERY_S) -> float:
    """How long to wait before something is asked for again that was asked for at `began`, in seconds."""
    return max(every_s, SHARE * (time.monotonic() - began))


class Live(Generic[T]):
    """Shows what `fetch` returns whenever it differs from what was shown before.

    `absent`: shows the words of a refusal that there is no such thing, 404; other refusals are the page's.
    """

    def __init__(
        self,
        health: Health,
        fetch: Callable[[], Awaitable[T]],
        show: Callable[[T], None],
        *,
        every_s: float = EVERY_S,
        absent: Callable[[str], None] | None = None,
    ) -> None:
        self._health = health
        self._fetch = fetch
        self._show = show
        self._absent = absent
        self._every_s = every_s
        self._last: object = None
        self._asked = self._answered = 0  # numbers of questions: two may be asked at the same time
        self._timer = ui.timer(every_s, self._round)

    async def _round(self) -> None:
        if not self._health.is_looked_at:
            return
        began = time.monotonic()
        await self.now()
        self._timer.interval = pause_s(began, self._every_s)

    async def now(self) -> None:
        """Asks at once, as after a change of the user's. An answer that comes after that to a later question is older
        than what is shown, and left out.
        """
        self._asked = asked = self._asked + 1
        try:
            found = await self._fetch()
        except LabUnreachable as error:
            self._health.is_gone(str(error))
        except LabRefused as error:
            if error.status != 404 or self._absent is None:
                self._health.is_refused(error)
            elif self._is_newer(asked):
                self._last = None
                self._absent(str(error))
        else:
            if self._is_newer(asked) and found != self._last:
                self._show(found)
                self._last = found

    def _is_newer(self, asked: int) -> bool:
        """Notes that a question was answered. Returns whether no later one was before."""
        self._health.is_there()
        if asked < self._answered:
            return False
        self._answered = asked
        return True
