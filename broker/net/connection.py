"""A client's connection: splits bytes into frames, serves one request at a time,
sends replies in order, with bounded memory.

Idle connections read into one shared buffer. If a frame's length is above the limit of its API, the connection is
closed as soon as the API key is read. An incomplete frame moves to a private buffer that grows with the bytes received,
never with the announced length. While a request is parked, the connection reads up to 64 KiB of following requests, so
that a closed peer is noticed; then it stops reading. Replies to requests that arrived together are written together,
unless serving these takes a millisecond. Records of a reply are read or moved a megabyte at a time, as the peer
accepts them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ...protocol.errors import MalformedMessage
from ...protocol.frames import PREFIX, api_key, frame_size, keys_of_frames
from .. import bugs
from ..addresses import text_of
from ..clock import Cancellable
from ..connection_rates import Verdict
from ..metrics import Metrics
from ..peer import Ending, Peer, SecurityProtocol
from ..replies import Reply
from .ahead import KEYS_MAX, fresh_buffer
from .dispatch import Dispatcher, Refused
from .listening import Listening, complain_of_tls
from .sending import Direct, Sending, direct, unreadable

logger = logging.getLogger("ottla.kafka.network.Processor")
AHEAD_BYTES = 64 << 10
FRAMES_AT_ONCE = 128  # requests of one connection that are served in one turn of the loop
TOGETHER_BYTES = 16 << 10  # of replies that are written at once
CHUNK_BYTES = 1 << 20  # most fetches are one write, for which the client wakes once
HIGH_WATER = 512 << 10


class Connection:
    """One connection of a server. `ending`: why the broker closes it, if it does. `is_serving`: replies are at once."""

    __slots__ = (
        "_busy",
        "_closing",
        "_direct",
        "_filled",
        "_frozen",
        "_full",
        "_held_reply",
        "_listener",
        "_muted",
        "_out",
        "_paced",
        "_paused_reading",
        "_paused_writing",
        "_private",
        "_replies",
        "_replies_bytes",
        "_security_protocol",
        "_served_ns",
        "_server",
        "_start",
        "_waiting",
        "chunk_bytes",
        "dispatcher",
        "ending",
        "held_bytes",
        "is_serving",
        "last_active_ms",
        "metrics",
        "own_dispatcher",
        "peer",
        "transport",
    )
    transport: asyncio.Transport  # both since the connection is made
    peer: Peer

    def __init__(
        self,
        server: Listening[Connection],
        listener: str,
        security_protocol: SecurityProtocol,
        dispatcher: Dispatcher | None = None,
    ) -> None:
        self._server = server
        self._listener = listener
        self._security_protocol = security_protocol
        self.own_dispatcher: Dispatcher = dispatcher or server.dispatcher  # of the node
        self.dispatcher = self.own_dispatcher
        self.metrics: Metrics = self.own_dispatcher.broker.metrics  # of the node
        self._private: bytearray | None = None
        self._start = self._filled = self.last_active_ms = self.held_bytes = 0
        self._busy = self._closing = self.is_serving = self._paused_reading = self._paused_writing = False
        self._waiting: Cancellable | None = None
        self._muted: Cancellable | None = None
        self.chunk_bytes = CHUNK_BYTES  # read of a reply's records at a time
        self._out: Sending | None = None
        self._direct: Direct | None = None  # past the transport
        self._replies: list[bytearray] = []  # to requests that arrived together, not written yet
        self._replies_bytes = self._served_ns = 0  # the time until which it was served
        self._frozen = self._full = False
        self._paced: Callable[[], None] | None = None  # goes on with a reply that is sent in pieces
        self._held_reply: tuple[Reply | None, bool] | None = None
        self.ending: Ending | None = None

    # the life of a connection

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.transport.set_write_buffer_limits(high=HIGH_WATER, low=HIGH_WATER // 4)
        if not self._security_protocol.has_tls:
            self._direct = direct(self._server.pipe, self.transport)
        at = text_of(transport.get_extra_info("peername"))
        self.peer = Peer(self._listener, at or "unknown", self._security_protocol)
        self.last_active_ms = self._server.broker.schedule.monotonic_ms()
        self.dispatcher = self._server.gate(self)
        if not self._server.connected(self):
            return self.drop("limit")
        self._busy = True  # until it is admitted
        self._server.admit(self)

    def admitted(self, verdict: Verdict) -> None:
        """Serves the client's requests from now on, or closes the connection in a while."""
        if self._closing:
            return
        if verdict.is_served:
            return self._next()
        self._muted = self._server.broker.schedule.later(verdict.after_ms, lambda: self.close(why="limit"))

    def connection_lost(self, error: Exception | None) -> None:
        self._closing = True
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if self._muted is not None:
            self._muted.cancel()
        if self._out is not None:
            self._out.release()
            self._out = None
        if self._held_reply is not None and self._held_reply[0] is not None:
            for _, part in self._held_reply[0].parts:
                part.release()
        self._private, self._paused_writing = None, False
        self._count_held()
        self._server.disconnected(self)
        broker = self._server.broker
        broker.turn.event(self.peer.lost)

    def eof_received(self) -> None:
        """The peer sends nothing more: the loop closes the connection."""

    def serve_by(self, dispatcher: Dispatcher) -> None:
        """Serves the next requests by another dispatcher."""
        self.dispatcher = dispatcher

    def close(self, reason: str = "", why: Ending = "error") -> None:
        if not self._closing:
            self.ending = self.ending or why
            self._write_replies()
            self._closing, self._private = True, None  # what still arrives is not looked at
            self._count_held()
            if reason:
                logger.debug("closing the connection from %s: %s", self.peer.address, reason)
            self.transport.close()

    def drop(self, why: Ending = "error") -> None:
        """Closes the connection and frees what it holds, replies that the peer does not read too."""
        self.ending = self.ending or why
        self._closing, self._paused_writing, self._private = True, False, None
        self._count_held()
        self.transport.abort()

    def _count_held(self) -> None:
        """Reports the bytes of the private buffer, and of replies that the peer does not read."""
        held = len(self._private or b"")
        if self._paused_writing:
            held += self.transport.get_write_buffer_size()
        if held != self.held_bytes:
            more, self.held_bytes = held - self.held_bytes, held
            self._server.held(self, more)

    # reading

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._private is None:
            return self._server.shared.view
        return memoryview(self._private)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        server = self._server
        self.metrics.bytes_in += nbytes
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
        """Serves the complete frames in the buffer until one has to wait."""
        poll = self._server.poll
        asked_ns = poll.now_ns()
        self.is_serving = True
        try:
            self._serve_frames(view)
        finally:
            self.peer.answer_gathered()
            self.is_serving = False
            self._write_replies()
            self._served_ns = poll.served(self._served_ns, asked_ns)

    def _serve_frames(self, view: memoryview) -> None:
        broker, left = self._server.broker, FRAMES_AT_ONCE
        turn, schedule = broker.turn, broker.schedule
        while self._start < self._filled and not self._busy and not self._closing and not self._frozen:
            if not left:  # others have their turn
                self.peer.answer_gathered()
                self._busy = True
                self._muted = schedule.later(0, self._unmute)
                return
            left -= 1
            try:
                size = frame_size(view, self._start, self._filled, self.dispatcher.request_bytes_max)
            except MalformedMessage as error:
                complain_of_tls(broker, self.peer, bytes(view[self._start : self._start + 2]))
                return self.close(str(error), "refused")
            if size < 0:
                return
            if self._filled - self._start - PREFIX < size:
                return self._check_announced(view, size)
            start, self._start = self._start + PREFIX, self._start + PREFIX + size
            peer, frame = self.peer, view[start : self._start]
            now_ms = schedule.monotonic_ms()
            if now_ms != self.last_active_ms:  # earlier replies do not wait for long
                self._write_replies()
                self.last_active_ms = now_ms
            try:
                if peer.takes(frame, self._send) or self._closing:
                    continue
                self._busy, peer.has_more = True, self._start < self._filled
                self._waiting = self.dispatcher.handle(peer, frame, self._send)
            except Refused as error:
                self.dispatcher.refused(peer, frame, error)
                return self.close(str(error), "refused")
            except Exception as error:
                bugs.report("taking a request", error)
                return self.close("a request could not be taken")
            if peer.gathered is None:
                turn.settle_soon()
            else:  # it is answered with those that follow
                self._busy = False

    def _check_announced(self, view: memoryview, size: int) -> None:
        """Closes the connection if an incomplete frame announces more bytes than its API allows."""
        key = api_key(view, self._start, self._filled)
        if key is not None:
            try:
                self.dispatcher.check_size(key, size)
            except Refused as error:
                self.dispatcher.refused(self.peer, None, error)
                self.close(str(error), "refused")

    def _keep_rest(self, view: memoryview) -> None:
        """Moves unserved bytes to the private buffer, which is only as large as needed now."""
        left = self._filled - self._start
        if left == 0:
            if self._private is not None and len(self._private) <= 2 * AHEAD_BYTES:
                self._private = None
                self._count_held()
            self._start = self._filled = 0
            return
        fresh = fresh_buffer(self._private, view, self._start, self._filled, AHEAD_BYTES, self._busy)
        if fresh is not None:
            self._private, self._start, self._filled = fresh, 0, left
            self._count_held()
            if self._closing:  # it held the most of all connections
                return
        elif self._start:
            view[:left] = view[self._start : self._filled]
            self._start, self._filled = 0, left
        if self._busy and left >= AHEAD_BYTES and not self._paused_reading:
            self._paused_reading = True
            self.transport.pause_reading()

    def waiting(self) -> list[int] | None:
        """The API keys of whole requests that have come while the one in hand waited; None without any."""
        if self.is_serving or self._start == self._filled or self._private is None:
            return None
        return keys_of_frames(self._private, self._start, self._filled, KEYS_MAX) or None

    # writing

    def _send(self, reply: Reply | None, end: bool) -> None:
        """Accepts the reply to the current request."""
        self._waiting = None
        if self._frozen:
            self._held_reply = reply, end
            return
        if self._closing:
            for _, part in reply.parts if reply else ():
                part.release()
            return
        if reply is not None:
            self.metrics.bytes_out += reply.size
            if not reply.parts:
                self._write(reply.head)
            else:
                self._write_replies()
                self._out = Sending(reply)
                self._pump()
        if end:
            return self.close(why="request")
        if self._out is None and not self._paused_writing:
            self._next()

    def _write(self, head: bytearray) -> None:
        """Writes a reply: while requests are served that arrived together, with the replies to others of them."""
        if not self.is_serving or self._paced is not None:
            return self.transport.write(head)
        self._replies.append(head)
        self._replies_bytes += len(head)
        if self._replies_bytes >= TOGETHER_BYTES:
            self._write_replies()

    def _write_replies(self) -> None:
        """Writes the replies that wait for others, and those to requests that were gathered."""
        self.peer.answer_gathered()
        replies = self._replies
        if not replies:
            return
        self._replies, self._replies_bytes = [], 0
        if not self._closing:
            self.transport.write(replies[0] if len(replies) == 1 else b"".join(replies))

    def _pump(self) -> None:
        """Writes as much of the reply to the transport as it accepts without buffering too much."""
        out = self._out
        while out and not self._paused_writing and not self._closing:
            try:
                is_long = out.write(self.transport, self.chunk_bytes, self._direct if self._paced is None else None)
            except Exception as error:
                return self.close(unreadable(error, self._server.broker))
            if out and is_long and self._paced is None and not self._paused_writing:
                self.hold_replies()
                self._server.broker.turn.next().when_done(self.write_on)
        if not out:
            self._out = None

    def _next(self) -> None:
        """Continues with the next frame after the reply was sent; later, if the client is throttled."""
        if self.peer.throttle_ms:
            return self._mute()
        self._busy = False
        if self.is_serving:
            return
        if self._private is not None and self._filled > self._start:
            self._server.again(self)
        elif self._paused_reading:
            self._resume_reading()

    def _mute(self) -> None:
        """Serves no frames for the throttle time of the last reply."""
        throttle_ms, self.peer.throttle_ms = self.peer.throttle_ms, 0
        self._muted = self._server.broker.schedule.later(throttle_ms, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        if not self._closing:
            self._next()

    def serve_again(self) -> None:
        """Serves what was buffered while a request was parked, and reads again."""
        if not self._busy and self._private is not None and not self._closing and not self._frozen:
            view = memoryview(self._private)
            self._serve(view)
            if not self._closing:
                self._keep_rest(view)
        if not self._busy or self._filled - self._start < AHEAD_BYTES:
            self._resume_reading()

    def _resume_reading(self) -> None:
        if self._paused_reading and not self._closing and not self._frozen:
            self._paused_reading = False
            self.transport.resume_reading()

    def freeze(self) -> None:
        """Reads and sends nothing any more; the connection stays open. Bytes that are here already are kept."""
        self._frozen = True
        if not self._paused_reading:
            self._paused_reading = True
            self.transport.pause_reading()

    def thaw(self) -> None:
        """Goes on where it was frozen."""
        self._frozen = False
        held, self._held_reply = self._held_reply, None
        if held is not None:
            self._send(*held)
        self.write_on()
        self._server.again(self)

    def write_to(self, transport: asyncio.Transport, paced: Callable[[], None] | None) -> None:
        """Has the next replies written to `transport`; `paced`: called to write more of one that is sent in pieces."""
        self._write_replies()
        self.transport, self._paced = transport, paced

    def pause_writing(self) -> None:
        self._full = True
        self.hold_replies()

    def resume_writing(self) -> None:
        self._full = False
        self.write_on()

    def hold_replies(self) -> None:
        """Writes no more before `next_replies` is called."""
        self._paused_writing = True
        self._count_held()

    def write_on(self, turn: object = None) -> None:
        """Goes on with what is held, if the peer takes it. `turn`: the one that was waited for."""
        if self._paused_writing and not self._full and not self._frozen:
            (self._paced or self.next_replies)()

    def next_replies(self) -> None:
        """Goes on with the rest of the reply, or with the next request."""
        self._paused_writing = False
        self._count_held()
        if self._out is not None:
            self._pump()
        is_over = self._out is None and self._busy and self._waiting is None
        if is_over and self._muted is None and not self._paused_writing:
            self._next()

    def is_waiting(self) -> bool:
        return self._busy

    def shrink(self) -> None:
        """Frees an empty private buffer."""
        if self._private is not None and self._filled == self._start and not self._busy:
            self._private = None
            self._start = self._filled = 0
            self._count_held()

    def buffered_bytes(self) -> int:
        return len(self._private or b"") + (self.transport.get_write_buffer_size() if not self._closing else 0)
