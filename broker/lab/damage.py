"""Replies whose bytes are damaged on purpose. Positions are those of the bytes that are sent: the encoded message, with
the records that are read from files where they belong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...protocol import messages
from ...protocol.buffers import LateRecords
from ...protocol.structs import Struct
from ..replies import Reply


def cut(reply: Reply, size: int) -> None:
    """Leaves the first bytes of a reply."""
    head, parts, left = reply.head, reply.parts, min(size, reply.size)
    kept: list[tuple[int, LateRecords]] = []
    done = 0  # bytes of the head
    for place, records in parts:
        own = min(left, place - done)
        done, left = done + own, left - own
        length = min(left, len(records))
        if length:
            kept.append((place, Prefix(records, length)))
            left -= length
        else:
            records.release()
    done += min(left, len(head) - done)
    reply.head, reply.parts, reply.size = head[:done], kept, min(size, reply.size)


def flip(reply: Reply, position: int, mask: int) -> None:
    """Changes the bits of a mask in a byte of a reply."""
    before = 0  # bytes of records before the place
    for index, (place, records) in enumerate(reply.parts):
        if position < place + before:
            break
        at = position - place - before
        if at < len(records):
            byte = records.read(at, 1)[0] ^ mask
            reply.parts[index] = place, Patched(records, ((at, byte),))
            return
        before += len(records)
    reply.head[position - before] ^= mask


def repeat(reply: Reply) -> None:
    """Adds the whole reply once more."""
    size = len(reply.head)
    first = [(place, Borrowed(records)) for place, records in reply.parts]
    reply.parts = [*first, *((place + size, records) for place, records in reply.parts)]
    reply.head, reply.size = reply.head * 2, reply.size * 2


def _records_of(message: object) -> Iterator[LateRecords]:
    """Yields the records in a reply that are read from files."""
    if isinstance(message, messages.FetchResponse | messages.ShareFetchResponse):
        for topic in message.responses:
            for partition in topic.partitions:
                if partition.records is not None and not isinstance(partition.records, bytes | bytearray | memoryview):
                    yield partition.records


@contextmanager
def release_missing(message: Struct) -> Iterator[None]:
    """Releases the records that are not in a reply of Fetch or ShareFetch any more after the block."""
    before = list(_records_of(message))
    yield
    after = {id(one) for one in _records_of(message)}
    for one in before:
        if id(one) not in after:
            one.release()


class Borrowed:
    """Records that someone else releases."""

    __slots__ = ("_records",)

    def __init__(self, records: LateRecords) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __bytes__(self) -> bytes:
        return bytes(self._records)

    def read(self, start: int, length: int) -> bytes:
        return self._records.read(start, length)

    def release(self) -> None: ...


class Prefix:
    """The first bytes of records."""

    __slots__ = ("_length", "_records")

    def __init__(self, records: LateRecords, length: int) -> None:
        self._records = records
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __bytes__(self) -> bytes:
        return self.read(0, self._length)

    def read(self, start: int, length: int) -> bytes:
        return self._records.read(start, min(length, self._length - start))

    def release(self) -> None:
        self._records.release()


class Patched:
    """Records with some bytes changed: `changes` has them by position."""

    __slots__ = ("_changes", "_records")

    def __init__(self, records: LateRecords, changes: Sequence[tuple[int, int]]) -> None:
        self._records = records
        self._changes = changes

    def __len__(self) -> int:
        return len(self._records)

    def __bytes__(self) -> bytes:
        return self.read(0, len(self))

    def read(self, start: int, length: int) -> bytes:
        data = self._records.read(start, length)
        inside = [(at - start, byte) for at, byte in self._changes if start <= at < start + len(data)]
        if not inside:
            return data
        changed = bytearray(data)
        for at, byte in inside:
            changed[at] = byte
        return bytes(changed)

    def release(self) -> None:
        self._records.release()
