"""Sends a reply in small pieces, or closes the connection after a reply that is read from files while it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, cast

from ...protocol.buffers import Data
from ..clock import Cancellable, Schedule
from ..lab.seam import Outgoing
from .connection import CHUNK_BYTES, Connection

LARGE_REPLY_BYTES: Final = 8 * CHUNK_BYTES


def pace(connection: Connection, outgoing: Outgoing, schedule: Schedule) -> None:
    """Has the reply that is sent next written as `outgoing` says."""
    reply = outgoing.reply
    ends_late = outgoing.end and reply is not None and bool(reply.parts)
    if not outgoing.chunk_bytes and not ends_late:
        return
    chunk_bytes = outgoing.chunk_bytes or LARGE_REPLY_BYTES
    paced = PacedTransport(connection, schedule, chunk_bytes, outgoing.interval_ms, outgoing.end)
    connection.write_to(cast(asyncio.Transport, paced), alone=True)
    outgoing.end = False


class PacedTransport:
    """The transport of a connection for one reply. Like any other it accepts what is written, pauses the connection,
    and lets it go on when all is sent; then it gives its place back, or closes the connection if the reply `ends` it.
    """

    def __init__(
        self, connection: Connection, schedule: Schedule, chunk_bytes: int, interval_ms: float, ends: bool
    ) -> None:
        self._connection = connection
        self._schedule = schedule
        self._raw = connection.transport
        self._chunk_bytes = chunk_bytes
        self._interval_ms = interval_ms
        self._ends = ends
        self._rest = bytearray()
        self._timer: Cancellable | None = None
        self._is_closing = False

    def write(self, data: Data) -> None:
        self._rest += data
        if self._timer is None:
            self._connection.pause_writing()
            self._send_some()

    def writelines(self, list_of_data: Iterable[Data]) -> None:
        self.write(b"".join(list_of_data))

    def _send_some(self) -> None:
        """Sends a chunk, and goes on later: at once would make one packet of them."""
        self._timer = None
        if self._raw.is_closing():
            self._rest.clear()
            return
        self._raw.write(bytes(self._rest[: self._chunk_bytes]))
        del self._rest[: self._chunk_bytes]
        self._timer = self._schedule.later(self._interval_ms, self._send_some if self._rest else self._sent)

    def _sent(self) -> None:
        """All that was written is sent: the connection writes more, or the reply is complete."""
        self._timer = None
        if self._is_closing:
            return self._raw.close()
        self._connection.resume_writing()
        if self._timer is not None or self._is_closing:
            return
        self._connection.write_to(self._raw, alone=False)
        if self._ends:
            self._connection.close()

    def close(self) -> None:
        self._is_closing = True
        if self._timer is None:
            self._raw.close()

    def abort(self) -> None:
        self._is_closing = True
        self._rest.clear()
        self._raw.abort()

    def pause_reading(self) -> None:
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._raw.resume_reading()

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size() + len(self._rest)
