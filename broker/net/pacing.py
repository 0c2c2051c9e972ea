"""Sends a reply in small pieces, or closes the connection after a reply that is read from files while it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, cast

from ...protocol.buffers import Data
from ..clock import Cancellable, Schedule
from ..lab.seam import Outgoing
from .connection import CHUNK_BYTES, Connection

LARGE_REPLY_BYTES: Final = 2 * CHUNK_BYTES


def pace(connection: Connection, outgoing: Outgoing, schedule: Schedule) -> None:
    """Has the reply that is sent next written as `outgoing` says."""
    reply = outgoing.reply
    if reply is None or not reply.size or not (outgoing.chunk_bytes or (outgoing.end and reply.parts)):
        return
    chunk_bytes = outgoing.chunk_bytes or LARGE_REPLY_BYTES
    paced = PacedTransport(connection, schedule, chunk_bytes, outgoing.interval_ms, outgoing.end)
    connection.write_to(cast(asyncio.Transport, paced), paced.go_on)
    outgoing.end = False


class PacedTransport:
    """The transport of a connection for one reply. It accepts what is written, holds the connection, and lets it go on
    when all is sent; then it gives its place back, or closes the connection if the reply `ends` it. The connection says
    when it may send: not while the peer takes nothing, and not while the connection is frozen.
    """

    def __init__(
        self, connection: Connection, schedule: Schedule, chunk_bytes: int, interval_ms: float, ends: bool
    ) -> None:
        self._connection = connection
        self._schedule = schedule
        self._raw = connection.transport
        self._chunk_bytes = chunk_bytes
        self._interval_ms = interval_ms
        self.ends = ends
        self._rest = bytearray()
        self._timer: Cancellable | None = None
        self._is_closing = False

    def write(self, data: Data) -> None:
        self._rest += data
        self._connection.hold_replies()
        self._connection.write_on()

    def writelines(self, list_of_data: Iterable[Data]) -> None:
        self.write(b"".join(list_of_data))

    def go_on(self) -> None:
        """Sends a piece. The next one follows later: at once would make one packet of them."""
        if self._timer is not None:
            return
        if not self._rest:
            return self._sent()
        piece = bytes(self._rest[: self._chunk_bytes])
        del self._rest[: self._chunk_bytes]
        self._timer = self._schedule.later(self._interval_ms, self._due)
        self._raw.write(piece)

    def _due(self) -> None:
        self._timer = None
        self._connection.write_on()

    def _sent(self) -> None:
        """All that was written is sent: the connection writes more, or the reply is complete."""
        if self._is_closing:
            return self._raw.close()
        self._connection.next_replies()
        if self._timer is not None or self._rest or self._is_closing:
            return
        self._connection.write_to(self._raw, None)
        if self.ends:
            self._connection.close()

    def close(self) -> None:
        self._is_closing = True
        if self._timer is None and not self._rest:
            self._raw.close()

    def abort(self) -> None:
        self._is_closing = True
        self._rest.clear()
        self._raw.abort()

    def pause_reading(self) -> None:
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._raw.resume_reading()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._raw.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size() + len(self._rest)
