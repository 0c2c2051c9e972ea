"""Closes connections that are idle for longer than `connections.max.idle.ms`."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..turn import Turn
from .connection import Connection

SWEEP_MS = 1000


class IdleConnections:
    """Looks at the connections of a server every second, while one may be idle for too long."""

    def __init__(self, turn: Turn, connections: Iterable[Connection], limit_ms: int) -> None:
        self._schedule = turn.schedule
        self._connections = connections
        self._limit_ms = limit_ms
        if limit_ms >= 0:
            turn.every(lambda: SWEEP_MS, self._close_idle, due_ms=self._due_ms)

    def _due_ms(self) -> float:
        return min((one.last_active_ms for one in self._connections), default=math.inf) + self._limit_ms + 1

    def _close_idle(self) -> None:
        now_ms = self._schedule.monotonic_ms()
        for connection in list(self._connections):
            if now_ms - connection.last_active_ms > self._limit_ms and not connection.is_waiting():
                connection.close("idle for longer than connections.max.idle.ms", "idle")
