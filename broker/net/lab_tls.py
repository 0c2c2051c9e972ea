"""The lab's port with TLS: puts a `TlsConnection` between the TCP connection and one of the lab's HTTP."""

from __future__ import annotations

import asyncio
from typing import cast

from ..addresses import text_of
from ..lab.http import HttpConnection
from ..metrics import Metrics
from ..peer import Ending, Peer, SecurityProtocol
from ..tls.listener import TlsListener
from ..tls.listeners import LAB
from .tls import Serving, Share, TlsConnection

BUFFER_BYTES = 16 << 10


class HttpOverTls:
    """Gives an HTTP connection what was decrypted."""

    def __init__(self, http: HttpConnection, metrics: Metrics) -> None:
        self.chunk_bytes = 0
        self.ending: Ending | None = None
        self.metrics = metrics
        self.peer = Peer(LAB, "", SecurityProtocol.SSL)
        self._http = http
        self._data = bytearray(BUFFER_BYTES)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.peer.address = text_of(transport.get_extra_info("peername")) or ""
        self._http.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._http.connection_lost(exc)

    def pause_writing(self) -> None:
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._http.resume_writing()

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._data)

    def buffer_updated(self, nbytes: int) -> None:
        self._http.data_received(bytes(self._data[:nbytes]))


def over_tls(server: Serving, share: Share, listener: TlsListener, http: HttpConnection) -> asyncio.BaseProtocol:
    """Returns the protocol of a TCP connection whose decrypted bytes are for `http`."""
    return cast(asyncio.BaseProtocol, TlsConnection(server, share, listener, HttpOverTls(http, server.broker.metrics)))
