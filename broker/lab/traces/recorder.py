"""The watcher that records what a broker and its clients say to each other, for a program beside the broker.

It is the nearest to the client of all, so that it sees what came and what was sent. What it does on the loop for a
request is small: it copies the bytes of the request and of its reply, with their times (`recording.py`). Of records
only the headers of batches are kept, because copies of records take the time of more requests than they tell of.

An event is added when all of it is at hand, so that whatever is raised before leaves the block whole.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Final

from ....protocol import headers
from ....protocol import messages as m
from ....protocol.buffers import Data
from ....protocol.emit import UNREADABLE
from ....protocol.json_text import BATCH_HEADER_BYTES
from ....protocol.record_places import RecordPlaces, record_places
from ....protocol.structs import Struct
from ... import bugs
from ...broker import Broker
from ...machine import MachineTime
from ...replies import Reply, Send
from ..faults.matching import Matcher
from ..seam import Asked, Line, Watcher
from ..sent_replies import LENGTH, Holes, holes_of
from . import events
from .recording import (
    AT,
    BROKER_MS,
    NO_BODY,
    RAW_BYTES_MAX,
    REPLY,
    REQUEST,
    TIMES,
    Times,
    line_piece,
    missing,
    named,
    pack_head,
    pack_replied,
)
from .ring import EVENT_BYTES_MAX

WHOLE_BYTES: Final = 1 << 10  # of a request that is copied with its records
START_BYTES: Final = 512  # that are copied of a larger one with one partition
DELAY_MS: Final = 20  # for which events wait for others
BLOCK_BYTES: Final = 256 << 10  # of events that do not wait
SAME_CLOCK_MS: Final = 2  # by which times may seem to differ because they are rounded
IDENTIFYING: Final = frozenset((17, 18, 36))  # SaslHandshake, ApiVersions, SaslAuthenticate: they say who a client is


class _Client:
    """What is known of a connection: the text of its fields, and what that was made of. `block`: the number of the
    block that names it.
    """

    __slots__ = ("block", "client_id", "line", "node", "principal", "software", "text")

    def __init__(self, line: Line, client_id: str | None, node: dict[str, int]) -> None:
        self.line, self.node = line, node
        self.look(client_id)

    def look(self, client_id: str | None) -> None:
        """Makes the text of the fields as they are."""
        peer = self.line.peer
        self.client_id, self.principal, self.software = client_id, peer.principal, peer.software
        self.text = events.connection_text(self.line.number, peer, client_id, self.node)
        self.block = 0


class Recorder(Watcher):
    """Makes blocks of events. `recorded`: how many there were; `dropped`: those for which there was no room, of which
    the first one that has room again tells.

    A subclass says whether there is room (`_has_room`) and what becomes of a block (`_made`), and by its attributes
    what is recorded: `_keys`, of the APIs, None for all; `_matcher`, of the requests, None for all; `_shows_all`,
    whether a connection without such a request is of interest, too; `_has_raw`, whether the bytes of frames are wanted
    as they are; `_shows_refused`, those of a frame that is refused.
    """

    _keys: frozenset[int] | None = None
    _matcher: Matcher | None = None
    _shows_all = True
    _has_raw = _shows_refused = False

    def __init__(self, broker: Broker, machine: MachineTime) -> None:
        self.recorded = self.dropped = 0
        self._broker, self._machine, self._schedule = broker, machine, broker.schedule
        self._work_ns, self._wall_ms = machine.work_ns, machine.wall_ms
        self._clients: dict[int, _Client] = {}
        self._block = 1  # the number of the one that is begun
        self._out = bytearray(TIMES.size)
        self._count = 0  # of its events
        self._due_bytes = 0  # beyond which `_due` is called
        self._is_waiting = False
        self._zero_ms = machine.wall_ms() - machine.work_ns() // 1_000_000
        self._dropped_noted = 0

    # connections

    def opened(self, line: Line) -> None:
        if self._shows_all:
            self._client(line)

    def _client(self, line: Line) -> _Client:
        """Returns what is known of a connection; its opening is an event when it is first seen."""
        found = self._clients.get(line.number)
        if found is None:
            node = {"node": line.node_id} if len(self._broker.nodes) > 1 else {}
            found = self._clients[line.number] = _Client(line, None, node)
            peer = line.peer
            name, protocol = peer.listener, peer.security_protocol.name
            self._rare("opened", connection=line.number, peer=peer.address, listener=name, **node, protocol=protocol)
        return found

    def closed(self, line: Line) -> None:
        found = self._clients.pop(line.number, None)
        if found is not None:
            self._rare("closed", connection=line.number, peer=line.peer.address, **found.node)

    def refused(self, line: Line, frame: memoryview, reason: str) -> None:
        if line.number in self._clients or self._shows_all:
            client = self._client(line)
            key, version, correlation_id = events.start_of(frame)
            self._rare(
                "refused",
                connection=line.number,
                peer=line.peer.address,
                **client.node,
                key=key,
                version=version,
                correlation_id=correlation_id,
                size=len(frame),
                reason=reason,
                **({"raw": events.base64_of(frame)} if self._shows_refused else {}),
            )

    def _rare(self, event: str, **values: str | int | None) -> None:
        at_ms, mono_us = self._schedule.now_ms(), self._work_ns() // 1000
        self._out += line_piece(events.plain_line(event, at_ms=at_ms, mono_us=mono_us, **values))
        self._added(0)

    # exchanges

    def watch(self, number: int, line: Line, context: Asked, request: Struct, frame: memoryview, send: Send) -> Send:
        api = context.api
        if self._keys is not None and api.key not in self._keys:
            return send
        if self._matcher is not None and not self._matcher.takes(context, request):
            return send
        ns = self._work_ns()
        client, peer = self._clients.get(line.number) or self._client(line), line.peer
        if (
            client.client_id != context.client_id
            or client.software is not peer.software
            or client.principal != peer.principal
        ):
            client.look(context.client_id)
        size = kept = len(frame)
        body: Data = frame
        holes: Holes | None = None
        if size > WHOLE_BYTES and api.has_records and not self._copies(size):
            body, holes = without_records(api.request, context.version, request, frame)
            kept = len(body)
        head = pack_head(REQUEST, line.number, number, ns, api.key, context.version, context.correlation_id, size, kept)
        if client.block != self._block or not self._schedule.is_machines:
            self._precede(client)
        out = self._out
        if holes is not None:
            out += missing(holes)
        out += head
        out += body
        self._count += 1
        if len(out) > self._due_bytes:
            self._due(kept)
        return partial(self._identified if api.key in IDENTIFYING else self._sent, send, client, head)

    def _precede(self, client: _Client) -> None:
        """Adds what an event needs before it: who the client is, and the time if it is not the machine's."""
        if client.block != self._block:
            client.block = self._block
            self._out += named(client.line.number, client.text)
        if not self._schedule.is_machines:
            self._out += BROKER_MS.pack(AT, self._schedule.now_ms())

    def _identified(self, send: Send, client: _Client, head: bytes, reply: Reply | None, end: bool) -> None:
        """Like `_sent`, for a request that may have said who the client is."""
        bugs.guarded("a watcher", client.look, client.client_id)
        self._sent(send, client, head, reply, end)

    def _sent(self, send: Send, client: _Client, head: bytes, reply: Reply | None, end: bool) -> None:
        """Notes a reply, and sends it. `head`: of its request."""
        try:
            ns = self._work_ns()
            if reply is not None:
                body, holes = (reply.head, None) if not reply.parts else self._with_records(reply)
                kept = len(body)
                replied = pack_replied(REPLY, ns, reply.size - LENGTH, kept, head)
                if client.block != self._block or not self._schedule.is_machines:
                    self._precede(client)
                out = self._out
                if holes is not None:
                    out += missing(holes)
                out += replied
                out += body
                self._count += 1
                if len(out) > self._due_bytes:
                    self._due(kept)
            elif not end:
                replied = pack_replied(REPLY, ns, 0, NO_BODY, head)
                self._precede(client)
                self._out += replied
                self._added(0)
        except Exception as error:
            bugs.report("a watcher", error)
        send(reply, end)

    def _with_records(self, reply: Reply) -> tuple[bytearray, Holes | None]:
        """What is kept of a reply with records: all of it if the bytes are asked for, else its head."""
        if self._has_raw and self._copies(reply.size - LENGTH):
            return _whole(reply), None
        if len(reply.parts) == 1:
            return reply.head, [(reply.parts[0][0], reply.size - len(reply.head))]
        return reply.head, holes_of(reply)

    def _copies(self, size: int) -> bool:
        """Whether the bytes of a frame are asked for."""
        return self._has_raw and size <= RAW_BYTES_MAX

    # blocks

    def _added(self, size: int) -> None:
        """Counts an event. `size`: of its body."""
        self._count += 1
        if len(self._out) > self._due_bytes:
            self._due(size)

    def _due(self, size: int) -> None:
        """Ends the block soon, if the last event is its first, or now, if it is large enough. `size`: of the body of
        the last event.
        """
        if not self._is_waiting:
            self._is_waiting = True
            self._machine.after(DELAY_MS, self._flush_later)
            self._due_bytes = BLOCK_BYTES
        if len(self._out) > self._due_bytes:
            self.flush(is_large=size > EVENT_BYTES_MAX)

    def _flush_later(self) -> None:
        self._is_waiting = False
        self.flush()

    def flush(self, is_large: bool = False) -> None:
        """Ends the block, and begins another. `is_large`: whether the last event has more bytes than the ring keeps of
        one.
        """
        self._due_bytes = BLOCK_BYTES if self._is_waiting else 0
        if not self._count:
            return
        out, count, times, has_room = self._out, self._count, self._times(), self._has_room()
        self._out, self._count = bytearray(TIMES.size), 0
        self._block += 1
        self.recorded += count
        if not has_room:
            self.dropped += count
        elif self.dropped > self._dropped_noted:
            noted, self._dropped_noted = self.dropped - self._dropped_noted, self.dropped
            note = events.plain_line("dropped", at_ms=times.at_ms, mono_us=times.ns // 1000, count=noted)
            out[TIMES.size : TIMES.size] = line_piece(note)
            count += 1
        TIMES.pack_into(out, 0, *times)
        self._made(bytes(out), count, has_room, is_large)

    def _has_room(self) -> bool:
        """Whether a block can be given away."""
        raise NotImplementedError

    def _made(self, block: bytes, count: int, has_room: bool, is_large: bool) -> None:
        """Takes a block, which has so many events."""
        raise NotImplementedError

    def _times(self) -> Times:
        ns, clock_ms, at_ms = self._work_ns(), self._wall_ms(), self._schedule.now_ms()
        zero_ms = clock_ms - ns // 1_000_000
        if abs(zero_ms - self._zero_ms) >= SAME_CLOCK_MS:  # the machine's clock was set
            self._zero_ms = zero_ms
        return Times(ns, at_ms, clock_ms, self._zero_ms)


def _whole(reply: Reply) -> bytearray:
    """The bytes of a reply; reads records from their files."""
    out = bytearray(reply.head)
    for place, part in reversed(reply.parts):
        out[place:place] = bytes(part)
    return out


def without_records(name: str, version: int, request: Struct, frame: memoryview) -> tuple[bytes, Holes | None]:
    """Returns what is kept of a request with records, and what is missing: the bytes of records but for the header of
    the first batch of each partition. All of it is kept if they cannot be told from the rest.
    """
    size = len(frame)
    if isinstance(request, m.ProduceRequest) and len(request.topic_data) == 1 and request.unknown_tags is None:
        (topic,) = request.topic_data
        if len(topic.partition_data) == 1 and topic.unknown_tags is None:
            (partition,) = topic.partition_data
            before = size - len(partition.records or b"")  # and after them, where there are zeros
            if before + BATCH_HEADER_BYTES <= START_BYTES < size and partition.unknown_tags is None:
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
