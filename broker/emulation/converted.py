"""The messages of a partition that were made for a reply: they stay in the pieces that they were made in. A copy of all
would be memory that the system has to map first, which takes longer than to fill it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate


class Converted:
    """Records of a reply (`LateRecords`) in memory: the first `bytes_max` bytes of some pieces."""

    __slots__ = ("_ends", "_length", "_pieces")

    def __init__(self, pieces: Iterable[bytes], bytes_max: int) -> None:
        self._pieces = [piece for piece in pieces if piece]
        self._ends = list(accumulate(map(len, self._pieces)))
        self._length = min(bytes_max, self._ends[-1] if self._ends else 0)

    def __len__(self) -> int:
        return self._length

    def __bytes__(self) -> bytes:
        return self.read(0, self._length)

    def read(self, start: int, length: int) -> bytes:
        """Returns `length` bytes from `start` on, or fewer at the end."""
        stop = min(start + length, self._length)
        found, index = [], bisect_right(self._ends, start)
        while start < stop:
            piece, end = self._pieces[index], self._ends[index]
            before = end - len(piece)
            found.append(piece[start - before : stop - before])
            start, index = end, index + 1
        return b"".join(found)

    def release(self) -> None:
        """Nothing is held but memory."""
