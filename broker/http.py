"""A small HTTP server for the lab, around h11: a request is answered by a plain function, one connection serves many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, cast

import h11

BODY_BYTES_MAX = 1 << 20


class Request(NamedTuple):
    method: str
    path: str
    body: bytes
    peer: str


class Response(NamedTuple):
    status: int
    content_type: str
    body: bytes


Handler = Callable[[Request], Response]


class HttpConnection(asyncio.Protocol):
    """One connection; what is not HTTP is answered 400 and ends it."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._http = h11.Connection(h11.SERVER)
        self._transport = cast(asyncio.Transport, None)
        self._head: h11.Request | None = None
        self._body = bytearray()
        self._peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername")
        self._peer = address[0] if address else ""

    def data_received(self, data: bytes) -> None:
        self._http.receive_data(data)
        try:
            self._serve()
        except h11.RemoteProtocolError as error:
            if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                self._send(Response(error.error_status_hint, "text/plain", b"not HTTP\n"))
            self._transport.close()

    def _serve(self) -> None:
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                if isinstance(event, h11.ConnectionClosed):
                    self._transport.close()
                return
            if isinstance(event, h11.Request):
                self._head, self._body = event, bytearray()
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > BODY_BYTES_MAX:
                    raise h11.RemoteProtocolError("the body is too large", 413)
            elif isinstance(event, h11.EndOfMessage):
                self._answer()
                if self._http.our_state is h11.MUST_CLOSE:
                    self._transport.close()
                    return
                self._http.start_next_cycle()

    def _answer(self) -> None:
        assert self._head is not None
        path = self._head.target.decode("ascii", "replace").partition("?")[0]
        self._send(self._handler(Request(self._head.method.decode(), path, bytes(self._body), self._peer)))

    def _send(self, response: Response) -> None:
        headers = [("Content-Type", response.content_type), ("Content-Length", str(len(response.body)))]
        head = self._http.send(h11.Response(status_code=response.status, headers=headers))
        body = self._http.send(h11.Data(data=response.body))
        end = self._http.send(h11.EndOfMessage())
        self._transport.write((head or b"") + (body or b"") + (end or b""))
