"""The watcher that records what a broker and its clients say to each other, for a program beside the broker.

Of all watchers it is the nearest to the client, so that it sees what came and what was sent. It does little on the loop
for a request (`client.py`): it copies the bytes of the request and of its reply, with their times. Of records only the
headers of batches are copied, because copies of records would take more of the loop's time than the requests do.
"""

from __future__ import annotations

from typing import Final

from ...addresses import text_of
from ...broker import Broker
from ...machine import MachineTime
from ..seam import Line, Watch, Watcher
from . import events
from .client import Block, Client, Wanted
from .recording import TIMES, Times, line_piece
from .ring import EVENT_BYTES_MAX

DELAY_MS: Final = 20  # for which events wait for others
BLOCK_BYTES: Final = 256 << 10  # of events that do not wait
SAME_CLOCK_MS: Final = 2  # by which times may seem to differ because they are rounded


class Recorder(Watcher):
    """Makes blocks of events. `recorded`: how many events there were; `dropped`: how many of them had no room. The next
    block that has room begins with a line that says how many were dropped.

    `wanted`: what is recorded. A subclass says whether there is room (`_has_room`) and what becomes of a block
    (`_made`), and by its attributes what else there is: `_shows_all`, whether a connection without a request that is
    recorded is of interest, too; `_shows_refused`, whether the bytes of a frame that is refused are.
    """

    _shows_all = True
    _shows_refused = False

    def __init__(self, wanted: Wanted, broker: Broker, machine: MachineTime) -> None:
        self.recorded = self.dropped = 0
        self._broker, self._machine, self._schedule = broker, machine, broker.schedule
        self._work_ns, self._wall_ms = machine.work_ns, machine.wall_ms
        self._wanted, self.reads_messages = wanted, wanted.matcher is not None
        self._clients: dict[int, Client] = {}
        self._block = Block(broker.schedule, machine.work_ns, self._due)
        self._is_waiting = False
        self._zero_ms = machine.wall_ms() - machine.work_ns() // 1_000_000
        self._dropped_noted = 0

    # connections

    def watching(self, line: Line) -> Watch:
        return self._client(line).watch

    def opened(self, line: Line) -> None:
        if self._shows_all:
            self._client(line).open()

    def _client(self, line: Line) -> Client:
        found = self._clients.get(line.number)
        if found is None:
            node = {"node": line.node_id} if len(self._broker.nodes) > 1 else {}
            found = self._clients[line.number] = Client(line, node, self._wanted, self._block, self._opened)
        return found

    def _opened(self, line: Line) -> None:
        """Records that a connection was opened, before its first event."""
        peer, node = line.peer, self._clients[line.number].node
        name, protocol = peer.listener, peer.security_protocol.name
        to = {} if line.connection is None else {"to": text_of(line.connection.transport.get_extra_info("sockname"))}
        self._rare("opened", connection=line.number, peer=peer.address, **to, listener=name, **node, protocol=protocol)

    def closed(self, line: Line) -> None:
        found = self._clients.pop(line.number, None)
        if found is None:
            return
        found.close()
        if found.is_known:
            self._rare("closed", connection=line.number, peer=line.peer.address, **found.node, **_end(line))

    def refused(self, line: Line, frame: memoryview, reason: str) -> None:
        client = self._client(line)
        if client.is_known or self._shows_all:
            client.open()
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
        self._block.out += line_piece(events.plain_line(event, at_ms=at_ms, mono_us=mono_us, **values))
        self._block.added(0)

    # blocks

    def _due(self, size: int) -> None:
        """Ends the block soon, if the last event is its first, or now, if it is large enough. `size`: of the body of
        the last event.
        """
        if not self._is_waiting:
            self._is_waiting = True
            self._machine.after(DELAY_MS, self._flush_later)
            self._block.due_bytes = BLOCK_BYTES
        if len(self._block.out) > BLOCK_BYTES:
            self.flush(is_large=size > EVENT_BYTES_MAX)

    def _flush_later(self) -> None:
        self._is_waiting = False
        self.flush()

    def flush(self, is_large: bool = False) -> None:
        """Ends the block, and begins another. `is_large`: whether the last event has more bytes than the ring keeps of
        one.
        """
        block = self._block
        block.due_bytes = BLOCK_BYTES if self._is_waiting else 0
        if not block.count:
            return
        out, count, times, has_room = block.out, block.count, self._times(), self._has_room()
        block.begin()
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


def _end(line: Line) -> dict[str, str]:
    """Who closed a connection, and why if it was the broker."""
    if line.connection is None:
        return {}
    ending = line.connection.ending
    return {"by": "client"} if ending is None else {"by": "broker", "reason": ending}
