"""The sparse indexes of a segment: offsets to positions, timestamps to offsets, and aborted transactions.

Entries are packed as on disk. Those of the active segment grow in memory and are written when the segment is flushed,
rolled or closed; after a crash they are rebuilt from the log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from operator import le, lt
from struct import unpack_from
from typing import NamedTuple

from .layout import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY

NO_OFFSET = 2**63 - 1


class OffsetIndex:
    """Pairs of an offset and the position of the batch that ends with this offset or begins before it."""

    def __init__(self, base_offset: int, data: bytes = b"") -> None:
        self.base_offset = base_offset
        self.data = bytearray(data)

    def __len__(self) -> int:
        return len(self.data) // INDEX_ENTRY.size

    def entry(self, slot: int) -> tuple[int, int]:
        relative, position = INDEX_ENTRY.unpack_from(self.data, slot * INDEX_ENTRY.size)
        return self.base_offset + relative, position

    def append(self, offset: int, position: int) -> None:
        self.data += INDEX_ENTRY.pack(offset - self.base_offset, position)

    def _relative(self, slot: int) -> int:
        found: int = INDEX_ENTRY.unpack_from(self.data, slot * INDEX_ENTRY.size)[0]
        return found

    def _position(self, slot: int) -> int:
        found: int = INDEX_ENTRY.unpack_from(self.data, slot * INDEX_ENTRY.size)[1]
        return found

    def slot_before(self, offset: int) -> int:
        """Returns the number of the last entry not above `offset`; -1 if there is none."""
        return bisect_right(range(len(self)), offset - self.base_offset, key=self._relative) - 1

    def slot_at_or_after(self, position: int) -> int:
        """Returns the number of the first entry at or after `position`; the number of entries if there is none."""
        return bisect_left(range(len(self)), position, key=self._position)

    def is_sane(self, size: int) -> bool:
        """Whether the entries are complete and ascend, below `size` bytes of log. They are compared with the log when
        they are used.
        """
        if len(self.data) % INDEX_ENTRY.size:
            return False
        flat = unpack_from(f">{2 * len(self)}i", self.data)
        offsets, positions = flat[::2], flat[1::2]
        if flat and (offsets[0] < 0 or positions[0] < 0 or positions[-1] >= size):
            return False
        return all(map(lt, offsets, offsets[1:])) and all(map(le, positions, positions[1:]))


class TimeIndex:
    """Pairs of the largest timestamp so far and the offset of its batch."""

    def __init__(self, base_offset: int, data: bytes = b"") -> None:
        self.base_offset = base_offset
        self.data = bytearray(data)

    def __len__(self) -> int:
        return len(self.data) // TIME_INDEX_ENTRY.size

    def entry(self, slot: int) -> tuple[int, int]:
        timestamp, relative = TIME_INDEX_ENTRY.unpack_from(self.data, slot * TIME_INDEX_ENTRY.size)
        return timestamp, self.base_offset + relative

    def last(self) -> tuple[int, int]:
        """Returns the last entry; without entries, no timestamp (-1) and the base offset."""
        return self.entry(len(self) - 1) if self.data else (-1, self.base_offset)

    def append(self, timestamp: int, offset: int) -> None:
        """Adds an entry if both its timestamp and its offset are larger than the last ones."""
        last_timestamp, last_offset = self.last()
        if timestamp > last_timestamp and (offset > last_offset or not self.data):
            self.data += TIME_INDEX_ENTRY.pack(timestamp, offset - self.base_offset)

    def _timestamp(self, slot: int) -> int:
        found: int = TIME_INDEX_ENTRY.unpack_from(self.data, slot * TIME_INDEX_ENTRY.size)[0]
        return found

    def slot_before(self, timestamp: int) -> int:
        """Returns the number of the last entry below `timestamp`; -1 if there is none."""
        return bisect_left(range(len(self)), timestamp, key=self._timestamp) - 1

    def is_sane(self) -> bool:
        if len(self.data) % TIME_INDEX_ENTRY.size:
            return False
        entries = list(TIME_INDEX_ENTRY.iter_unpack(self.data))
        if entries and (entries[0][0] < 0 or entries[0][1] < 0):
            return False
        return all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(entries))


class AbortedTransaction(NamedTuple):
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_aborted(transaction: AbortedTransaction) -> bytes:
    return TXN_INDEX_ENTRY.pack(*transaction)


def decode_aborted(data: bytes | bytearray) -> list[AbortedTransaction]:
    """Returns the complete entries of a `.txnindex`."""
    whole = len(data) - len(data) % TXN_INDEX_ENTRY.size
    return [AbortedTransaction._make(entry) for entry in TXN_INDEX_ENTRY.iter_unpack(data[:whole])]


class AbortedIndex:
    """The aborted transactions of a segment in the order of their markers, packed as on disk.

    `loaded` entries come from a file; those in `checked` have been verified against the log.
    """

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.loaded = len(self)
        self.checked: set[int] = set()
        self._earliest = None if data else NO_OFFSET

    def __len__(self) -> int:
        return len(self.data) // TXN_INDEX_ENTRY.size

    def entry(self, slot: int) -> AbortedTransaction:
        return AbortedTransaction._make(TXN_INDEX_ENTRY.unpack_from(self.data, slot * TXN_INDEX_ENTRY.size))

    @property
    def earliest(self) -> int:
        """The lowest first offset of all entries."""
        if self._earliest is None:
            entries = TXN_INDEX_ENTRY.iter_unpack(self.data[: len(self) * TXN_INDEX_ENTRY.size])
            self._earliest = min((first for _, _, first, _, _ in entries), default=NO_OFFSET)
        return self._earliest

    def append(self, transaction: AbortedTransaction) -> None:
        self.data += encode_aborted(transaction)
        if self._earliest is not None:
            self._earliest = min(self._earliest, transaction.first_offset)

    def is_sane(self, base_offset: int, end_offset: int) -> bool:
        """Whether the entries are complete, ascend between two offsets,
        and do not contradict each other's last stable offsets.
        """
        if len(self.data) % TXN_INDEX_ENTRY.size:
            return False
        # of the later entries: the lowest first offset, and the next last offset
        earliest, after = end_offset, end_offset
        for one in reversed(decode_aborted(self.data)):
            in_order = base_offset <= one.last_offset < after and 0 <= one.first_offset <= one.last_offset
            if one.version or not in_order or not 0 <= one.last_stable_offset <= min(earliest, one.last_offset + 1):
                return False
            earliest, after = min(earliest, one.first_offset), one.last_offset
        return True

    def overlapping(self, offset: int, upper: int, limit: int) -> Overlap:
        """Returns the entries with records at or after `offset` that begin before `upper`, or before the end of the
        transaction that is number `limit` of them.
        """
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle).last_offset < offset:
                low = middle + 1
            else:
                high = middle
        found, first = [], max(low - 1, 0)
        for slot in range(low, len(self)):
            one = self.entry(slot)
            if one.first_offset < upper:
                found.append(one)
                if len(found) == limit:
                    upper = min(upper, one.last_offset + 1)
            if one.last_stable_offset >= upper:
                return Overlap(found, upper, True, range(first, slot + 1))
        return Overlap(found, upper, False, range(first, len(self)))


class Overlap(NamedTuple):
    """The aborted transactions of a segment that overlap a range of offsets, which ends before `upper`."""

    found: list[AbortedTransaction]
    upper: int
    is_all: bool  # later segments can have none
    used: range  # the entries from which that follows
