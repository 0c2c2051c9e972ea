"""A connection of the simulator of connections: its peer, which sends in pieces and reads when it wants, and what is
noted of each request on its way.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

import pytest
from ottla.broker.net.connection import Connection
from ottla.broker.net.dispatch import Dispatcher, Refused
from ottla.broker.net.pacing import PacedTransport
from ottla.broker.net.server import Server
from ottla.broker.peer import Peer, SecurityProtocol
from ottla.broker.replies import Reply, Send
from ottla.protocol.buffers import Data

from ..support.connected import ConnectedWorld
from ..support.memory_files import MemFiles
from .connection_requests import Asked

WRITES_WHILE_FULL_MAX = 2  # the replies that were ready, and the one to the request in hand


class Wire:
    """The transport. What is written waits until the peer takes it: `room` bytes, or all."""

    def __init__(self, link: Link, high: int, pieces: tuple[int, ...], gaps_ms: tuple[int, ...]) -> None:
        self.link = link
        self.high, self.low = high, high // 4
        self.pieces, self.gaps_ms = pieces, gaps_ms
        self.inbox = bytearray()  # that the peer has sent
        self.received = bytearray()
        self.room: int | None = None
        self.reads = True
        self.closing = self.is_told = self.is_lost = False  # `is_told`: the connection closes it itself
        self.is_full = self._reads_soon = False
        self.while_full = 0
        self._buffer = bytearray()

    # for the connection

    def write(self, data: Data) -> None:
        link = self.link
        if self.closing:
            if self.is_told:
                link.complain("something is written after the end")
            return
        if link.is_frozen:
            link.complain("something is written while the connection is frozen")
        self.while_full += self.is_full
        if self.while_full > WRITES_WHILE_FULL_MAX:
            link.complain("more and more is written that the peer does not take")
        self._buffer += data
        self._flush()
        if len(self._buffer) > self.high and not self.is_full:
            self.is_full, self.while_full = True, 0
            link.connection.pause_writing()

    def writelines(self, list_of_data: Iterable[Data]) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if not self.closing:
            self.link.closes()
            self.closing = self.is_told = True
            self._end_if_empty()

    def abort(self) -> None:
        self.link.closes()
        self.closing = self.is_told = True
        self._buffer.clear()
        self._end_if_empty()

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True
        self._read_soon(0)

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return "127.0.0.1", self.link.port

    def set_write_buffer_limits(self, high: int, low: int) -> None: ...

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    # for the peer

    def take(self, room: int | None) -> None:
        """Reads so many bytes more, or everything from now on."""
        self.room = None if room is None else room
        self._flush()
        if self.is_full and len(self._buffer) <= self.low and not self.is_lost:
            self.is_full, self.while_full = False, 0
            self.link.connection.resume_writing()
        if self.closing:
            self._end_if_empty()

    def send(self, data: bytes) -> None:
        self.inbox += data
        self._read_soon(0)

    def finish(self) -> None:
        """The peer sends no more: a transport closes itself then, and tells the connection in a later turn."""
        self.closing = True
        self._end_if_empty()

    def lose(self) -> None:
        """The peer resets the connection."""
        self.closing = True
        self._buffer.clear()
        self._lost()

    def _flush(self) -> None:
        count = len(self._buffer) if self.room is None else min(self.room, len(self._buffer))
        self.received += self._buffer[:count]
        del self._buffer[:count]
        if self.room is not None:
            self.room -= count

    def _end_if_empty(self) -> None:
        if not self._buffer:
            self.link.world.schedule.soon(self._lost)

    def _lost(self) -> None:
        if not self.is_lost:
            self.is_lost = True
            self.link.connection.connection_lost(None)

    def _read_soon(self, gap_ms: int) -> None:
        if not self._reads_soon:
            self._reads_soon = True
            self.link.world.schedule.later(gap_ms, self._read)

    def _read(self) -> None:
        """Gives the connection what one system call would."""
        self._reads_soon = False
        if self.closing or not self.reads or not self.inbox:
            return
        link, chance = self.link, self.link.chance
        view = link.connection.get_buffer(-1)
        count = min(len(view), len(self.inbox), chance.choice(self.pieces))
        if not count:
            link.complain("there is no room for what arrives")
            return
        view[:count] = self.inbox[:count]
        del self.inbox[:count]
        link.connection.buffer_updated(count)
        if view.obj is link.world.shared.data:
            view[:count] = bytes(count)  # the buffer is used for other connections
        if self.inbox:
            self._read_soon(chance.choice(self.gaps_ms))


class Link:
    """A connection, and what its client knows and may expect. `ends`: why it may end; then `is_whole` is whether all
    replies arrive before. `muted_until_ms`: until when the client is throttled.
    """

    def __init__(
        self, world: Served, number: int, listener: str, protocol: SecurityProtocol, wire: tuple[Any, ...]
    ) -> None:
        self.world = world
        self.number = number
        self.port = 1000 + number
        self.address = f"127.0.0.1:{self.port}"
        self.has_sasl = protocol.has_sasl
        self.chance: random.Random = world.chances
        self.asked: list[Asked] = []
        self.handled = 0
        self.in_hand: Asked | None = None
        self.expected = bytearray()  # the replies that were sent
        self.muted_until_ms = 0
        self.ends = ""
        self.is_whole = self.is_frozen = False
        self.at_request: Callable[[Link], None] | None = None  # what happens while the next request is served
        self.wire = Wire(self, *wire)
        self.connection = Connection(cast(Any, world), listener, protocol)
        world.links[self.address] = self
        self.connection.connection_made(cast(asyncio.Transport, self.wire))

    def complain(self, what: str) -> None:
        self.world.complaints.append(f"connection {self.number}: {what} ({self.situation()})")

    def situation(self) -> str:
        c = self.connection
        names = ("_busy", "_closing", "_frozen", "_paused_reading", "_paused_writing", "_waiting", "_muted", "_out")
        state = " ".join(name[1:] for name in names if getattr(c, name))
        return f"{len(self.asked)} asked, {self.handled} handled, in hand {self.in_hand}, {self.ends!r}, {state}"

    @property
    def is_open(self) -> bool:
        return not self.wire.closing and not self.ends

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to happen."""
        if self.ends:
            return self.wire.is_lost
        return self.handled == len(self.asked) and self.is_complete and not self.connection.is_waiting()

    @property
    def is_complete(self) -> bool:
        """Whether all that was sent has arrived."""
        return len(self.wire.received) == len(self.expected)

    # what happens to requests

    def send(self, asked: Iterable[Asked]) -> None:
        """The client sends requests."""
        made = list(asked)
        self.asked += made
        self.wire.send(b"".join(one.frame for one in made))

    def end(self, why: str) -> None:
        """The client or the server ends the connection, wherever it is."""
        self.ends = self.ends or why
        self.is_whole = False

    def closes(self) -> None:
        """The broker closes the connection."""
        is_bad = self.handled < len(self.asked) and self.asked[self.handled].is_bad
        if self.world.drops:
            self.end("too much is held")
        if not self.ends:
            if not is_bad:
                self.complain("the broker closes the connection for no reason")
            self.ends, self.is_whole = "a bad frame", True

    def served(self, frame: bytes) -> None:
        """The broker begins to serve a request."""
        if self.in_hand is not None:
            self.complain("a request is served before the one before it is answered")
        if self.ends and (self.is_whole or self.wire.is_told):
            self.complain("a request is served after the end")
        if self.is_frozen:
            self.complain("a request is served while the connection is frozen")
        if self.world.schedule.monotonic_ms() < self.muted_until_ms:
            self.complain("a request is served while the client is throttled")
        self.in_hand = self.asked[self.handled]
        self.handled += 1
        if frame != self.in_hand.frame[4:]:
            self.complain("a request is not what was sent")
        happens, self.at_request = self.at_request, None
        if happens is not None:
            happens(self)

    def refused(self) -> None:
        asked = self.in_hand
        if asked is not None and not asked.is_bad and not self.has_sasl:
            self.complain("a good request is refused")
        if not self.ends:
            self.ends, self.is_whole = "a refused request", True

    def accepts(self, send: Send, reply: Reply | None, end: bool) -> None:
        """The connection gets the reply to the request in hand, and holds it while it is frozen."""
        if self.connection._held_reply is not None:
            self.complain("there are two replies to the request in hand")
        if not self.connection._frozen:
            self._takes(reply, end)
        send(reply, end)

    def thaw(self) -> None:
        """The connection goes on, and accepts the reply that it has held."""
        self.is_frozen = False
        held = self.connection._held_reply
        if held is not None:
            self._takes(*held)
        self.connection.thaw()

    def _takes(self, reply: Reply | None, end: bool) -> None:
        transport = self.connection.transport
        if not self.connection._closing:
            self.replied(reply, end or (isinstance(transport, PacedTransport) and transport.ends))

    def replied(self, reply: Reply | None, end: bool) -> None:
        """The broker has the reply to the request in hand."""
        asked, self.in_hand = self.in_hand, None
        if asked is None:
            self.complain("there is a reply to nothing")
            return
        data = b"" if reply is None else whole(reply)
        if reply is not None and len(data) != reply.size:
            self.complain(f"a reply of {reply.size} bytes has {len(data)}")
        if asked.is_plain and (data[4:8] != asked.number.to_bytes(4, "big") if asked.has_reply else data):
            self.complain(f"{asked} is answered with {data[:20]!r}")
        if asked.is_plain and end and asked.has_reply and not self.has_sasl:
            self.complain(f"{asked} ends the connection")
        self.expected += data
        self.muted_until_ms = self.world.schedule.monotonic_ms() + self.connection.peer.throttle_ms
        if end and not self.ends:
            self.ends, self.is_whole = "a reply that ends it", True

    def check(self) -> None:
        """What the peer has is what was sent, in order, and whole before an end that has a reason."""
        received, sent = self.wire.received, self.expected
        if sent[: len(received)] != received:
            self.complain(f"other bytes arrive than were sent: {len(received)} of {len(sent)}")
        if self.wire.is_lost and self.is_whole and not self.is_complete:
            self.complain(f"the connection ends after {len(received)} of {len(sent)} bytes")


