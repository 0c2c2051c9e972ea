"""A connection on asyncio's own loop, which reads into the buffer of a protocol only if that derives from its class.
Compiled classes derive from no interpreted one, and uvloop asks only for the methods.
"""

from __future__ import annotations

import asyncio
from typing import cast

from .connection import Connection


class OnAsyncio(asyncio.BufferedProtocol):
    """What the loop tells a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection.connection_made(cast(asyncio.Transport, transport))

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._connection.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.buffer_updated(nbytes)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
