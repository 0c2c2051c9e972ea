"""The watcher that records what a broker and its clients say to each other, for a program beside the broker.

It is the nearest to the client of all, so that it sees what came and what was sent. What it does on the loop for a
request is small: it copies the bytes of the request and of its reply, with their times (`recording.py`), as a
block of bytes. Records are left out, but for the header of their first batch.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Final

from ....protocol import headers
from ....protocol.buffers import Data
from ....protocol.json_text import BATCH_HEADER_BYTES
from ....protocol.record_places import UNREADABLE, RecordPlaces, record_places
from ....protocol.structs import Struct
from ... import bugs
from ...broker import Broker
from ...machine import MachineTime
from ...replies import Reply, Send
from ..cut_frames import LENGTH, Holes, holes_of
from ..faults.matching import Matcher
from ..seam import Asked, Line, Watcher
from . import events
from .recording import (
    EXCHANGE,
    MACHINES_TIME,
    NO_FRAME,
    OF_REPLY,
    OF_REQUEST,
    RAW_BYTES_MAX,
    TIMES,
    Ids,
    Times,
    connection_entry,
    holes_data,
    line_entry,
    with_line,
)
from .ring import EVENT_BYTES_MAX

WHOLE_BYTES: Final = 1 << 10  # of a request that is copied with its records
DELAY_MS: Final = 20  # for which events wait for others
BLOCK_BYTES: Final = 256 << 10  # of events that do not wait
SAME_CLOCK_MS: Final = 2  # by which times may seem to differ because they are rounded
IDENTIFYING: Final = frozenset((17, 18, 36))  # SaslHandshake, ApiVersions, SaslAuthenticate: they say who a client is
_packed: Final = EXCHANGE.pack


class _Client:
    """What blocks say of a connection, and what it was made of. `block`: the number of the last one that says it."""

    __slots__ = ("_line", "block", "client_id", "number", "principal", "software", "text")

    def __init__(self, line: Line) -> None:
        self._line = line
        self.client_id: str | None = None
        self.principal = ""
        self.software = ("", "")
        self.text = ""
        self.number = line.number
        self.block = -1

    def look(self, client_id: str | None) -> None:
        """Makes the text of the connection's fields again if they have changed."""
        peer = self._line.peer
        if client_id != self.client_id or peer.software is not self.software or peer.principal != self.principal:
            self.client_id, self.principal, self.software = client_id, peer.principal, peer.software
            self.text = events.connection_text(self.number, peer, client_id)


