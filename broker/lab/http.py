"""A small HTTP server for the lab, based on h11: each request is answered by a plain function;
connections are kept open. A function may answer later; the connection takes no other request meanwhile.

All resources of a client are bounded: the bytes of a request, the time to send one and to read a reply, the number of
connections. One request is answered per turn of the loop. A reply may be an iterator of pieces; one piece is made and
sent per turn, and none while the client does not read.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import h11

from ..later import Later
from ..machine import Handle, MachineTime

logger = logging.getLogger("ottla.lab.http")
BODY_BYTES_MAX = 64 << 10
CONNECTIONS_MAX = 64
WAITING_MAX = 48  # connections whose requests are answered later, so that others can still be
BUSY = b'{"error": "too many requests wait for their answers"}\n'
WRITE_BUFFER_BYTES = 256 << 10
REQUEST_MS = 10_000
"""How long a request may take from its first to its last byte, and how long a client may stop reading."""
IDLE_MS = 60_000


class Request(NamedTuple):
    method: str
    path: str
    body: bytes
    peer: str
    headers: Mapping[str, str]
    query: str = ""


class Response(NamedTuple):
    """`body`: bytes, or an iterator of pieces; an empty piece ends the turn."""

    status: int
    content_type: str
    body: bytes | Iterator[bytes]
    headers: tuple[tuple[str, str], ...] = ()


def preferred(kinds: Sequence[str], accept: str) -> str:
    """Returns the media type that a header Accept names with the highest quality, and of several the one that it names
    first; the first of `kinds` if it names none. `text/*` and `*/*` name nothing: programs send them.
    """
    best, found = 0.0, kinds[0]
    for one in accept.split(","):
        name, *parameters = (part.strip().lower() for part in one.split(";"))
        quality = next((_quality(part[2:]) for part in parameters if part.startswith("q=")), 1.0)
        if name in kinds and quality > best:
            best, found = quality, name
    return found


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


Handler = Callable[[Request], Response | Later[Response]]


class HttpServer:
    """The state that the connections of a server share."""

    def __init__(self, handler: Handler, machine: MachineTime) -> None:
        self.handler = handler
        self.machine = machine
        self.connections: dict[HttpConnection, None] = {}

    def connect(self) -> HttpConnection:
        return HttpConnection(self)

    def waiting(self) -> int:
        """How many connections have a request that is answered later."""
        return sum(connection.waits for connection in self.connections)

    def close(self) -> None:
        for connection in list(self.connections):
            connection.abort()


class HttpConnection(asyncio.Protocol):
    """One connection; input that is not HTTP gets 400 and closes it."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._http = h11.Connection(h11.SERVER)
        self._transport = cast(asyncio.Transport, None)
        self._head: h11.Request | None = None
        self._body = bytearray()
        self._pieces: Iterator[bytes] | None = None
        self._awaited: Later[Response] | None = None
        self._peer = ""
        self._is_busy = False  # with a request, from its first byte to the last byte of its reply
        self._is_full = False  # the client does not read
        self._is_scheduled = False
        self._deadline: Handle | None = None

    @property
    def waits(self) -> bool:
        """Whether a request is answered later."""
        return self._awaited is not None

    # calls by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        address = transport.get_extra_info("peername")
        self._peer = address[0] if address else ""
        if len(self._server.connections) >= CONNECTIONS_MAX:
            self.abort()
            return
        self._server.connections[self] = None
        self._expect(IDLE_MS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.pop(self, None)
        self._pieces = None
        if self._awaited is not None:
            self._awaited.cancel()
        if self._deadline is not None:
            self._deadline.cancel()

    def pause_writing(self) -> None:
        self._is_full = True
        self._expect(REQUEST_MS)

    def resume_writing(self) -> None:
        self._is_full = False
        self._go_on()

    def data_received(self, data: bytes) -> None:
        if not self._is_busy:
            self._is_busy = True
            self._expect(REQUEST_MS)
        self._http.receive_data(data)
        if self._awaited is None:
            self._go_on()
        elif len(self._http.trailing_data[0]) > BODY_BYTES_MAX:
            self.abort()  # reading goes on, to see a client that goes away, but what is read is bounded

    def eof_received(self) -> None:
        self._http.receive_data(b"")
        self._go_on()

    def abort(self) -> None:
        self._transport.abort()

    # requests

    def _expect(self, within_ms: int) -> None:
        """Closes the connection unless another deadline is set by then."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._server.machine.after(within_ms, self.abort)

    def _go_on(self) -> None:
        if not self._is_scheduled and not self._is_full:
            self._is_scheduled = True
            self._server.machine.at_end_of_turn(self._turn)

    def _turn(self) -> None:
        """One step: sends a piece of a reply, or handles input up to the end of the next request."""
        self._is_scheduled = False
        if self._is_full or self._transport.is_closing():
            return
        try:
            if self._pieces is not None:
                self._send_piece(self._pieces)
            elif self._serve_one():
                self._go_on()
        except h11.RemoteProtocolError as error:
            self._refuse(error)
        except Exception:
            logger.exception("a connection of the lab failed")
            self.abort()

    def _serve_one(self) -> bool:
        """Handles the next request; returns False if more bytes are needed."""
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._transport.resume_reading()
                if self._http.their_state is h11.IDLE and not self._http.trailing_data[0]:
                    self._is_busy = False
                    self._expect(IDLE_MS)
                return False
            if event is h11.PAUSED:
                return False
            if isinstance(event, h11.ConnectionClosed):
                self._transport.close()
                return False
            if isinstance(event, h11.Request):
                self._head, self._body = event, bytearray()
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > BODY_BYTES_MAX:
                    words = f"the body of the request has more than {BODY_BYTES_MAX:,} bytes"
                    raise h11.RemoteProtocolError(words, 413)
            elif isinstance(event, h11.EndOfMessage):
                self._transport.pause_reading()  # the next request waits until this one is answered
                self._answer()
                return True

    def _answer(self) -> None:
        assert self._head is not None
        head = self._head
        path, _, query = head.target.decode("ascii", "replace").partition("?")
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
        request = Request(head.method.decode(), path, bytes(self._body), self._peer, headers, query)
        answer = self._server.handler(request)
        if not isinstance(answer, Later):
            self._reply(answer)
            return
        if self._server.waiting() >= WAITING_MAX and not answer.done:
            answer.cancel()
            self._reply(Response(503, "application/json", BUSY))
            return
        if self._deadline is not None:
            self._deadline.cancel()  # the client has sent its request: it is the lab that takes its time
        self._awaited = answer
        answer.when_done(self._reply_later)

    def _reply_later(self, answer: Later[Response]) -> None:
        self._awaited = None
        if self._transport.is_closing():
            return
        try:
            self._expect(REQUEST_MS)
            self._transport.pause_reading()  # as for an answer at once: it was read on to see a client that goes away
            self._reply(answer.get())
            self._go_on()
        except Exception:
            logger.exception("a connection of the lab failed")
            self.abort()

    def _reply(self, response: Response) -> None:
        if isinstance(response.body, bytes):
            self._begin(response, [("Content-Length", str(len(response.body)))])
            is_head = self._head is not None and self._head.method == b"HEAD"
            self._send(h11.Data(data=b"" if is_head else response.body))
            self._end()
        else:
            self._begin(response, [])
            self._pieces = response.body

    def _send_piece(self, pieces: Iterator[bytes]) -> None:
        self._expect(REQUEST_MS)
        piece = next(pieces, None)
        if piece is None:
            self._pieces = None
            self._end()
        elif piece:
            self._send(h11.Data(data=piece))
        self._go_on()

    def _begin(self, response: Response, headers: list[tuple[str, str]]) -> None:
        fixed = [
            ("Content-Type", response.content_type),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
        ]
        self._send(h11.Response(status_code=response.status, headers=[*fixed, *response.headers, *headers]))

    def _end(self) -> None:
        self._send(h11.EndOfMessage())
        if self._http.our_state is h11.MUST_CLOSE:
            self._transport.close()
            return
        self._http.start_next_cycle()
        self._expect(REQUEST_MS)

    def _refuse(self, error: h11.RemoteProtocolError) -> None:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps({"error": str(error) if error.args else "not HTTP"}).encode() + b"\n"
            self._begin(
                Response(error.error_status_hint, "application/json", body),
                [("Content-Length", str(len(body))), ("Connection", "close")],
            )
            self._send(h11.Data(data=body))
            self._send(h11.EndOfMessage())
        self._transport.close()

    def _send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._transport.write(data)
