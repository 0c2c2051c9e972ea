"""Keys of sockets: the sizes of buffers, and how many connections wait."""

from __future__ import annotations

import asyncio
import socket
import struct
from pathlib import Path

import pytest
import uvloop
from ottla.broker.apis import apis
from ottla.broker.config import sources
from ottla.broker.net.server import Server

WAITING_MAX = 28  # the place of the backlog in Linux's `tcp_info` of a socket that listens
KEYS = ("socket.receive.buffer.bytes", "socket.send.buffer.bytes", "socket.listen.backlog.size")


async def found(settings: list[str]) -> tuple[int, int, int]:
    """The sizes of the buffers of a new connection, and the backlog of the socket that listens."""
    server = Server(sources.build(sources.from_arguments(settings)), apis())
    await server.listeners.bind()
    await server.listeners.serve()
    (listening,) = (one for servers in server.listeners._open.values() for each, _ in servers for one in each.sockets)
    receive, send = (listening.getsockopt(socket.SOL_SOCKET, option) for option in (socket.SO_RCVBUF, socket.SO_SNDBUF))
    info = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    for node in server.broker.nodes:
        server.listeners.close(node)
    return receive, send, struct.unpack_from("=I", info, WAITING_MAX)[0]


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_keys_that_are_given_are_those_of_the_sockets(loop: object, tmp_path: Path) -> None:
    """Linux doubles the sizes. Without the keys, and with -1, they are the operating system's."""

    def at(*values: int) -> tuple[int, int, int]:
        given = [f"{key}={value}" for key, value in zip(KEYS, values, strict=False)]
        with asyncio.Runner(loop_factory=loop) as runner:  # type: ignore[arg-type]
            return runner.run(found(["listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={tmp_path}", *given]))

    plain = at()
    assert at(30_000, 50_000, 77) == (60_000, 100_000, 77)
    assert at(-1, -1) == plain
    assert plain[2] == 1024
