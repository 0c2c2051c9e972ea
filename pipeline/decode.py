"""Records of many batches at once, with NumPy alone.

Where a record starts is known only from the record before it, but only within its batch: so one cursor per batch moves on in lock step, one
record of every batch at a time. All other fields are then read for all records at once, eight bytes at a time from overlapping words. Whatever
does not fit this (numbers that fill more than their eight bytes, a record that is damaged) is noticed, and its batch left to
the codec of `protocol.records`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .batches import Array

PADDING = 8  # bytes that must follow the last record, for whole words
_MORE = np.uint64(0x8080808080808080)
_U = np.uint64


class Irregular(Exception):
    """Some batch of the group is damaged, or has numbers longer than eight bytes."""


class Fields(NamedTuple):
    """Columns of records in log order; positions are in the buffer that was given, sizes are -1 for null."""

    timestamp_delta: Array
    offset_delta: Array
    key_at: Array
    key_size: Array
    value_at: Array
    value_size: Array
    header_count: Array
    headers_at: Array
    end: Array


class Headers(NamedTuple):
    """Columns of headers in log order; `first` has each record's first one, and one entry more."""

    first: Array
    key_at: Array
    key_size: Array
    value_at: Array
    value_size: Array


def _overlapping(data: Array) -> Array:
    """Eight bytes from every position of `data`, without a copy."""
    whole = np.ndarray((1,), np.dtype("<u8"), data)
    return np.lib.stride_tricks.as_strided(whole, (data.size - PADDING + 1,), (1,))


def _numbers(words: Array) -> tuple[Array, Array]:
    """Zigzag numbers that the words begin with, and 8 times their sizes in bytes."""
    more = words & _U(0x80)
    if not more.any():
        raw = words & _U(0x7F)
        bits = np.full(words.shape, 8, np.int64)
    elif not ((words & _U(0x8080)) == _U(0x8080)).any():
        raw = (words & _U(0x7F)) | (((words >> _U(1)) & _U(0x3F80)) * (more >> _U(7)))
        bits = (((more >> _U(7)) + _U(1)) << _U(3)).view(np.int64)
    else:
        raw, bits = _long_numbers(words)
    value = (raw >> _U(1)).view(np.int64)
    value ^= -(raw & _U(1)).view(np.int64)
    return value, bits


def _long_numbers(words: Array) -> tuple[Array, Array]:
    ends = ~words & _MORE
    if not ends.all():
        raise Irregular
    low = ends & (~ends + _U(1))
    mask = (low << _U(1)) - _U(1)
    raw = words & mask & _U(0x7F7F7F7F7F7F7F7F)
    raw = ((raw & _U(0x7F007F007F007F00)) >> _U(1)) | (raw & _U(0x007F007F007F007F))
    raw = ((raw & _U(0x3FFF00003FFF0000)) >> _U(2)) | (raw & _U(0x00003FFF00003FFF))
    raw = ((raw & _U(0x0FFFFFFF00000000)) >> _U(4)) | (raw & _U(0x000000000FFFFFFF))
    return raw, np.bitwise_count(mask).astype(np.int64)


def starts_of(words: Array, starts: Array, counts: Array) -> tuple[Array, Array]:
    """Where each record's body starts, and the body's size, in log order; `starts` are those of the batches' first records."""
    order = np.argsort(-counts, kind="stable")
    cursors, many = starts[order].copy(), counts[order]
    first = (np.cumsum(counts) - counts)[order]
    total, longest = int(counts.sum()), int(many[0]) if many.size else 0
    bodies, sizes = np.empty(total, np.int64), np.empty(total, np.int64)
    active = np.searchsorted(-many, -np.arange(longest), side="left")
    for step in range(longest):
        n = active[step]
        at = cursors[:n]
        size, bits = _numbers(words[at])
        at = at + (bits >> 3)
        slot = first[:n] + step
        bodies[slot] = at
        sizes[slot] = size
        cursors[:n] = at + size
    return bodies, sizes


def decode(data: Array, starts: Array, counts: Array, ends: Array) -> Fields:
    """The fields of the records of batches whose records lie, uncompressed, at `starts`..`ends` in `data` (with PADDING behind).

    Irregular when a record does not end where its batch and its own size say.
    """
    words = _overlapping(data)
    try:
        bodies, sizes = starts_of(words, starts, counts)
        stops = bodies + sizes
        last = np.cumsum(counts) - 1
        if (sizes < 6).any() or (stops[last] != ends).any():
            raise Irregular
        return _fields(words, bodies, stops)
    except IndexError:
        raise Irregular from None


def _fields(words: Array, bodies: Array, stops: Array) -> Fields:
    head = words[bodies + 1]
    timestamps, bits = _numbers(head)
    head >>= bits.view(np.uint64)
    used = bits
    offsets, bits = _numbers(head)
    head >>= bits.view(np.uint64)
    used = used + bits
    key_sizes, bits = _numbers(head)
    used += bits
    if int(used.max()) > 64:  # what was shifted out was needed
        raise Irregular
    keys_at = bodies + 1 + (used >> 3)
    behind = keys_at + np.maximum(key_sizes, 0)
    value_sizes, bits = _numbers(words[behind])
    values_at = behind + (bits >> 3)
    behind = values_at + np.maximum(value_sizes, 0)
    counts, bits = _numbers(words[behind])
    headers_at = behind + (bits >> 3)
    bare = counts == 0
    if (key_sizes < -1).any() or (value_sizes < -1).any() or (counts < 0).any() or (headers_at > stops).any() or (headers_at != stops)[bare].any():
        raise Irregular
    return Fields(timestamps, offsets, keys_at, key_sizes, values_at, value_sizes, counts, headers_at, stops)


def headers(data: Array, fields: Fields) -> Headers:
    """The headers of all records. Irregular when they do not end where their record does."""
    words = _overlapping(data)
    counts = fields.header_count
    first = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=first[1:])
    total = int(first[-1])
    if total > int((fields.end - fields.headers_at).sum()):
        raise Irregular
    found = Headers(first, *(np.empty(total, np.int64) for _ in range(4)))
    with_headers = np.flatnonzero(counts)
    cursors, step = fields.headers_at[with_headers], 0
    try:
        while with_headers.size:
            slot = first[with_headers] + step
            size, bits = _numbers(words[cursors])
            at = cursors + (bits >> 3)
            found.key_at[slot], found.key_size[slot] = at, size
            at = at + np.maximum(size, 0)
            value_size, bits = _numbers(words[at])
            at = at + (bits >> 3)
            found.value_at[slot], found.value_size[slot] = at, value_size
            cursors = at + np.maximum(value_size, 0)
            if (size < 0).any() or (value_size < -1).any() or (cursors > fields.end[with_headers]).any():
                raise Irregular
            step += 1
            going = counts[with_headers] > step
            if (cursors != fields.end[with_headers])[~going].any():
                raise Irregular
            with_headers, cursors = with_headers[going], cursors[going]
    except IndexError:
        raise Irregular from None
    return found
