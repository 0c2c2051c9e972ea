"""The order in which B gets the heartbeats of a group: that in which A has done them, because what a broker assigns
depends on who joined first.

Replies on several connections may be read in another order than A wrote them. The epochs in the replies tell the order:
while a member that joins is on its way to A, those that A answers have no place yet. The heartbeats of one connection
keep their order, in which B gets them anyway.
"""

from __future__ import annotations

from typing import Final

from ..comparing.assignments import FIELDS
from ..comparing.latest import Latest
from .exchange import Exchange

GROUPS_MAX: Final = 10_000


class _Line:
    """The heartbeats of a group."""

    def __init__(self) -> None:
        self.due: dict[Exchange, None] = {}  # those that have a place, and B has not answered
        self.joining: set[Exchange] = set()  # A has not answered
        self.answered: list[tuple[int, object, Exchange]] = []  # with the epoch and the connection; without a place yet

    def take(self, exchange: Exchange, epoch: int, connection: object) -> None:
        """Puts a heartbeat behind those of its connection, and those of lower epochs. `epoch`: 0 if A tells none."""
        self.joining.discard(exchange)
        before = [one for one, other, _ in self.answered if epoch <= 0 or other is connection]
        self.answered.append((max([epoch, *before]), connection, exchange))
        self.enter()

    def enter(self) -> None:
        """Gives places to those that A has answered, unless a member is on its way to A."""
        if self.joining:
            return
        for _, _, one in sorted(self.answered, key=lambda row: row[0]):
            one.after += tuple(other.done for other in self.due)
            self.due[one] = None
            one.is_placed.set()
        self.answered.clear()


class Pace:
    """The lines of all groups."""

    def __init__(self) -> None:
        self._lines: Latest[tuple[str, str], _Line] = Latest(GROUPS_MAX)
        self._connections: dict[Exchange, object] = {}  # of those that A has not answered

    def begin(self, exchange: Exchange, connection: object) -> None:
        """A request came. `connection`: of the client."""
        if exchange.api in FIELDS:
            self._connections[exchange] = connection
            if _is_joining(exchange):
                self._line(exchange).joining.add(exchange)

    def take_a(self, exchange: Exchange) -> None:
        """A has answered, or never will."""
        connection = self._connections.pop(exchange, None)
        if connection is not None:
            reply = exchange.reply(exchange.answer or b"")
            self._line(exchange).take(exchange, int(getattr(reply, "member_epoch", 0)), connection)

    def finish(self, exchange: Exchange) -> None:
        """B has answered, or never will."""
        if exchange.api in FIELDS:
            self._connections.pop(exchange, None)
            line = self._line(exchange)
            line.due.pop(exchange, None)
            line.joining.discard(exchange)
            line.enter()

    def _line(self, exchange: Exchange) -> _Line:
        key = exchange.api, str(getattr(exchange.request, "group_id", ""))
        line = self._lines.get(key) or _Line()
        self._lines[key] = line
        return line


def _is_joining(exchange: Exchange) -> bool:
    return getattr(exchange.request, "member_epoch", None) == 0
