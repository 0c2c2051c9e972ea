"""Notes the exchanges of a connection in the block of a recorder.

This is what a trace or a live verdict costs each request of a broker, so nearly all of it is decided once: for a
connection which of its requests are of interest, for an API what is kept of them, for a block whether it names the
connection. `watch` and `_noted` take what is usual: a request like the one before it, small or with the records of one
partition, of a client that is known, and its reply. They leave all else to `_watched` and `_sent`, which take
everything.

An event is added when all of it is at hand, so that whatever is raised before leaves the block whole.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import ClassVar, Final

from ....protocol import headers
from ....protocol import messages as m
from ....protocol.buffers import Data
from ....protocol.json_text import BATCH_HEADER_BYTES
from ....protocol.record_places import RecordPlaces, record_places
from ....protocol.structs import Struct
from ....protocol.varints import UNREADABLE
from ... import bugs
from ...clock import Schedule
from ...replies import Reply, Send
from ..faults.matching import Matcher
from ..seam import Asked, AskedApi, Line
from ..sent_replies import LENGTH, Holes, holes_of
from . import events
from .recording import (
    ANSWERED,
    ANSWERED_TO,
    ASKED,
    AT,
    BARE,
    BROKER_MS,
    RAW_BYTES_MAX,
    REPLY,
    REQUEST,
    TIMES,
    Waiting,
    missing,
    named,
    pack_answered,
    pack_answered_to,
    pack_asked,
    pack_head,
    pack_replied,
    waited,
)

WHOLE_BYTES: Final = 1 << 10  # of a request that is copied with its records
START_BYTES: Final = 512  # that are copied of a larger one with one partition
IDENTIFYING: Final = frozenset((17, 18, 36))  # SaslHandshake, ApiVersions, SaslAuthenticate: they say who a client is


class Wanted:
    """What is recorded. `keys`: of the APIs, None for all; `matcher`: of the requests, None for all; `has_raw`: whether
    the bytes of frames are wanted as they are.
    """

    def __init__(self, keys: frozenset[int] | None, matcher: Matcher | None, has_raw: bool) -> None:
        self.keys, self.matcher, self.has_raw = keys, matcher, has_raw

    def takes(self, context: Asked, request: Struct) -> bool:
        """Whether a request is recorded."""
        if self.keys is not None and context.api.key not in self.keys:
            return False
        return self.matcher is None or self.matcher.takes(context, request)

    def copies(self, size: int) -> bool:
        """Whether the bytes of a frame are asked for."""
        return self.has_raw and size <= RAW_BYTES_MAX


class Block:
    """The events that were not given away yet. `due`: called with the size of the body of an event after which there
    are more than `due_bytes`.
    """

    __slots__ = ("count", "due", "due_bytes", "number", "out", "schedule", "work_ns")

    def __init__(self, schedule: Schedule, work_ns: Callable[[], int], due: Callable[[int], None]) -> None:
        self.schedule, self.work_ns, self.due = schedule, work_ns, due
        self.due_bytes = self.number = 0
        self.begin()

    def begin(self) -> None:
        """Forgets all events."""
        self.number += 1
        self.out = bytearray(TIMES.size)
        self.count = 0

    def added(self, size: int) -> None:
        """Counts an event. `size`: of its body."""
        self.count += 1
        if len(self.out) > self.due_bytes:
            self.due(size)


class Client:
    """A connection, what is known of it, and the text of its fields. `opened`: called before its first event;
    `is_known`: whether it was. `node`: the field of its node, if there are several.
    """

    __slots__ = (
        "_asked_in",
        "_began_ns",
        "_block",
        "_client_id",
        "_connection",
        "_context",
        "_exchange",
        "_named_in",
        "_noting",
        "_number",
        "_opened",
        "_peer",
        "_plain",
        "_principal",
        "_send",
        "_software",
        "_text",
        "_usual",
        "_wanted",
        "is_known",
        "node",
    )
    _context: Asked
    __deletable__: ClassVar = ["_noting"]  # which only mypyc looks at

    def __init__(
        self, line: Line, node: dict[str, int], wanted: Wanted, block: Block, opened: Callable[[Line], None]
    ) -> None:
        self._number, self._peer, self.node = line.number, line.peer, node
        self._wanted, self._block, self._opened = wanted, block, partial(opened, line)
        self.is_known = False
        self._named_in = 0  # the number of the block that names it
        self._plain: set[int] = set()  # the APIs all of whose requests are recorded, and say nothing of the client
        self._usual: AskedApi | None = None  # that of the last request, if it is one of them
        self._client_id: str | None = None
        # the exchange whose reply `_noted` gets, if there is one, and the number of the block that has its request
        self._send: Send | None = None
        self._exchange = self._began_ns = self._asked_in = 0
        self._noting: Send = self._noted
        self._connection = line.connection

    def open(self) -> None:
        """Notes the connection, if that was not done."""
        if not self.is_known:
            self.is_known = True
            self._look(None)
            self._opened()

    def close(self) -> None:
        """Lets go of itself and of its connection, which is lost."""
        del self._noting
        self._connection = None

    def _look(self, client_id: str | None) -> None:
        """Makes the text of the fields as they are."""
        peer = self._peer
        self._client_id, self._principal, self._software = client_id, peer.principal, peer.software
        self._text = events.connection_text(self._number, peer, client_id, self.node)
        self._named_in = 0

    # what is usual

    def watch(self, number: int, context: Asked, request: Struct, frame: memoryview, send: Send) -> Send:
        """Notes a request; returns what notes its reply and sends it."""
        block, peer, size = self._block, self._peer, len(frame)
        if (
            context.api is not self._usual
            or block.number != self._named_in
            or context.client_id != self._client_id
            or peer.software is not self._software
            or peer.principal is not self._principal
            or self._send is not None
            or not block.schedule.is_machines
            or (size > WHOLE_BYTES and (self._wanted.has_raw or not ends_with_records(request, size)))
        ):
            return self._watched(number, context, request, frame, send)
        work_ns, out = block.work_ns, block.out
        self._began_ns = ns = work_ns()
        kept = size if size <= WHOLE_BYTES else START_BYTES
        out += pack_asked(ASKED, self._number, number, ns, size, kept)
        out += frame if kept == size else frame[:kept]
        block.count += 1
        self._exchange, self._context, self._asked_in, self._send = number, context, block.number, send
        return self._noting

    def _noted(self, reply: Reply | None, end: bool) -> None:
        """Notes the reply to the last request, and sends it."""
        send, self._send, block = self._send, None, self._block
        assert send is not None
        if (
            reply is None
            or block.number != self._asked_in
            or not block.schedule.is_machines
            or self._waited() is not None
        ):
            return self._sent(send, self._head(), reply, end)
        parts = reply.parts
        if parts and (len(parts) > 1 or self._wanted.has_raw):
            return self._sent(send, self._head(), reply, end)
        try:
            body, work_ns = reply.head, block.work_ns
            kept = len(body)
            if not parts:
                head = pack_answered(ANSWERED, self._exchange, work_ns(), kept)
            else:
                place, missed = parts[0][0], reply.size - kept
                head = pack_answered_to(ANSWERED_TO, self._exchange, work_ns(), place, missed, kept)
            out = block.out
            out += head
            out += body
            block.count += 1
            if len(out) > block.due_bytes:
                due = block.due
                due(kept)
        except Exception as error:
            bugs.report("a watcher", error)
        send(reply, end)

    def _waited(self) -> Waiting | None:
        """What has come behind the last request, if its reply was put off."""
        connection = self._connection
        if connection is None or connection.is_serving:
            return None
        return connection.waiting()

    def _head(self) -> bytes:
        """What the reply to the last request needs of it in another block."""
        context = self._context
        return pack_head(
            REQUEST,
            self._number,
            self._exchange,
            self._began_ns,
            context.api.key,
            context.version,
            context.correlation_id,
            0,
            0,
        )

    # everything

    def _watched(self, number: int, context: Asked, request: Struct, frame: memoryview, send: Send) -> Send:
        """Like `watch`, for any request."""
        api, wanted = context.api, self._wanted
        if api is not self._usual and api.key in self._plain:
            self._usual = api
            return self.watch(number, context, request, frame, send)
        if not wanted.takes(context, request):
            return send
        ns = self._block.work_ns()
        self.open()
        if (
            self._client_id != context.client_id
            or self._software is not self._peer.software
            or self._principal != self._peer.principal
        ):
            self._look(context.client_id)
        size = len(frame)
        body: Data = frame
        holes: Holes | None = None
        if size > WHOLE_BYTES and api.has_records and not wanted.copies(size):
            body, holes = without_records(api.request, context.version, request, frame)
        kept = len(body)
        head = pack_head(
            REQUEST, self._number, number, ns, api.key, context.version, context.correlation_id, size, kept
        )
        self._add(head, body, holes)
        if api.key in IDENTIFYING:
            return partial(self._identified, send, head)
        if wanted.matcher is None:
            self._plain.add(api.key)
        if self._send is not None:  # another one waits for its reply
            return partial(self._sent, send, head)
        self._exchange, self._began_ns, self._context = number, ns, context
        self._asked_in, self._send = self._named_in, send
        return self._noting

    def _identified(self, send: Send, head: bytes, reply: Reply | None, end: bool) -> None:
        """Like `_sent`, for a request that may have said who the client is."""
        bugs.guarded("a watcher", self._look, self._client_id)
        self._sent(send, head, reply, end)

    def _sent(self, send: Send, head: bytes, reply: Reply | None, end: bool) -> None:
        """Like `_noted`, for any reply. `head`: of its request."""
        try:
            ns, waiting = self._block.work_ns(), self._waited()
            if reply is not None:
                body, holes = self._kept(reply)
                self._add(pack_replied(REPLY, ns, reply.size - LENGTH, len(body), head), body, holes, waiting)
            elif not end:
                self._add(pack_replied(REPLY, ns, 0, BARE, head), b"", None, waiting)
        except Exception as error:
            bugs.report("a watcher", error)
        send(reply, end)

    def _kept(self, reply: Reply) -> tuple[bytearray, Holes | None]:
        """What is kept of a reply: of one with records all if the bytes are asked for, else its head."""
        if not reply.parts:
            return reply.head, None
        if self._wanted.copies(reply.size - LENGTH):
            return _whole(reply), None
        return reply.head, holes_of(reply)

    def _add(self, head: bytes, body: Data, holes: Holes | None, waiting: Waiting | None = None) -> None:
        """Adds an event, and before it what it needs: who the client is, the time if it is not the machine's, which
        records are missing, and what waited for it.
        """
        before = b"" if holes is None else missing(holes)
        if waiting is not None:
            before += waited(waiting)
        block = self._block
        if not block.schedule.is_machines:
            before += BROKER_MS.pack(AT, block.schedule.now_ms())
        if block.number != self._named_in:
            block.out += named(self._number, self._text)
            self._named_in = block.number
        out = block.out
        out += before
        out += head
        out += body
        block.added(len(body))


def _whole(reply: Reply) -> bytearray:
    """The bytes of a reply; reads records from their files."""
    out = bytearray(reply.head)
    for place, part in reversed(reply.parts):
        out[place:place] = bytes(part)
    return out


def ends_with_records(request: Struct, size: int) -> bool:
    """Whether all of a request behind its first START_BYTES is records of its one partition, without the header of
    their first batch.
    """
    if not isinstance(request, m.ProduceRequest) or len(request.topic_data) != 1 or request.unknown_tags is not None:
        return False
    (topic,) = request.topic_data
    if len(topic.partition_data) != 1 or topic.unknown_tags is not None:
        return False
    (partition,) = topic.partition_data
    before = size - len(partition.records or b"")  # and after them, where there are zeros
    return before + BATCH_HEADER_BYTES <= START_BYTES < size and partition.unknown_tags is None


def without_records(name: str, version: int, request: Struct, frame: memoryview) -> tuple[bytes, Holes | None]:
    """Returns what is kept of a request with records, and what is missing: the bytes of records but for the header of
    the first batch of each partition. All of it is kept if they cannot be told from the rest.
    """
    size = len(frame)
    if ends_with_records(request, size):
        return bytes(frame[:START_BYTES]), [(START_BYTES, size - START_BYTES)]
    return _without_all(name, version, frame)


def _without_all(name: str, version: int, frame: memoryview) -> tuple[bytes, Holes | None]:
    header_version, places_in = _places_in(name, version)
    try:
        found = places_in(frame, headers.client_id_of(header_version, frame)[1])
    except UNREADABLE:
        return bytes(frame), None
    out, holes, done = bytearray(), [], 0
    for place, size in found:
        if size > BATCH_HEADER_BYTES:
            until = place + BATCH_HEADER_BYTES
            out += frame[done:until]
            done = place + size
            holes.append((len(out), done - until))
    out += frame[done:]
    return bytes(out), holes


@cache
def _places_in(name: str, version: int) -> tuple[int, RecordPlaces]:
    return headers.request_header_version(name, version), record_places(name, version)
