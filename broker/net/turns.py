"""Serves what is large in several turns of the loop, so that each is short enough for others to wait for it."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Protocol

from ...protocol import codec, headers
from ...protocol.errors import MalformedMessage
from ...protocol.structs import Struct
from ..broker import Broker
from ..later import LargeReply, Later, after
from ..metrics import ApiTimes
from ..peer import Peer
from ..replies import Send
from .api import Api
from .context import Context
from .large_replies import encode_in_steps, in_next_turn
from .watching import Pending


class Serving(Protocol):
    """The dispatcher of the request, a `dispatch.Dispatcher`; its methods are described there."""

    broker: Broker

    def take(
        self, context: Context, request: Struct, frame: memoryview, send: Send, times: ApiTimes
    ) -> Pending | None: ...

    def call(self, api: Api, context: Context, request: Struct) -> object: ...

    def told(self, context: Context, outcome: Struct) -> Struct: ...

    def refuse(self, peer: Peer, frame: memoryview, send: Send, error: Exception) -> None: ...

    def malformed(self, api: Api, version: int, error: MalformedMessage) -> Exception: ...


async def read_in_steps(
    dispatcher: Serving,
    api: Api,
    version: int,
    correlation_id: int,
    data: bytes,
    peer: Peer,
    send: Send,
    times: ApiTimes,
) -> None:
    """Like `Dispatcher.handle`, for a frame that is read in steps. Raises Refused in the first step."""
    frame, work, has_paused = memoryview(data), _parse_in_steps(dispatcher, api, version, data), False
    try:
        while True:
            began = time.perf_counter_ns()
            try:
                next(work)
            except StopIteration as end:
                client_id, request = end.value
                break
            finally:
                times.parse_ns += time.perf_counter_ns() - began
            has_paused = True
            await dispatcher.broker.turn.next()
        context = Context(dispatcher.broker, api, version, correlation_id, client_id, peer)
        pending = dispatcher.take(context, request, frame, send, times)
    except Exception as error:
        if not has_paused:
            raise
        return dispatcher.refuse(peer, frame, send, error)
    del data, frame, work, context, request  # what is not needed any more is freed while the reply waits
    if pending is not None:
        await after(pending, lambda _: None)  # it ends with this request


def _parse_in_steps(
    dispatcher: Serving, api: Api, version: int, data: bytes
) -> Generator[None, None, tuple[str | None, Struct]]:
    """Returns the client's id and the request. Raises Refused."""
    try:
        client_id, start = headers.client_id_of(headers.request_header_version(api.request, version), data)
        return client_id, (yield from codec.parse_in_steps(api.request, version, data, start, api.elements_max))
    except MalformedMessage as error:
        raise dispatcher.malformed(api, version, error) from None


async def in_turns(dispatcher: Serving, api: Api, context: Context, request: Struct, *, encodes: bool = True) -> object:
    """Handles a large request in a turn of its own; what it returns is encoded in others, the arrays of a large
    reply already by this function, unless the caller looks at them.
    """
    await context.paused(dispatcher.broker.turn.next())
    began = time.perf_counter_ns()
    outcome = dispatcher.call(api, context, request)
    dispatcher.broker.metrics.apis[api.key, context.version].handle_ns += time.perf_counter_ns() - began
    del request  # one that is not needed any more is freed while the reply waits
    if isinstance(outcome, Later):
        outcome = await outcome
    await in_next_turn(context, outcome)
    if encodes and isinstance(outcome, Struct):
        outcome = await encoded(dispatcher, context, outcome)
    return outcome


async def encoded(dispatcher: Serving, context: Context, outcome: Struct) -> Struct:
    """Returns a reply whose large arrays are encoded."""
    told = dispatcher.told(context, outcome)
    await encode_in_steps(context, told)
    return told


async def large_reply(dispatcher: Serving, context: Context, handled: LargeReply[object]) -> object:
    """Returns a reply that a handler makes later, and that may be large."""
    outcome = await handled
    if context.usage is not None:
        context.usage.resume()
    return await encoded(dispatcher, context, outcome) if isinstance(outcome, Struct) else outcome
