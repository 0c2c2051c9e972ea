"""Recognizes a frame that differs from a known one only in numbers, without reading its fields.

A layout is made from the frame with all of those numbers zero, and from the frame with all of their bits set: the bits
in which the two differ are the numbers. So the schema says where they are, and a frame has the layout if it is as long
and its other bits are the same. Both take one operation on the whole frame as an integer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import groupby

from .buffers import Data


class Layout:
    """The layout of a frame. `kinds`: the formats of the numbers (`struct`), one text for those that lie together."""

    __slots__ = ("_mask", "_same", "_unpack", "size")

    def __init__(self, zeros: bytes, ones: bytes, kinds: Sequence[str]) -> None:
        assert len(zeros) == len(ones), "numbers have the same size whatever they are"
        self.size = len(zeros)
        numbers = int.from_bytes(zeros, "big") ^ int.from_bytes(ones, "big")
        self._mask = ((1 << 8 * self.size) - 1) ^ numbers
        self._same = int.from_bytes(zeros, "big") & self._mask
        self._unpack = struct.Struct(">" + "".join(_formats(numbers.to_bytes(self.size, "big"), kinds))).unpack

    def numbers_of(self, frame: Data) -> tuple[int, ...] | None:
        """Returns the numbers of a frame in their order; None for a frame of another layout."""
        if len(frame) != self.size or int.from_bytes(frame, "big") & self._mask != self._same:
            return None
        return self._unpack(frame)


def _formats(numbers: bytes, kinds: Sequence[str]) -> Iterator[str]:
    """Yields the format of each stretch of a frame in whose bytes all bits are numbers, or none."""
    left = iter(kinds)
    for byte, stretch in groupby(numbers):
        size = sum(1 for _ in stretch)
        kind = next(left) if byte else f"{size}x"
        assert byte in (0, 0xFF), "numbers are whole bytes"
        assert struct.calcsize(">" + kind) == size, "numbers lie where they were expected"
        yield kind
    assert next(left, None) is None, "every number was found"