def whole(reply: Reply) -> bytes:
    """Returns the bytes of a reply."""
    out = bytearray(reply.head)
    for place, part in reversed(reply.parts):
        out[place:place] = bytes(part)
    return bytes(out)


class Served(ConnectedWorld):
    """The server: counts what connections hold, and drops the one that holds the most if that is too much."""

    def __init__(self, files: MemFiles, seed: int, chance: random.Random, /, **settings: str) -> None:
        self.links: dict[str, Link] = {}  # by address
        self.complaints: list[str] = []
        self.chances = chance
        self.buffered_bytes, self.buffered_bytes_max, self.drops = 0, 1 << 30, False
        super().__init__(files, seed, **settings)
        self._nested = False
        self._note(self.dispatcher)

    def gate(self, connection: Connection) -> Dispatcher:
        found = super().gate(connection)
        if found is not self.dispatcher:
            self._note(found)
        return found

    def held(self, connection: Connection, more: int) -> None:
        before, self.drops = self.drops, True
        Server.held(cast(Any, self), connection, more)
        self.drops = before

    def _note(self, dispatcher: Dispatcher) -> None:
        """Notes the requests that a dispatcher serves. That of a connection with SASL serves some by another one."""
        handle = dispatcher.handle

        def noting(peer: Peer, frame: memoryview, send: Send) -> Any:
            link = self.links.get(peer.address)
            if link is None or self._nested:
                return handle(peer, frame, send)
            link.served(bytes(frame))
            self._nested = True
            try:
                return handle(peer, frame, partial(link.accepts, send))
            except Refused:
                link.refused()
                raise
            finally:
                self._nested = False

        pytest.MonkeyPatch().setattr(dispatcher, "handle", noting)
