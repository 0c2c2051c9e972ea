"""What the proxy of `ottla compare` leaves open when a client leaves, or when B refuses one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.protocol.frames import framed
from ottla.protocol.structs import Struct

from ottla.addresses import Address
from ottla.compare.exchange import Exchange, exchange_of
from ottla.compare.lane import Lane
from ottla.compare.proxy import Options, Proxy
from ottla.compare.report import Report
from ottla.compare.upstream import read_frame
from ottla.comparing.identities import Identities
from ottla.comparing.rules import Rules

from ..support.wire import request_frame

HOST = "127.0.0.1"
BOUND_S = 10.0
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def proxy(b: Address) -> Proxy:
    identities = Identities()
    report = Report(Rules(()), identities, as_json=False, write=lambda line: None)
    nowhere = Address(HOST, 0)
    return Proxy(Options(a=nowhere, b=b, listen=nowhere, advertised_host=HOST, timeout_s=0.05), report, identities)


def test_a_node_has_a_listener_although_the_client_leaves_that_heard_of_it_first() -> None:
    async def left() -> None:
        of_a, served = Address(HOST, 1), proxy(Address(HOST, 0))
        first = asyncio.ensure_future(served.listen_for(7, of_a))
        await asyncio.sleep(0)
        first.cancel()
        found = await asyncio.wait_for(served.listen_for(7, of_a), BOUND_S)
        assert found.host == HOST
        assert found != of_a
        _, writer = await asyncio.open_connection(found.host, found.port)
        writer.close()
        await served.close(asyncio.Event())

    asyncio.run(left())


def test_a_connection_to_b_that_cannot_begin_is_closed() -> None:
    async def silent() -> None:
        has_ended = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.read(1000):  # it answers nothing
                pass
            has_ended.set()
            writer.close()

        async with await asyncio.start_server(serve, HOST, 0) as server:
            b = Address(HOST, server.sockets[0].getsockname()[1])
            lane = Lane(proxy(b), None, Address(HOST, 1))
            lane._versions = exchange_of(request_frame("ApiVersions", 0, m.ApiVersionsRequest())[4:])
            asked = exchange_of(request_frame("Metadata", 1, m.MetadataRequest(topics=[]))[4:])
            asked.answered.set()
            await lane.serve(asked)
            await asyncio.wait_for(has_ended.wait(), BOUND_S)

    asyncio.run(silent())


def test_another_connection_to_b_begins_with_the_last_log_in_of_the_client() -> None:
    """A client logs in again before its session is over. A broker refuses two log-ins right after each other."""
    handshake = m.SaslHandshakeRequest(mechanism="PLAIN"), m.SaslHandshakeResponse(mechanisms=["PLAIN"])
    token = m.SaslAuthenticateRequest(auth_bytes=b"token"), m.SaslAuthenticateResponse()
    replies = {"SaslHandshake": handshake[1], "SaslAuthenticate": token[1]}

    async def logged_in() -> None:
        came: list[str] = []
        served: list[asyncio.Task[None]] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            served.append(cast("asyncio.Task[None]", asyncio.current_task()))
            came.append("connection")
            try:
                while True:
                    exchange = exchange_of(await read_frame(reader, 1000))
                    came.append(exchange.api)
                    reply = replies.get(exchange.api, m.MetadataResponse())
                    writer.write(framed(answer(exchange, reply)))
            except EOFError:
                writer.close()
                await writer.wait_closed()

        async with await asyncio.start_server(serve, HOST, 0) as server:
            b = Address(HOST, server.sockets[0].getsockname()[1])
            lane = Lane(proxy(b), None, Address(HOST, 1))
            for api, (request, reply) in (("SaslHandshake", handshake), ("SaslAuthenticate", token)) * 2:
                await serve_one(lane, api, request, reply)
            lane.close()
            await serve_one(lane, "Metadata", m.MetadataRequest(topics=[]), m.MetadataResponse())
            lane.close()
            await asyncio.wait_for(asyncio.gather(*served), BOUND_S)
        assert came[-4:] == ["connection", "SaslHandshake", "SaslAuthenticate", "Metadata"]

    asyncio.run(logged_in())


async def serve_one(lane: Lane, api: str, request: Struct, reply: Struct) -> None:
    """A request that A has answered."""
    exchange = exchange_of(request_frame(api, 1, request)[4:])
    exchange.answer = answer(exchange, reply)
    exchange.answered.set()
    await asyncio.wait_for(lane.serve(exchange), BOUND_S)


def answer(exchange: Exchange, reply: Struct) -> bytes:
    """The frame of a reply, without its length."""
    return bytes(
        codec.build(f"{exchange.api}Response", 1, reply, bytearray(exchange.correlation_id.to_bytes(4, "big")))
    )