class Recorder(Watcher):
    """Makes blocks of events. `dropped`: events for which there was no room.

    A subclass says what becomes of a block (`_made`), and by its attributes what is recorded: `_keys`, of the APIs,
    None for all; `_matcher`, of the requests, None for all; `_shows_all`, whether a connection without such a request
    is of interest, too; `_has_raw`, whether the bytes of frames are wanted as they are; `_shows_refused`, those of a
    frame that is refused.
    """

    _keys: frozenset[int] | None = None
    _matcher: Matcher | None = None
    _shows_all = True
    _has_raw = _shows_refused = False

    def __init__(self, broker: Broker, machine: MachineTime) -> None:
        self.dropped = 0
        self._broker, self._machine, self._schedule = broker, machine, broker.schedule
        self._work_ns, self._wall_ms = machine.work_ns, machine.wall_ms
        self._clients: dict[int, _Client] = {}
        self._entries = bytearray()  # of the next block
        self._enough = 0  # bytes of it with which `_due` is called
        self._count = self._block = 0  # of the events, and of blocks before this one
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
            found = self._clients[line.number] = _Client(line)
            peer = line.peer
            protocol = peer.security_protocol.name
            self._rare("opened", connection=line.number, peer=peer.address, listener=peer.listener, protocol=protocol)
        return found

    def closed(self, line: Line) -> None:
        if self._clients.pop(line.number, None) is not None:
            self._rare("closed", connection=line.number, peer=line.peer.address)

    def refused(self, line: Line, frame: memoryview, reason: str) -> None:
        if line.number in self._clients or self._shows_all:
            self._client(line)
            key, version, correlation_id = events.start_of(frame)
            self._rare(
                "refused",
                connection=line.number,
                peer=line.peer.address,
                key=key,
                version=version,
                correlation_id=correlation_id,
                size=len(frame),
                reason=reason,
                **({"raw": events.base64_of(frame)} if self._shows_refused else {}),
            )

    def _rare(self, event: str, **values: str | int | None) -> None:
        at_ms, mono_us = self._schedule.now_ms(), self._work_ns() // 1000
        made = events.plain_line(event, at_ms=at_ms, mono_us=mono_us, **values)
        self._entries += line_entry(made)
        self._count += 1
        if len(self._entries) > self._enough:
            self._due(len(made))

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
            client.block != self._block
            or client.client_id != context.client_id
            or client.software is not peer.software
            or client.principal != peer.principal
        ):
            self._tell(client, context.client_id)
        ids = (line.number, number, api.key, context.version, context.correlation_id)
        size = len(frame)
        if size > WHOLE_BYTES and api.has_records and not self._copies(size):
            data, holes = _without_records(api.request, context.version, frame)
            self._note(OF_REQUEST, ids, size, ns, ns, data, holes)
        else:  # as in `_note`, which takes longer
            at_ms = MACHINES_TIME if self._schedule.is_machines else self._schedule.now_ms()
            entries = self._entries
            entries += _packed(OF_REQUEST, size, 0, size, ns, at_ms, ns, *ids)
            entries += frame
            self._count += 1
            if len(entries) > self._enough:
                self._due(size)
        return partial(self._sent, send, client, ids, ns)

    def _sent(self, send: Send, client: _Client, ids: Ids, began_ns: int, reply: Reply | None, end: bool) -> None:
        """Notes a reply, and sends it. The arguments before it are of its request."""
        try:
            ns = self._work_ns()
            if client.block != self._block or ids[2] in IDENTIFYING:
                self._tell(client, client.client_id)
            if reply is None:
                if not end:
                    self._note(OF_REPLY, ids, 0, ns, began_ns, None)
            elif reply.parts:
                self._note_records(ids, ns, began_ns, reply)
            else:  # as in `_note`, which takes longer
                at_ms = MACHINES_TIME if self._schedule.is_machines else self._schedule.now_ms()
                entries, size = self._entries, reply.size
                entries += _packed(OF_REPLY, size, 0, size - LENGTH, ns, at_ms, began_ns, *ids)
                entries += reply.head
                self._count += 1
                if len(entries) > self._enough:
                    self._due(size)
        except Exception as error:
            bugs.report("a watcher", error)
        send(reply, end)

    def _note_records(self, ids: Ids, ns: int, began_ns: int, reply: Reply) -> None:
        """Adds a reply with records, without them unless the bytes are asked for."""
        size = reply.size - LENGTH
        if self._copies(size):
            self._note(OF_REPLY, ids, size, ns, began_ns, _whole(reply))
        else:
            self._note(OF_REPLY, ids, size, ns, began_ns, reply.head, holes_of(reply))

    def _copies(self, size: int) -> bool:
        """Whether the bytes of a frame are asked for."""
        return self._has_raw and size <= RAW_BYTES_MAX

    # events

    def _tell(self, client: _Client, client_id: str | None) -> None:
        """Adds the fields of a connection, for its exchanges that follow in this block."""
        client.look(client_id)
        self._entries += connection_entry(client.number, client.text)
        client.block = self._block

    def _note(
        self,
        kind: int,
        ids: Ids,
        size: int,
        ns: int,
        began_ns: int,
        frame: Data | None,
        holes: Holes = (),
    ) -> None:
        """Adds an exchange. `holes`: where records are missing in the frame."""
        at_ms = MACHINES_TIME if self._schedule.is_machines else self._schedule.now_ms()
        entries = self._entries
        kept = NO_FRAME if frame is None else len(frame)
        entries += _packed(kind, kept, len(holes), size, ns, at_ms, began_ns, *ids)
        entries += holes_data(holes)
        if frame is not None:
            entries += frame
        self._count += 1
        if len(entries) > self._enough:
            self._due(kept)

    def _due(self, size: int) -> None:
        """Makes a block of the events soon, if the last one is the first of them, or now, if there are enough.
        `size`: of the last one.
        """
        if not self._is_waiting:
            self._is_waiting = True
            self._machine.after(DELAY_MS, self._flush_later)
            self._enough = BLOCK_BYTES
        if len(self._entries) > self._enough:
            self.flush(is_large=size > EVENT_BYTES_MAX)

    def _flush_later(self) -> None:
        self._is_waiting = False
        self.flush()

    def flush(self, is_large: bool = False) -> None:
        """Makes a block of the events. `is_large`: whether the last one has more bytes than the ring keeps of one."""
        self._enough = BLOCK_BYTES if self._is_waiting else 0
        if not self._count:
            return
        entries, times, count = self._entries, self._times(), self._count
        self._entries, self._count = bytearray(), 0
        self._block += 1
        self._made(times, b"".join((TIMES.pack(*times), entries)), count, is_large)

    def _made(self, times: Times, block: bytes, count: int, is_large: bool) -> None:
        """Takes a block. `count`: of its events."""
        raise NotImplementedError

    def _noted(self, times: Times, block: bytes, count: int, has_room: bool) -> tuple[bytes, int]:
        """Counts the events of a block if there is no room for it. Returns the block and the number of its events; the
        first one says how many were dropped, if there is room again.
        """
        if not has_room:
            self.dropped += count
        elif self.dropped > self._dropped_noted:
            dropped, self._dropped_noted = self.dropped - self._dropped_noted, self.dropped
            line = events.plain_line("dropped", at_ms=times.at_ms, mono_us=times.ns // 1000, count=dropped)
            return with_line(block, line), count + 1
        return block, count

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


def _without_records(request: str, version: int, frame: memoryview) -> tuple[Data, Holes]:
    """Returns the bytes of a request without its records, but for the header of the first batch of each partition, and
    where they are missing; the whole frame if that cannot be told.
    """
    header_version, places_in = _places_in(request, version)
    try:
        found = places_in(frame, headers.client_id_of(header_version, frame)[1])
    except UNREADABLE:
        return frame, []
    out, holes, done = bytearray(), [], 0
    for place, size in found:
        if size > BATCH_HEADER_BYTES:
            until = place + BATCH_HEADER_BYTES
            out += frame[done:until]
            done = place + size
            holes.append((len(out), done - until))
    out += frame[done:]
    return out, holes


@cache
def _places_in(request: str, version: int) -> tuple[int, RecordPlaces]:
    return headers.request_header_version(request, version), record_places(request, version)
