"""A reply that is sent in pieces: its records are read from files as the peer accepts them."""

from __future__ import annotations

from collections import deque

from ...protocol.buffers import Data, LateRecords
from ..replies import Reply


class SegmentTooShort(Exception):
    """A file has fewer bytes than when the reply was made."""


class Sending:
    """The rest of a reply: encoded bytes, and records that are not read yet."""

    __slots__ = ("_parts", "_position")

    def __init__(self, reply: Reply) -> None:
        self._parts: deque[memoryview | LateRecords] = deque()
        self._position = 0  # in the first part, if that is records
        head, done = memoryview(reply.head), 0
        for place, records in reply.parts:
            if place > done:
                self._parts.append(head[done:place])
                done = place
            self._parts.append(records)
        if done < len(head):
            self._parts.append(head[done:])

    def __bool__(self) -> bool:
        """Whether something is left to send."""
        return bool(self._parts)

    def read(self, length: int) -> list[Data]:
        """Returns the next pieces, until they have `length` bytes or more: encoded bytes are not cut, records are.

        Raises OSError, and SegmentTooShort.
        """
        parts = self._parts
        found: list[Data] = []
        size = 0
        while parts and size < length:
            part = parts[0]
            if isinstance(part, memoryview):
                data: Data = part
                parts.popleft()
            else:
                data = self._read_records(part, length - size)
            found.append(data)
            size += len(data)
        return found

    def _read_records(self, records: LateRecords, length: int) -> Data:
        data = records.read(self._position, length)
        self._position += len(data)
        if self._position >= len(records):
            self._parts.popleft()
            self._position = 0
            records.release()
        if not data:
            raise SegmentTooShort("a segment is shorter than it was")
        return data

    def release(self) -> None:
        """Nothing more of the reply is sent: lets go of its files."""
        for part in self._parts:
            part.release()
        self._parts.clear()
