"""Decodes long batches of records with the same shape: after the first record the next ones follow at equal distances,
so that their numbers are columns with that stride. Most producers write such records: the same fields, values of one
size.

The shape changes where a number gets another byte, as the offset delta does at the 65th and at the 8,193rd record; the
records between two such places are a run. Batches with many runs are left to `decode`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .batches import Array

COUNT_MIN = 256  # records of a batch, on average: a run takes as long as some dozens of records in `decode`
RUNS_MIN, RUN_RECORDS = 8, 64  # a batch may have RUNS_MIN runs, and one more for each RUN_RECORDS records
_NUMBER_BYTES_MAX = 5
_WORD_BYTES = 8
_U = np.uint64


class Shape(NamedTuple):
    """The shape of a record: its size, and where its fields are, relative to it. Sizes are -1 for null."""

    stride: int
    timestamp_at: int
    offset_at: int
    key_size_at: int
    key_at: int
    key_size: int
    value_size_at: int
    value_at: int
    value_size: int
    room: int  # how many records there are at most before the offset delta needs another byte


class Run(NamedTuple):
    """Consecutive records of one shape, and their deltas."""

    start: int
    record_count: int
    shape: Shape
    timestamp_delta: Array
    offset_delta: Array


def runs(data: Array, words: Array, starts: Array, counts: Array, ends: Array) -> list[Run] | None:
    """Returns the runs of batches whose records are at `starts`..`ends` in `data`; None if there are too many, or a
    record has a shape that this module does not read. `words`: the eight bytes at every position.
    """
    if int(counts.sum()) < COUNT_MIN * counts.size:
        return None
    found: list[Run] = []
    for start, count, end in zip(starts.tolist(), counts.tolist(), ends.tolist(), strict=True):
        at, left, allowed = start, count, len(found) + RUNS_MIN + count // RUN_RECORDS
        while left:
            shape = _shape(data, at, end)
            if shape is None or len(found) == allowed:
                return None
            found.append(_run(data, words, at, min(left, (end - at) // shape.stride, shape.room), shape))
            at += found[-1].record_count * shape.stride
            left -= found[-1].record_count
        if at != end:
            return None
    return found


def _shape(data: Array, start: int, end: int) -> Shape | None:
    """Returns the shape of the record at `start`; None if it ends after `end`, or has headers or numbers that this
    module does not read: the codec decides about sizes below -1.
    """
    try:
        size, attributes_at = _number(data, start)
        _, offset_at = _number(data, attributes_at + 1)
        offset, key_size_at = _number(data, offset_at)
        key_size, key_at = _number(data, key_size_at)
        value_size_at = key_at + max(key_size, 0)
        value_size, value_at = _number(data, value_size_at)
        stop = value_at + max(value_size, 0)
        is_known = key_size >= -1 and value_size >= -1 and stop < end and int(data[stop]) == 0
    except IndexError:
        return None
    if not is_known or attributes_at + size != stop + 1 or key_at - attributes_at - 1 > _WORD_BYTES:
        return None
    room = (1 << (7 * (key_size_at - offset_at) - 1)) - offset
    return Shape(
        stride=stop + 1 - start,
        timestamp_at=attributes_at + 1 - start,
        offset_at=offset_at - start,
        key_size_at=key_size_at - start,
        key_at=key_at - start,
        key_size=key_size,
        value_size_at=value_size_at - start,
        value_at=value_at - start,
        value_size=value_size,
        room=max(1, room),
    )


def _number(data: Array, at: int) -> tuple[int, int]:
    """Returns a number of at most five bytes, and the position after it. Raises IndexError if there is none."""
    raw = 0
    for n in range(_NUMBER_BYTES_MAX):
        byte = int(data[at + n])
        raw |= (byte & 0x7F) << (7 * n)
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at + n + 1
    raise IndexError


def _run(data: Array, words: Array, start: int, count: int, shape: Shape) -> Run:
    """Returns the records from `start` that have the shape; at most `count`."""

    def every(column: Array, at: int) -> Array:
        return column[start + at :: shape.stride][:count]

    numbers = every(words, shape.timestamp_at)
    # the numbers before the key have as many bytes as in the first record, and the size of the key is the same
    mask = int.from_bytes(b"\x80" * (shape.key_size_at - shape.timestamp_at), "little")
    mask |= ((1 << 8 * (shape.key_at - shape.key_size_at)) - 1) << 8 * (shape.key_size_at - shape.timestamp_at)
    differs = (numbers ^ numbers[0]) & _U(mask)
    for at, size in ((0, shape.timestamp_at - 1), (shape.value_size_at, shape.value_at - shape.value_size_at)):
        sizes = every(words, at)
        differs |= (sizes ^ sizes[0]) & _U((1 << 8 * size) - 1)
    differs |= every(data, shape.stride - 1)  # the number of headers
    other = int((differs != 0).argmax())
    numbers = numbers[: other or None]
    offsets = numbers >> _U(8 * (shape.offset_at - shape.timestamp_at))
    return Run(
        start, numbers.size, shape,
        _numbers(numbers, shape.offset_at - shape.timestamp_at), _numbers(offsets, shape.key_size_at - shape.offset_at),
    )  # fmt: skip


def _numbers(words: Array, size: int) -> Array:
    """Returns the numbers of `size` bytes at the start of the words."""
    raw = words & _U(0x7F)
    for n in range(1, size):
        raw |= (words >> _U(n)) & _U(0x7F << (7 * n))
    value = (raw >> _U(1)).view(np.int64)
    value ^= -(raw & _U(1)).view(np.int64)
    return value
