"""Produce without a reply: a broker says only by closing the connection that it has refused one.

B was asked for a reply, so its result is known. A's is known later: it has taken the records if it answers a later
request of the connection, and refused some if it closes the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..comparing.differences import Difference
from ..protocol import messages as m
from . import produces
from .exchange import Exchange

if TYPE_CHECKING:
    from .proxy import Proxy

CLOSES, TAKES = "<closed the connection>", "<took the records>"


class Silent:
    """The requests of one connection of which A's result is not known yet."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._last: Exchange | None = None
        self._refused: list[tuple[Exchange, Difference]] = []

    @property
    def is_refused(self) -> bool:
        """Whether B has refused one of them."""
        return bool(self._refused)

    def take(self, exchange: Exchange, reply: m.ProduceResponse) -> None:
        """B's result."""
        self._last = exchange
        for place, one in produces.results(reply, self._proxy.identities):
            if one.error_code:
                topic = place.topic or place.topic_id.hex()
                path = f"responses[{topic}].partition_responses[{place.partition}].error_code"
                self._refused.append((exchange, Difference(path, 0, one.error_code)))

    def accepted(self) -> None:
        """A goes on: it has taken all."""
        report = self._proxy.report
        for exchange, one in self._refused:
            if self._proxy.options.compares(exchange.api):
                report.difference(exchange.api, exchange.version, one, exchange.request)
        self.forget()

    def end(self, *, is_closed_by_a: bool) -> None:
        """No more requests come."""
        if self._last is None:
            return
        exchange, report = self._last, self._proxy.report
        if not is_closed_by_a:
            reason = "without a reply, the last of its connection: whether A took it is not known"
            report.skip(exchange.api, exchange.version, reason)
        elif not self._refused and self._proxy.options.compares(exchange.api):
            one = Difference("connection", CLOSES, TAKES)
            report.difference(exchange.api, exchange.version, one, exchange.request)
        self.forget()

    def forget(self) -> None:
        self._last = None
        self._refused.clear()
