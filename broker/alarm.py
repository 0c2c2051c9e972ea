"""One timer for many deadlines."""

from __future__ import annotations

import math
from collections.abc import Callable

from .clock import Cancellable, Schedule


class Alarm:
    """One timer for many deadlines: it fires at the earliest one that was set, and then not before it is set again."""

    def __init__(self, schedule: Schedule, ring: Callable[[], None]) -> None:
        self._schedule = schedule
        self.call = ring
        self._deadline_ms = math.inf
        self._timer: Cancellable | None = None

    def set(self, deadline_ms: int | None) -> None:
        """Sets the alarm to a monotonic time, unless it is set to an earlier one."""
        if deadline_ms is None or self._deadline_ms <= deadline_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._deadline_ms = float(deadline_ms)
        self._timer = self._schedule.later(max(0, deadline_ms - self._schedule.monotonic_ms()), self._ring)

    def _ring(self) -> None:
        self._deadline_ms, self._timer = math.inf, None
        self.call()

    def end(self) -> None:
        """Stops the alarm; it cannot be set again."""
        self._deadline_ms = -math.inf
        if self._timer is not None:
            self._timer.cancel()
