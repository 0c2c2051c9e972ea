"""The metrics that clients have pushed last, for those who look at the broker.

They stay after the client has ended, until its next push would be late: for three intervals, a minute at least.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from ..clock import Cancellable
from ..limits import CLIENT_SERIES, Limits
from ..steps import in_steps
from ..turn import Turn
from .client_metrics_manager import INSTANCES_MAX, Pushed, Receiver

if TYPE_CHECKING:
    from .otlp import Point

SERIES_OF_CLIENT_MAX = 5000
Key = tuple[str, tuple[tuple[str, str], ...]]
"""The name and the labels of a time series."""


class Series:
    """A time series: its last value, or the sum of its changes. `push`: the number of the last push that had it."""

    __slots__ = ("is_counter", "push", "value")

    def __init__(self, is_counter: bool) -> None:
        self.is_counter = is_counter
        self.push = 0
        self.value = 0.0

    def take(self, point: Point, push: int) -> None:
        self.push = push
        if not point.is_delta:
            self.value = point.value
        elif math.isfinite(point.value):
            self.value += point.value


class PushingClient:
    """A client that has pushed metrics. `last_push_ms`: monotonic time. `has_ended`: it said that this was the last
    push.
    """

    def __init__(self, pushed: Pushed) -> None:
        self.series: dict[Key, Series] = {}
        self.pushes = self.pushed_bytes = 0
        self.expiry: Cancellable | None = None
        self.take(pushed, 0)

    def take(self, pushed: Pushed, now_ms: int) -> None:
        """Takes over who the client is."""
        self.client_id = pushed.client_id
        self.peer = pushed.peer
        self.has_ended = pushed.terminating
        self.last_push_ms = now_ms


class PushedMetrics(Receiver):
    """The clients that have pushed metrics, by their instance ids. `series_max`: of all clients."""

    def __init__(self, turn: Turn, limits: Limits, series_max: int) -> None:
        self.clients: dict[bytes, PushingClient] = {}
        self.series_max = series_max
        self.series = 0
        self._turn = turn
        self._limits = limits
        self._is_prepared = False

    def prepare(self) -> None:
        """Imports what reads metrics, in a thread: that takes longer than other clients should wait."""
        if not self._is_prepared:
            self._is_prepared = True
            self._turn.in_thread(partial(importlib.import_module, f"{__package__}.otlp"), lambda _, error: None)

    async def export(self, pushed: Pushed) -> None:
        from .otlp import points

        found = points(pushed.data)  # raises before anything has changed
        client = self.clients.pop(pushed.instance_id, None) or PushingClient(pushed)
        self.clients[pushed.instance_id] = client
        client.take(pushed, self._turn.schedule.monotonic_ms())
        client.pushes += 1
        client.pushed_bytes += len(pushed.data)
        if client.expiry is not None:
            client.expiry.cancel()
        client.expiry = self._turn.later(pushed.kept_ms, partial(self._forget, pushed.instance_id))
        if len(self.clients) > INSTANCES_MAX:
            self._forget(next(iter(self.clients)))
        await in_steps(self._turn, self._keep(pushed, client, found))

    def _keep(self, pushed: Pushed, client: PushingClient, found: Iterator[Point | None]) -> Iterator[None]:
        """Keeps the values of a push, and yields after each; ends if the client is forgotten meanwhile. Clients push
        all their series each time, so those that are not in the push are gone.
        """
        push = client.pushes
        for point in found:
            yield
            if point is None:
                continue
            if self.clients.get(pushed.instance_id) is not client:
                return
            series = client.series.get((point.name, point.labels))
            if series is None:
                if len(client.series) >= SERIES_OF_CLIENT_MAX or self.series >= self.series_max:
                    self._limits.reached(CLIENT_SERIES, pushed.peer.address)
                    continue
                series = client.series[point.name, point.labels] = Series(point.is_counter)
                self.series += 1
            series.take(point, push)
        if client.pushes == push and self.clients.get(pushed.instance_id) is client:
            for key in [key for key, series in client.series.items() if series.push != push]:
                del client.series[key]
                self.series -= 1

    def _forget(self, instance_id: bytes) -> None:
        client = self.clients.pop(instance_id)
        if client.expiry is not None:
            client.expiry.cancel()
        self.series -= len(client.series)
