"""JoinGroup and SyncGroup at B: its members join again until a generation of B stands for that of A."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from ..comparing.identities import Identities, translate
from ..protocol import messages as m
from ..protocol.structs import Struct
from .exchange import Exchange
from .rebalances import REBALANCE
from .upstream import Upstream

if TYPE_CHECKING:
    from .proxy import Proxy

AGAIN_MAX: Final = 40  # how often a broker is asked again
AGAIN_S: Final = (0.02, 0.05, 0.1, 0.2, 0.25)  # the pauses; the last is that of all further ones
FOLLOW_MAX: Final = 20  # how often a member joins again
TOLD_MAX: Final = 2  # the same, once such a difference has been told
MEMBERS: Final = "members[0]"
Ask = Callable[[Exchange, bytes], Awaitable[Struct | None]]
"""Sends B another frame; None where B does not answer."""
Read = Callable[[Upstream, Exchange], Awaitable[bytes]]


def pause_s(number: int) -> float:
    """The pause before the n-th time at which B is asked again."""
    return AGAIN_S[min(number, len(AGAIN_S) - 1)]


async def follow(
    exchange: Exchange, a: m.JoinGroupResponse, b: m.JoinGroupResponse, proxy: Proxy, ask: Ask
) -> m.JoinGroupResponse:
    """B's reply of the generation that stands for A's. Until there is one, the member joins B again, as members do when
    a heartbeat's reply says so.
    """
    found = exchange.round
    if found is None or b.error_code:
        return b
    found.take_b(a, b)
    for number in range(TOLD_MAX if proxy.report.has_told(exchange.api, MEMBERS) else FOLLOW_MAX):
        if found.is_over or found.is_whole or found.members is None:
            break
        await asyncio.sleep(pause_s(number))
        if found.is_over or found.is_whole:
            break
        found.join_again(a.member_id)
        reply = await ask(exchange, again(exchange, b.member_id, proxy.identities))
        if not isinstance(reply, m.JoinGroupResponse):
            break
        if reply.error_code == REBALANCE:
            continue
        b = reply
        if b.error_code:
            break
        found.take_b(a, b)
    found.is_over = True
    return b


def again(exchange: Exchange, member_id: str, proxy_ids: Identities) -> bytes:
    """The frame of the same join of a member that has B's id by now."""
    message = exchange.message()
    translate(message, proxy_ids)
    assert isinstance(message, m.JoinGroupRequest)
    message.member_id = member_id
    return exchange.frame_as_it_is(message)


async def sync(exchange: Exchange, request: m.SyncGroupRequest, proxy: Proxy, upstream: Upstream, read: Read) -> bytes:
    """B's reply to a SyncGroup. Where another member leads at B, that one assigns what A's leader has assigned, as soon
    as A's leader has.
    """
    message, found = exchange.message(), proxy.rebalances.rounds.of(request)
    assert isinstance(message, m.SyncGroupRequest)
    if found is not None:
        behalf = found.on_behalf(message)
        if behalf is not None:
            await upstream.send(exchange.frame_of(behalf, proxy.identities))
            await read(upstream, exchange)
        elif message.member_id == found.other_leader:
            await proxy.rebalances.assigned(request)
        found.assign(message)
    await upstream.send(exchange.frame_of(message, proxy.identities))
    exchange.sent.set()
    return await read(upstream, exchange)
