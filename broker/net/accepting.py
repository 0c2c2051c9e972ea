"""Accepts connections that arrive together.

libuv accepts one connection of a listening socket in each turn of the loop, and then serves all connections that have
sent something. On a busy broker a turn takes tens of milliseconds, so the last of a hundred clients that connect
at once would wait for seconds, where Kafka accepts in a thread of its own. So whoever is accepted first brings in those
that wait behind it. asyncio's own loop does that by itself.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

BURST = 8
"""Connections that one turn of the loop accepts at most, so that it stays short. Those that are too many hold their
descriptors for some turns more, beside all that the limit of connections leaves to files (`descriptors.shared_out`).
"""


class Acceptor:
    """The protocol factory of a listener: makes the protocol of each new connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, make: Callable[[], asyncio.BaseProtocol]) -> None:
        self._loop = loop
        self._make = make
        self._server: asyncio.Server | None = None
        self._is_due = False
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself keeps no tasks

    def serves(self, server: asyncio.Server) -> None:
        """Names the server whose factory this is."""
        if not isinstance(self._loop, asyncio.BaseEventLoop):
            self._server = server

    def __call__(self) -> asyncio.BaseProtocol:
        if not self._is_due and self._server is not None:
            self._is_due = True
            self._loop.call_soon(self._accept_others)
        return self._make()

    def _accept_others(self) -> None:
        self._is_due = False
        left = BURST
        for one in () if self._server is None else self._server.sockets:  # a closed server has none
            listening = socket.socket(one.family, one.type, one.proto, fileno=one.fileno())
            try:
                while left and (sock := _accepted(listening)) is not None:
                    left -= 1
                    task = self._loop.create_task(self._connect(sock))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
            finally:
                listening.detach()

    async def _connect(self, sock: socket.socket) -> None:
        if self._server is None or not self._server.is_serving():  # closed since; a stopped node has no connections
            sock.close()
            return
        try:
            await self._loop.connect_accepted_socket(self._make, sock)
        except OSError:
            sock.close()


def _accepted(listening: socket.socket) -> socket.socket | None:
    """Returns the next connection that waits; None if there is none, or the process has too many files open,
    with which the loop deals.
    """
    try:
        sock, _ = listening.accept()
    except OSError:
        return None
    sock.setblocking(False)
    return sock
