"""One connection of a client: its requests go to A at once, A's replies back at once, and both to the lane to B."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from ..addresses import Address
from ..comparing.differences import Difference
from ..protocol import messages as m
from ..protocol.errors import MalformedMessage
from ..protocol.frames import framed
from . import addresses
from .exchange import Exchange, exchange_of
from .lane import Lane
from .upstream import FRAME_BYTES_MAX, GONE, Upstream, read_frame

if TYPE_CHECKING:
    from .proxy import Proxy

BEHIND_MAX: Final = 100  # requests that wait for B; then the client's next ones are not read
BEHIND_BYTES_MAX: Final = 64 << 20
LAST_REPLIES_S: Final = 5.0


class Link:
    """A client's connection, the one to A and the lane to B."""

    def __init__(
        self,
        proxy: Proxy,
        node_id: int | None,
        address: Address,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._address = address
        self._reader = reader
        self._writer = writer
        self._lane = Lane(proxy, node_id, address)
        self._pending: deque[Exchange] = deque()  # sent to A, not answered
        self._behind: deque[Exchange] = deque()  # not sent to B
        self._behind_bytes = 0
        self._changed = asyncio.Event()  # of `_behind`
        self._is_left = False  # by the client
        self._is_over = False

    async def run(self) -> None:
        """Serves the client until it or A closes, and then B until it has everything."""
        try:
            a = await Upstream.connect(self._address, self._proxy.options.tls_a)
        except GONE as error:
            self._proxy.report.difference("connection", 0, Difference("A", f"{self._address}: {error}", ""), None)
            self._writer.close()
            return
        to_b = asyncio.create_task(self._to_b())
        try:
            is_closed_by_a = await self._relay(a, to_b)
            await to_b
            self._lane.end(is_closed_by_a=is_closed_by_a)
        finally:
            to_b.cancel()
            self._lane.close()
            for exchange in self._behind:
                self._proxy.finish(exchange)

    async def _relay(self, a: Upstream, to_b: asyncio.Task[None]) -> bool:
        """Passes requests and replies until one side closes; returns whether that was A."""
        from_a = asyncio.create_task(self._from_a(a))
        from_client = asyncio.create_task(self._from_client(a))
        try:
            await asyncio.wait((from_a, from_client, to_b), return_when=asyncio.FIRST_COMPLETED)
            self._is_left = self._is_left or from_client.done()
            if self._is_left and self._pending and not from_a.done():
                await asyncio.wait((from_a,), timeout=LAST_REPLIES_S)
            return from_a.done() and bool(self._pending or not self._is_left)
        finally:
            is_left = not from_a.done()
            for task in (from_a, from_client):
                task.cancel()
            a.close()
            self._writer.close()
            self._is_over = True
            self._changed.set()
            for exchange in self._pending:
                self._proxy.forgo(exchange)
                exchange.is_left = is_left
                exchange.answered.set()

    async def _from_client(self, a: Upstream) -> None:
        try:
            while True:
                frame = await read_frame(self._reader, FRAME_BYTES_MAX)
                exchange = exchange_of(frame)
                self._proxy.begin(exchange, self._lane)
                if exchange.has_reply:
                    self._pending.append(exchange)
                else:
                    exchange.answered.set()
                self._behind.append(exchange)
                self._behind_bytes += len(frame)
                self._changed.set()
                await a.send(framed(frame))
                while len(self._behind) > BEHIND_MAX or self._behind_bytes > BEHIND_BYTES_MAX:
                    self._changed.clear()
                    await self._changed.wait()
        except GONE:
            return

    async def _from_a(self, a: Upstream) -> None:
        try:
            while self._pending or not self._is_left:
                frame = await a.read()
                if not self._pending:
                    raise MalformedMessage("frame", "a reply without a request")
                exchange = self._pending.popleft()
                shown = await self._shown(exchange, frame)
                exchange.answer = frame
                self._proxy.owe(exchange, self._lane)
                exchange.answered.set()
                if not self._is_left:
                    await self._pass_on(shown)
        except GONE:
            return

    async def _pass_on(self, shown: bytes) -> None:
        """A client that has gone does not mean that A has."""
        try:
            self._writer.write(framed(shown))
            await self._writer.drain()
        except OSError:
            self._is_left = True

    async def _shown(self, exchange: Exchange, frame: bytes) -> bytes:
        """A's reply as the client gets it: with the proxy's addresses, and the versions that both brokers have."""
        if exchange.request is None or not (
            exchange.api == "ApiVersions" or addresses.has_nodes(f"{exchange.api}Response")
        ):
            return frame
        reply = exchange.reply(frame)
        if reply is None:
            return frame
        if isinstance(reply, m.ApiVersionsResponse):
            if self._proxy.versions_of_b is None:
                return frame
            addresses.intersect(reply, self._proxy.versions_of_b)
            return exchange.replaced(frame, reply)
        moved = list(addresses.nodes(reply))
        for node in moved:
            node.move(await self._proxy.listen_for(node.node_id, node.address))
        return exchange.replaced(frame, reply) if moved else frame

    async def _to_b(self) -> None:
        while True:
            while not self._behind:
                if self._is_over:
                    return
                self._changed.clear()
                await self._changed.wait()
            exchange = self._behind[0]
            await self._lane.serve(exchange)
            self._behind.popleft()
            self._behind_bytes -= len(exchange.frame)
            self._changed.set()
