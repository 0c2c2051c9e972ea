"""A reply that is sent in pieces: its records are read from files as the peer accepts them, or moved by the kernel.

What is moved from a file to a socket is not copied into the process: a fetch of a megabyte costs broker and client half
of what it costs when it is read and written (docs/decisions/splice.md). Linux only, and only where nothing else waits
in the transport and what is written goes to the socket as it is: with TLS, files in memory, and replies that the lab
sends in pieces, it is read.
"""

from __future__ import annotations

import os
from contextlib import suppress
from fcntl import fcntl
from typing import NamedTuple, Protocol

from ...protocol.buffers import Data, LateRecords
from ...storage.file_slice import FileSlice
from .. import bugs
from ..broker import Broker
from ..replies import Reply

PIECES_AT_ONCE = 128  # which are written in one step: records of each partition are read from its file
F_SETPIPE_SZ = 1031  # Python 3.11 has no name for it where it was built with old headers
PIPE_BYTES = 1 << 20
MOVED_MIN = 32 << 10  # bytes of records of a partition; fewer are read as fast
HEAD_MAX = 16 << 10  # encoded bytes before them that go through the pipe as well
TAIL_MAX = 512  # bytes of the end of a reply behind them, which a pipe takes at once or not at all


class SegmentTooShort(Exception):
    """A file has fewer bytes than when the reply was made."""


class Moved(NamedTuple):
    """What was taken: so many bytes of the file, and `head`, and if `has_tail` also that. `rest`: what of all this the
    socket did not take.
    """

    taken: int
    has_tail: bool
    rest: Data


