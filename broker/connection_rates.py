"""Rates of new connections: of a node, of its listeners, and of addresses (KIP-612).

Beyond the rate of the broker or its listener a connection is served later, and those that come after it wait in line.
Beyond the rate of its address a connection is never served: it is closed after the time that it would have had to wait,
so that its client does not come back at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import NamedTuple

from ..coordinator.metadata import quotas as keys
from ..coordinator.metadata.delta import MetadataDelta
from ..coordinator.metadata.state import MetadataState, Quota
from ..coordinator.quota.rates import Average, Rate, Windows
from .addresses import Address, address, addresses_of
from .turn import Turn

RATE_MAX = 2**31 - 1  # stands for no limit
ADDRESSES_MAX = 10_000  # whose rates are measured; the one that connected the longest ago is forgotten first


class Verdict(NamedTuple):
    """What becomes of a new connection: it is served, or it is closed after a time."""

    is_served: bool
    after_ms: int = 0


Decided = Callable[[Verdict], None]


class Line:
    """The new connections of one listener, which are taken one after the other, and what it measures."""

    def __init__(self, windows: Windows) -> None:
        self.rate = Rate(windows)
        self.throttle, self.address_throttle = Average(), Average()
        self.waiting: dict[Decided, Address | None] = {}  # in order of arrival
        self.is_blocked = False


class ConnectionRates:
    """The limits in force, and the rates of a node.

    `listeners`: their names. `rate_of`: returns the limit of a listener, or of the whole broker for None. `protected`:
    the listener between brokers, to which the limit of the broker does not apply if there are others.
    """

    def __init__(
        self,
        turn: Turn,
        image: MetadataState,
        windows: Windows,
        listeners: Sequence[str],
        rate_of: Callable[[str | None], int],
        protected: str,
    ) -> None:
        self._turn = turn
        self._schedule = turn.schedule
        self._image = image
        self._rate_of_listener = rate_of
        self._protected = protected if len(listeners) > 1 else None
        self.windows = windows
        self._limits: dict[Address | None, float] = {}  # None is the default
        self._begin(listeners)

    def _begin(self, listeners: Iterable[str]) -> None:
        self.broker = Rate(self.windows)
        self.lines = {name: Line(self.windows) for name in listeners}
        self._addresses: dict[Address, Rate] = {}

    def of_node(self, rate_of: Callable[[str | None], int]) -> ConnectionRates:
        """Returns the rates of another node, with the same limits of addresses. `rate_of`: as above."""
        found = copy(self)
        found._rate_of_listener = rate_of
        found._begin(self.lines)
        return found

    def load(self) -> None:
        for quota in self._image.quotas:
            self._follow(quota)

    def metadata_changed(self, delta: MetadataDelta) -> None:
        for quota in delta.quotas:
            self._follow(quota)

    def _follow(self, quota: Quota) -> None:
        if quota.key != keys.CONNECTION_CREATION_RATE or quota.entity[0][0] != keys.IP:
            return
        host = quota.entity[0][1]
        known = None if host is None else address(host)
        if host is None or known is not None:
            self._put([known], quota)
            return

        def done(found: list[Address] | None, error: BaseException | None) -> None:
            self._put(found or [], quota)

        self._turn.in_thread(lambda: addresses_of(host), done)

    def _put(self, addresses: list[Address] | list[Address | None], quota: Quota) -> None:
        record = self._image.quotas.get(quota)
        for one in addresses:
            if record is None:
                self._limits.pop(one, None)
            else:
                self._limits[one] = record.value

    # new connections

    def opened(self, listener: str, host: str, decided: Decided) -> None:
        """Takes a new connection; calls `decided` at once, or after those before it."""
        line = self.lines[listener]
        line.waiting[decided] = address(host)
        if not line.is_blocked:
            self._take(listener, line)

    def closed(self, listener: str, decided: Decided) -> None:
        """Takes a connection out of the line that its client has closed; nothing is decided about it."""
        self.lines[listener].waiting.pop(decided, None)

    def _take(self, listener: str, line: Line) -> None:
        """Decides about the connections of a line until one has to wait."""
        while line.waiting and not line.is_blocked:
            now_ms = self._schedule.monotonic_ms()
            decided = next(iter(line.waiting))
            wait_ms = self._count(listener, line, now_ms)
            if not wait_ms:
                self._decide(listener, line, decided)
                continue
            line.throttle.record(wait_ms, now_ms)
            line.is_blocked = True
            self._schedule.later(wait_ms, partial(self._unblock, listener, line, decided))

    def _unblock(self, listener: str, line: Line, decided: Decided) -> None:
        line.is_blocked = False
        if decided in line.waiting:
            self._decide(listener, line, decided)
        self._take(listener, line)

    def _count(self, listener: str, line: Line, now_ms: int) -> int:
        """Counts a connection of a listener; returns how many ms it must wait."""
        wait_ms = self._excess_ms(line.rate, self._rate_of_listener(listener), now_ms)
        if listener == self._protected:
            return wait_ms
        return max(wait_ms, self._excess_ms(self.broker, self._rate_of_listener(None), now_ms))

    def _excess_ms(self, rate: Rate, bound: float, now_ms: int) -> int:
        rate.record(1, now_ms)
        return 0 if bound == RATE_MAX else min(rate.excess_ms(bound, now_ms), self.windows.size_ms)

    def _decide(self, listener: str, line: Line, decided: Decided) -> None:
        """Decides about a connection of a line by the rate of its address."""
        where = line.waiting.pop(decided)
        now_ms = self._schedule.monotonic_ms()
        bound = None if where is None else self._limits.get(where, self._limits.get(None))
        if where is None or bound is None or bound == RATE_MAX:
            return decided(Verdict(is_served=True))
        rate = self._rate_of(where)
        wait_ms = self._excess_ms(rate, bound, now_ms)
        if not wait_ms:
            return decided(Verdict(is_served=True))
        for counted in (rate, line.rate, *(() if listener == self._protected else (self.broker,))):
            counted.record(-1, now_ms)  # a connection that is not served does not count
        line.address_throttle.record(wait_ms, now_ms)
        decided(Verdict(is_served=False, after_ms=wait_ms))

    def _rate_of(self, where: Address) -> Rate:
        rate = self._addresses.pop(where, None) or Rate(self.windows)
        if len(self._addresses) >= ADDRESSES_MAX:
            del self._addresses[next(iter(self._addresses))]
        self._addresses[where] = rate
        return rate

    def addresses(self, now_ms: int) -> Iterator[tuple[str, float]]:
        """Yields the measured addresses with their rates per second."""
        for where, rate in self._addresses.items():
            yield str(where), rate.measure(now_ms)
