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
from .varints import UNREADABLE, uvarint_at

_INT = struct.Struct(">i")
_VERSION = 3  # the place of its low byte in a frame; there are not that many
_HEAD_SIZE = 8  # of a frame: the API, its version, and the correlation id


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
        kind = next(left, "") if byte else f"{size}x"
        assert byte in (0, 0xFF), "numbers are whole bytes"
        assert struct.calcsize(">" + kind) == size, "numbers lie where they were expected"
        yield kind
    assert next(left, None) is None, "every number was found"


class RecordsLayout:
    """The layout of a Produce request for one partition: what lies around the index of the partition and its records.

    `frame`: a request without records, for partition 0, with the correlation id 0. The records are the last field of
    all versions; behind them there are only sections without tagged fields, one for each level.
    """

    __slots__ = ("_after", "_before", "_index_at", "_is_flexible", "_version", "size")

    def __init__(self, frame: bytes, is_flexible: bool) -> None:
        self._is_flexible = is_flexible
        self._after = b"\0\0\0" if is_flexible else b""
        tail = (b"\1" if is_flexible else b"\0\0\0\0") + self._after
        assert frame.endswith(bytes(_INT.size) + tail), "nothing else follows the partition"
        self.size = len(frame)
        self._index_at = self.size - len(tail) - _INT.size
        self._version = frame[_VERSION]
        self._before = frame[_HEAD_SIZE : self._index_at]

    def records_of(self, frame: memoryview) -> tuple[int, memoryview] | None:
        """Returns the index of the partition of a frame and its records; None for a frame of another layout."""
        at = self._index_at
        if len(frame) <= self.size or frame[_VERSION] != self._version or frame[_HEAD_SIZE:at] != self._before:
            return None
        (index,), start = _INT.unpack_from(frame, at), at + _INT.size
        try:
            if self._is_flexible:
                length, start = uvarint_at(frame, start)
                length -= 1
            else:
                (length,) = _INT.unpack_from(frame, start)
                start += _INT.size
        except UNREADABLE:
            return None
        end = start + length
        if length < 0 or len(frame) - end != len(self._after) or frame[end:] != self._after:
            return None
        return index, frame[start:end]
