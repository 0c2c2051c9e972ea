"""What clients of classic groups have sent, as far as it decides which rebalances begin and who takes part in them."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Final

from ..comparing.differences import Difference
from ..comparing.generations import Round, Rounds
from ..comparing.identities import Identities
from ..comparing.latest import Latest
from ..protocol import messages as m
from ..protocol.errors import CODES
from .exchange import Exchange

GROUPS_MAX: Final = 1000
MOVERS_MAX: Final = 200  # requests of a group that are kept
NAMED_S: Final = 1.0
"""How long A's reply to its leader, which names the members, may come after that to another one."""
MOVING: Final = frozenset(("JoinGroup", "LeaveGroup"))
"""APIs that begin rebalances."""
TOLD: Final = frozenset(("Heartbeat", "SyncGroup", "OffsetCommit"))
"""APIs whose replies say that a rebalance has begun."""
REBALANCE: Final = CODES["REBALANCE_IN_PROGRESS"]
UNEXPLAINED: Final = "<REBALANCE_IN_PROGRESS, but no other member joins or leaves>"


class Rebalances:
    """The requests of each group that begin rebalances, and the generations of A."""

    def __init__(self, identities: Identities) -> None:
        self.rounds = Rounds(identities)
        self._assigning: Latest[str, Exchange] = Latest(GROUPS_MAX)  # the latest SyncGroup of A's leader
        self._movers: Latest[str, deque[Exchange]] = Latest(GROUPS_MAX)

    def begin(self, exchange: Exchange) -> None:
        """A request came."""
        if exchange.api in MOVING and exchange.request is not None:
            group = _group(exchange)
            movers = self._movers.get(group) or deque(maxlen=MOVERS_MAX)
            self._movers[group] = movers
            movers.append(exchange)
        elif isinstance(exchange.request, m.SyncGroupRequest):
            if self.rounds.take_request(exchange.request):
                self._assigning[exchange.request.group_id] = exchange

    def take_a(self, exchange: Exchange) -> None:
        """A has answered, or will not."""
        if isinstance(exchange.request, m.JoinGroupRequest) and exchange.answer is not None:
            reply = exchange.reply(exchange.answer)
            if isinstance(reply, m.JoinGroupResponse):
                exchange.round = self.rounds.take_a(exchange.request.group_id, reply)

    async def turn(self, exchange: Exchange) -> None:
        """Waits until those who came before a member, and whom A has in the same generation, have joined B, and until
        those of earlier generations have been answered there.
        """
        found = exchange.round
        if found is None:
            return
        joins = [one for one in self._movers.get(_group(exchange), ()) if one.api == "JoinGroup"]
        with suppress(TimeoutError):
            async with asyncio.timeout(NAMED_S):
                for one in joins:
                    if found.members is None and _member(one) in ("", found.leader):
                        await one.answered.wait()
        for one in joins:
            if one.round is not None and one.round.generation < found.generation:
                await one.done.wait()
            elif one.came_at < exchange.came_at:
                if not one.answered.is_set() and _member(one) in (found.members or ()):
                    await one.answered.wait()
                if one.round is found:
                    await one.sent.wait()

    async def assigned(self, request: m.SyncGroupRequest) -> None:
        """Waits until A's leader has had B's leader assign: a broker answers one SyncGroup of a member at a time."""
        found = self._assigning.get(request.group_id)
        if found is not None and getattr(found.request, "generation_id", None) == request.generation_id:
            await found.done.wait()

    def may_begin(self, exchange: Exchange, round_: Round | None) -> bool:
        """Whether another request may have begun a rebalance at B while this one was under way."""
        return any(
            (one.round is None or one.round is not round_) and not _is_refused(one)
            for one in self._movers.get(_group(exchange), ())
            if one is not exchange and not 0 < one.finished_at < exchange.came_at
        )

    def explained(self, exchange: Exchange, found: list[Difference]) -> list[Difference] | None:
        """The differences, where only B says that a rebalance has begun, with what does not explain it; None where a
        SyncGroup cannot be compared because there is an explanation.
        """
        is_told = [one for one in found if one.path.endswith("error_code") and (one.a, one.b) == (0, REBALANCE)]
        if not is_told:
            return found
        request = exchange.request
        is_sync = isinstance(request, m.SyncGroupRequest)
        round_ = self.rounds.of(request) if isinstance(request, m.SyncGroupRequest) else None
        if self.may_begin(exchange, round_):
            return None if is_sync else found
        return [Difference(one.path, one.a, UNEXPLAINED) if one in is_told else one for one in found]


def _is_refused(one: Exchange) -> bool:
    """Whether A has refused a join, for example to give a member its id."""
    return one.api == "JoinGroup" and one.answered.is_set() and one.answer is not None and one.round is None


def _group(exchange: Exchange) -> str:
    return str(getattr(exchange.request, "group_id", ""))


def _member(exchange: Exchange) -> str:
    return str(getattr(exchange.request, "member_id", ""))
