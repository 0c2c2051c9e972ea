"""The sparse indexes of a segment: offsets to positions, timestamps to offsets, and aborted transactions.

Entries are kept packed as on disk. Those of the active segment grow in memory and reach their file when the segment is flushed,
rolled or closed; after a crash they are rebuilt from the log.
"""

from __future__ import annotations

from typing import NamedTuple

from .layout import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY


class OffsetIndex:
    """Pairs of an offset and the position of the batch that ends with it or begins before it."""

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

    def position_before(self, offset: int) -> int:
        """Where to begin looking for `offset`: the position of the last entry not above it, or 0."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle)[0] <= offset:
                low = middle + 1
            else:
                high = middle
        return self.entry(low - 1)[1] if low else 0

    def offset_behind(self, position: int) -> int | None:
        """The offset of the first entry at `position` or behind it; None where there is none."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle)[1] < position:
                low = middle + 1
            else:
                high = middle
        return self.entry(low)[0] if low < len(self) else None

    def last_offset(self) -> int:
        return self.entry(len(self) - 1)[0] if self.data else self.base_offset

    def truncate(self, offset: int) -> None:
        """Forgets entries for `offset` and above."""
        while self.data and self.entry(len(self) - 1)[0] >= offset:
            del self.data[-INDEX_ENTRY.size :]

    def is_sane(self, size: int) -> bool:
        """Whole entries, ascending, below `size` bytes of log."""
        if len(self.data) % INDEX_ENTRY.size:
            return False
        last = -1
        for relative, position in INDEX_ENTRY.iter_unpack(self.data):
            if relative < 0 or position >= size or position < last:
                return False
            last = position
        return all(a[0] < b[0] for a, b in zip(INDEX_ENTRY.iter_unpack(self.data), list(INDEX_ENTRY.iter_unpack(self.data))[1:], strict=False))

    def is_full(self, limit_bytes: int) -> bool:
        return len(self.data) + INDEX_ENTRY.size > limit_bytes


class TimeIndex:
    """Pairs of the largest timestamp so far and the offset of the batch that has it."""

    def __init__(self, base_offset: int, data: bytes = b"") -> None:
        self.base_offset = base_offset
        self.data = bytearray(data)

    def __len__(self) -> int:
        return len(self.data) // TIME_INDEX_ENTRY.size

    def entry(self, slot: int) -> tuple[int, int]:
        timestamp, relative = TIME_INDEX_ENTRY.unpack_from(self.data, slot * TIME_INDEX_ENTRY.size)
        return timestamp, self.base_offset + relative

    def last(self) -> tuple[int, int]:
        """The last entry; where there is none, no timestamp (-1) and the base offset."""
        return self.entry(len(self) - 1) if self.data else (-1, self.base_offset)

    def append(self, timestamp: int, offset: int) -> None:
        """Adds an entry where it is later than the last in both; others say nothing new."""
        last_timestamp, last_offset = self.last()
        if timestamp > last_timestamp and (offset > last_offset or not self.data):
            self.data += TIME_INDEX_ENTRY.pack(timestamp, offset - self.base_offset)

    def offset_before(self, timestamp: int) -> int:
        """The offset from which to look for the first record at or after `timestamp`."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle)[0] < timestamp:
                low = middle + 1
            else:
                high = middle
        return self.entry(low - 1)[1] if low else self.base_offset

    def truncate(self, offset: int) -> None:
        while self.data and self.entry(len(self) - 1)[1] >= offset:
            del self.data[-TIME_INDEX_ENTRY.size :]

    def is_sane(self) -> bool:
        if len(self.data) % TIME_INDEX_ENTRY.size:
            return False
        entries = list(TIME_INDEX_ENTRY.iter_unpack(self.data))
        return all(r >= 0 for _, r in entries) and all(a[0] < b[0] and a[1] < b[1] for a, b in zip(entries, entries[1:], strict=False))

    def is_full(self, limit_bytes: int) -> bool:
        return len(self.data) + TIME_INDEX_ENTRY.size > limit_bytes


class AbortedTransaction(NamedTuple):
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_aborted(transaction: AbortedTransaction) -> bytes:
    return TXN_INDEX_ENTRY.pack(*transaction)


def decode_aborted(data: bytes) -> list[AbortedTransaction]:
    """The whole entries of a `.txnindex`."""
    whole = len(data) - len(data) % TXN_INDEX_ENTRY.size
    return [AbortedTransaction._make(entry) for entry in TXN_INDEX_ENTRY.iter_unpack(data[:whole])]


class AbortedIndex:
    """A segment's aborted transactions in the order in which they ended, packed as on disk."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data[: len(data) - len(data) % TXN_INDEX_ENTRY.size])

    def __len__(self) -> int:
        return len(self.data) // TXN_INDEX_ENTRY.size

    def entry(self, slot: int) -> AbortedTransaction:
        return AbortedTransaction._make(TXN_INDEX_ENTRY.unpack_from(self.data, slot * TXN_INDEX_ENTRY.size))

    def append(self, transaction: AbortedTransaction) -> None:
        self.data += encode_aborted(transaction)

    def overlapping(self, offset: int, upper: int) -> tuple[list[AbortedTransaction], bool]:
        """Those that have records at `offset` or behind it and begin before `upper`; and whether later segments have none of them."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle).last_offset < offset:
                low = middle + 1
            else:
                high = middle
        found = []
        for slot in range(low, len(self)):
            one = self.entry(slot)
            if one.first_offset < upper:
                found.append(one)
            if one.last_stable_offset >= upper:
                return found, True
        return found, False