class Pipe:
    """Through which the kernel moves what it moves. It is empty between two calls, so that all connections of a loop
    share it.
    """

    def __init__(self) -> None:
        self._ends: tuple[int, int] | None = None

    def move(self, head: Data, file: int, position: int, length: int, tail: Data, socket: int) -> Moved:
        """Moves `head`, then bytes of a file, and `tail` if these are all `length` bytes, to a socket that does not
        block. Nothing is taken of a file that cannot be moved, such as one that has ended: whoever reads it finds out
        why.
        """
        try:
            read, write = self._ends or self._open()
        except OSError:  # there are no descriptors, or no memory of pipes for this user
            return Moved(0, False, head)
        taken, has_tail = 0, False
        left = os.write(write, head) if len(head) else 0
        with suppress(OSError):
            taken = os.splice(file, write, length, offset_src=position)
            if taken == length and len(tail):
                left += os.write(write, tail)
                has_tail = True
        left += taken
        with suppress(OSError):  # the socket is full; if it is broken, its transport will know
            while left and (gone := os.splice(read, socket, left, flags=os.SPLICE_F_NONBLOCK)):
                left -= gone
        return Moved(taken, has_tail, self._taken_back(read, left) if left else b"")

    def _open(self) -> tuple[int, int]:
        """Raises OSError if there is none, or none that is large enough."""
        self._ends = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl(self._ends[1], F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            self.close()
            raise
        return self._ends

    def _taken_back(self, read: int, left: int) -> bytes:
        """Empties the pipe. One that cannot be emptied is given up: what is in it is for one client alone."""
        parts = []
        try:
            while left:
                parts.append(os.read(read, left))
                left -= len(parts[-1])
        except BaseException:
            self.close()
            raise
        return b"".join(parts)

    def close(self) -> None:
        ends, self._ends = self._ends, None
        for end in ends or ():
            os.close(end)


class Transport(Protocol):
    """What takes the bytes of a connection."""

    def write(self, data: Data) -> None: ...

    def writelines(self, list_of_data: list[Data]) -> None: ...

    def get_write_buffer_size(self) -> int: ...

    def is_closing(self) -> bool: ...

    def get_extra_info(self, name: str) -> object: ...


class Sending:
    """The rest of a reply: encoded bytes, and records that are not read yet."""

    __slots__ = ("_head", "_parts", "_position", "_sent")

    def __init__(self, reply: Reply) -> None:
        self._head = memoryview(reply.head)
        self._sent = 0  # bytes of the head
        self._parts = reply.parts[::-1]  # the next one is the last
        self._position = 0  # in the next part

    def __bool__(self) -> bool:
        """Whether something is left to send."""
        return bool(self._parts) or self._sent < len(self._head)

    def write(self, transport: Transport, length: int, direct: Direct | None) -> bool:
        """Sends the next bytes, some `length` of them. Returns whether that was as much as a turn of the loop may do.

        Raises OSError, and SegmentTooShort.
        """
        if direct is not None and self._parts and len(self._parts[-1][1]) >= MOVED_MIN:
            sent = direct.send(self, length)
            if sent:
                return sent >= length
        pieces = self.read(length)
        transport.writelines(pieces)
        return len(pieces) >= PIECES_AT_ONCE

    def move(self, pipe: Pipe, length: int, socket: int) -> Moved | None:
        """Has at most `length` bytes of the next records moved to a socket, with the encoded bytes before them. None if
        they are not in a file, or so few that it is not worthwhile: then nothing was sent.
        """
        if not self._parts:
            return None
        end, records = self._parts[-1]
        left = len(records) - self._position
        if left < MOVED_MIN or end - self._sent > HEAD_MAX or not isinstance(records, FileSlice):
            return None
        source = records.source(self._position)
        if source is None:
            return None
        is_end = len(self._parts) == 1 and left <= length and len(self._head) - end <= TAIL_MAX
        tail = self._head[end:] if is_end else b""
        moved = pipe.move(self._head[self._sent : end], *source, min(length, left), tail, socket)
        self._sent = len(self._head) if moved.has_tail else end
        self._passed(records, moved.taken)
        return moved

    def read(self, length: int) -> list[Data]:
        """Returns the next pieces, until they have `length` bytes or more, or are `PIECES_AT_ONCE`: encoded bytes are
        not cut, records are.

        Raises OSError, and SegmentTooShort.
        """
        parts = self._parts
        found: list[Data] = []
        size = 0
        while size < length and len(found) < PIECES_AT_ONCE:
            end = parts[-1][0] if parts else len(self._head)
            if self._sent < end:
                data: Data = self._head[self._sent : end]
                self._sent = end
            elif parts:
                data = self._read_records(parts[-1][1], length - size)
            else:
                break
            found.append(data)
            size += len(data)
        return found

    def _read_records(self, records: LateRecords, length: int) -> Data:
        data = records.read(self._position, length)
        self._passed(records, len(data))
        if not data:
            raise SegmentTooShort("a segment is shorter than it was")
        return data

    def _passed(self, records: LateRecords, count: int) -> None:
        """So many bytes of the next records were sent."""
        self._position += count
        if self._position >= len(records):
            self._parts.pop()
            self._position = 0
            records.release()

    def release(self) -> None:
        """Nothing more of the reply is sent: lets go of its files."""
        for _, part in self._parts:
            part.release()
        self._parts.clear()
        self._sent = len(self._head)


class Direct:
    """The way past the transport of a connection."""

    __slots__ = ("_pipe", "_socket", "_transport")

    def __init__(self, pipe: Pipe, transport: Transport, socket: int) -> None:
        self._pipe = pipe
        self._transport = transport
        self._socket = socket

    def send(self, out: Sending, length: int) -> int:
        """Sends the next records of a reply with the encoded bytes before them, until they are `length` bytes or more,
        the socket is full, or they are better read. Returns how many bytes of records were sent or given to the
        transport.
        """
        transport = self._transport
        sent = 0
        while sent < length and not transport.get_write_buffer_size() and not transport.is_closing():
            moved = out.move(self._pipe, length - sent, self._socket)
            if moved is None:
                break
            if len(moved.rest):
                transport.write(moved.rest)
            if not moved.taken:
                break
            sent += moved.taken
        return sent


def direct(pipe: Pipe, transport: Transport) -> Direct | None:
    """The way past a transport whose bytes are those of its socket; None where there is none."""
    fileno = getattr(transport.get_extra_info("socket"), "fileno", None) if hasattr(os, "splice") else None
    return None if fileno is None else Direct(pipe, transport, fileno())


def unreadable(error: Exception, broker: Broker) -> str:
    """Deals with an error of `Sending.write`: the rest of the reply cannot be made. Returns why, in words."""
    if isinstance(error, SegmentTooShort):
        return str(error)
    if isinstance(error, OSError):
        broker.log_directories.storage_error(error)
    else:
        bugs.report("reading a reply's records", error)
    return f"a segment cannot be read: {error}"
