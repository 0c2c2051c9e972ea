"""A reply that is sent in pieces: its records are read from files as the peer accepts them."""

from __future__ import annotations

from ...protocol.buffers import Data, LateRecords
from ..replies import Reply

PIECES_AT_ONCE = 128  # which are written in one step: records of each partition are read from its file


class SegmentTooShort(Exception):
    """A file has fewer bytes than when the reply was made."""


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
        self._position += len(data)
        if self._position >= len(records):
            self._parts.pop()
            self._position = 0
            records.release()
        if not data:
            raise SegmentTooShort("a segment is shorter than it was")
        return data

    def release(self) -> None:
        """Nothing more of the reply is sent: lets go of its files."""
        for _, part in self._parts:
            part.release()
        self._parts.clear()
        self._sent = len(self._head)
