"""A client's connection: bytes to frames, one request at a time, replies in order, and memory within bounds.

Idle connections read into one buffer that all share. What is left of an incomplete frame moves to a private buffer that grows with
the bytes received, never with the length announced. While a request is parked, reading goes on until 64 KiB lie behind it, so that
a closed peer is noticed; then it pauses. Records of a reply are read from their files a megabyte at a time, as the peer takes them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from ..protocol.errors import MalformedMessage
from ..protocol.frames import PREFIX, frame_size
from .context import Peer
from .dispatch import Dispatcher, Refused, Reply
from .later import Later

if TYPE_CHECKING:
    from .server import Server

logger = logging.getLogger("ottla")
SHARED_BYTES = 256 << 10
AHEAD_BYTES = 64 << 10
CHUNK_BYTES = 512 << 10
HIGH_WATER = 512 << 10
PRIVATE_BYTES = 4 << 10


class SharedBuffer:
    """The buffer into which idle connections of one loop read."""

    def __init__(self) -> None:
        self.data = bytearray(SHARED_BYTES)
        self.view = memoryview(self.data)


class Connection(asyncio.BufferedProtocol):
    """One connection of a server."""

    __slots__ = (
        "_busy",
        "_closing",
        "_dispatcher",
        "_filled",
        "_frame_end",
        "_out",
        "_paused_reading",
        "_paused_writing",
        "_private",
        "_server",
        "_serving",
        "_start",
        "_transport",
        "_waiting",
        "last_active_ms",
        "listener",
        "peer",
    )

    def __init__(self, server: Server, listener: str) -> None:
        self._server = server
        self.listener = listener
        self._dispatcher: Dispatcher = server.dispatcher
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.peer: Peer = cast(Peer, None)
        self._private: bytearray | None = None
        self._start = self._filled = self._frame_end = 0
        self._busy = self._closing = self._serving = self._paused_reading = self._paused_writing = False
        self._waiting: Later[Any] | None = None
        self._out: deque[Any] | None = None
        self.last_active_ms = 0

    # the life of a connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER, low=HIGH_WATER // 4)
        address = transport.get_extra_info("peername")
        self.peer = Peer(self.listener, f"{address[0]}:{address[1]}" if address else "unknown")
        self.last_active_ms = self._server.broker.schedule.monotonic_ms()
        if not self._server.connected(self):
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._closing = True
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        for part in self._out or ():
            _release(part)
        self._out = None
        self._private = None
        self._server.disconnected(self)
        broker = self._server.broker
        broker.event(self.peer.lost)

    def eof_received(self) -> bool:
        return False

    def close(self, reason: str = "") -> None:
        if not self._closing:
            self._closing = True
            if reason:
                logger.debug("closing the connection of %s: %s", self.peer.address, reason)
            self._transport.close()

    # reading

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._private is None:
            return self._server.shared.view
        return memoryview(self._private)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        server = self._server
        server.broker.metrics.bytes_in += nbytes
        if self._private is None:
            self._start, self._filled = 0, nbytes
            view = server.shared.view
        else:
            self._filled += nbytes
            view = memoryview(self._private)
        self._serve(view)
        if not self._closing:
            self._keep_rest(view)

    def _serve(self, view: memoryview) -> None:
        """Serves the complete frames in the buffer as long as none has to wait."""
        self._serving = True
        try:
            self._serve_frames(view)
        finally:
            self._serving = False

    def _serve_frames(self, view: memoryview) -> None:
        server = self._server
        while not self._busy and not self._closing:
            try:
                size = frame_size(view, self._start, self._filled, server.request_bytes_max)
            except MalformedMessage as error:
                return self.close(str(error))
            if size < 0 or self._filled - self._start - PREFIX < size:
                return
            start = self._start + PREFIX
            self._start = self._frame_end = start + size
            self._busy = True
            self.last_active_ms = server.broker.schedule.monotonic_ms()
            try:
                self._waiting = self._dispatcher.handle(self.peer, view[start : start + size], self._send)
            except Refused as error:
                return self.close(str(error))
            server.broker.settle_soon()

    def _keep_rest(self, view: memoryview) -> None:
        """Moves what has not been served to the private buffer, as large as it needs to be for now."""
        left = self._filled - self._start
        if left == 0:
            if self._private is not None and self._frame_end >= 0 and len(self._private) <= 2 * AHEAD_BYTES:
                self._private = None
            self._start = self._filled = 0
            return
        wanted = self._wanted(view, left)
        private = self._private
        if private is None or len(private) < wanted or (len(private) > 4 * wanted and left * 4 < len(private)):
            fresh = bytearray(max(wanted, PRIVATE_BYTES))
            fresh[:left] = view[self._start : self._filled]
            self._private = fresh
            self._start, self._filled = 0, left
        elif self._start:
            private[:left] = bytes(view[self._start : self._filled])
            self._start, self._filled = 0, left
        if self._busy and left >= AHEAD_BYTES and not self._paused_reading:
            self._paused_reading = True
            self._transport.pause_reading()

    def _wanted(self, view: memoryview, left: int) -> int:
        """How large the private buffer should be: the whole frame, but at most four times what has come of it."""
        size = -1
        if left >= PREFIX:
            size = int.from_bytes(view[self._start : self._start + PREFIX], "big")
        if self._busy:
            return left + AHEAD_BYTES
        return max(left + 1, min(size + PREFIX, max(4 * left, AHEAD_BYTES)))

    # writing

    def _send(self, reply: Reply | None, end: bool) -> None:
        """Takes the reply to the request being served."""
        self._waiting = None
        if self._closing:
            for _, part in reply.parts if reply else ():
                _release(part)
            return
        if reply is not None:
            self._server.broker.metrics.bytes_out += reply.size
            if not reply.parts:
                self._transport.write(reply.head)
            else:
                self._queue(reply)
        if end:
            self.close()
            return
        if self._out is None and not self._paused_writing:
            self._next()

    def _queue(self, reply: Reply) -> None:
        out: deque[Any] = deque()
        done = 0
        for place, part in reply.parts:
            if place > done:
                out.append(memoryview(reply.head)[done:place])
                done = place
            out.append(_Sending(part))
        if done < len(reply.head):
            out.append(memoryview(reply.head)[done:])
        self._out = out
        self._pump()

    def _pump(self) -> None:
        """Hands the transport as much of the reply as it takes without piling up."""
        out = self._out
        while out and not self._paused_writing and not self._closing:
            batch: list[Any] = []
            size = 0
            while out and size < CHUNK_BYTES:
                part = out[0]
                if type(part) is _Sending:
                    data = part.read(CHUNK_BYTES - size)
                    if part.done:
                        _release(out.popleft())
                    if not data:
                        self.close("a segment is shorter than it was")
                        return
                else:
                    data = out.popleft()
                batch.append(data)
                size += len(data)
            self._transport.writelines(batch)
        if not out:
            self._out = None

    def _next(self) -> None:
        """The reply is on its way: the next frame may be served."""
        self._busy = False
        if self._serving:
            return
        if self._private is not None and self._filled > self._start:
            self._server.again(self)
        elif self._paused_reading:
            self._resume_reading()

    def serve_again(self) -> None:
        """Serves what was buffered while a request was parked."""
        if self._closing or self._busy or self._private is None:
            return
        view = memoryview(self._private)
        self._serve(view)
        if not self._closing:
            self._keep_rest(view)
            if not self._busy or self._filled - self._start < AHEAD_BYTES:
                self._resume_reading()

    def _resume_reading(self) -> None:
        if self._paused_reading and not self._closing:
            self._paused_reading = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self._paused_writing = True

    def resume_writing(self) -> None:
        self._paused_writing = False
        if self._out is not None:
            self._pump()
        if self._out is None and self._busy and self._waiting is None and not self._paused_writing:
            self._next()

    def is_waiting(self) -> bool:
        return self._busy

    def shrink(self) -> None:
        """Gives back a private buffer that holds nothing."""
        if self._private is not None and self._filled == self._start and not self._busy:
            self._private = None
            self._start = self._filled = 0

    def buffered_bytes(self) -> int:
        return len(self._private or b"") + (self._transport.get_write_buffer_size() if not self._closing else 0)


class _Sending:
    """A part of a reply that is read as it is sent."""

    __slots__ = ("at", "part")

    def __init__(self, part: Any) -> None:
        self.part = part
        self.at = 0

    def read(self, length: int) -> bytes:
        data: bytes = self.part.read(self.at, length)
        self.at += len(data)
        return data

    @property
    def done(self) -> bool:
        return self.at >= len(self.part)


def _release(part: Any) -> None:
    held = part.part if type(part) is _Sending else part
    release = getattr(held, "release", None)
    if release is not None:
        release()
