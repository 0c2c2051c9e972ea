"""The indexes of segments in memory, which are bounded however many logs are read, and however long they are."""

from __future__ import annotations

from typing import Protocol

INDEX_BYTES_MAX = 16 << 20


class Indexed(Protocol):
    """A segment."""

    uses_indexes: bool

    def free_indexes(self) -> bool: ...


class LoadedIndexes:
    """Indexes that can be read again. Those that were not used since the last look are freed first, the oldest before
    the others.
    """

    def __init__(self) -> None:
        self._sizes: dict[Indexed, int] = {}  # in the order in which they were loaded, or looked at
        self.bytes = 0

    def note(self, segment: Indexed, size: int) -> None:
        """Notes the size of the indexes of a segment, and frees others if there are too many."""
        self.forget(segment)
        self._sizes[segment] = size
        self.bytes += size
        for _ in range(2 * len(self._sizes)):
            if self.bytes <= INDEX_BYTES_MAX:
                return
            self._look(next(iter(self._sizes)), segment)

    def forget(self, segment: Indexed) -> None:
        """Does not count the indexes of a segment any more."""
        self.bytes -= self._sizes.pop(segment, 0)

    def _look(self, oldest: Indexed, newest: Indexed) -> None:
        size = self._sizes.pop(oldest)
        if oldest is newest or oldest.uses_indexes or not oldest.free_indexes():
            oldest.uses_indexes = False
            self._sizes[oldest] = size
        else:
            self.bytes -= size
