"""Decodes the records of many batches at once, with NumPy alone.

The start of a record is known only from the record before it in its batch. Therefore one cursor per batch advances in
lock step, one record of every batch at a time. Long batches get more cursors: bytes in the middle that look like a
record give, by their offset delta, the number of records before them; they are confirmed when the previous cursor ends
exactly there. Long batches of records that have the same shape need none of this (`even`). All other fields are then
read for all records at once, eight bytes at a time from overlapping words. If a batch does not fit this scheme (numbers
longer than eight bytes, damaged records), the codec of `protocol.records` decodes it instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import even
from .batches import Array
from .files import PADDING

SECTION_RECORDS = 96
WINDOW_MAX = 1 << 15  # bytes in which a record is searched
ZEROS_MAX = 256  # in such a window: with more zeros it is not text, and the candidates are too many
_RECORD_MIN = 6
_MORE = np.uint64(0x8080808080808080)
_U = np.uint64


class Irregular(Exception):
    """A batch of the group is damaged, or has numbers longer than eight bytes."""


class Fields(NamedTuple):
    """Columns of records in log order; positions are in the given buffer, sizes are -1 for null."""

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
    """Columns of headers in log order; `first` has the first header of each record, and one entry more."""

    first: Array
    key_at: Array
    key_size: Array
    value_at: Array
    value_size: Array


def overlapping(data: Array) -> Array:
    """Returns the eight bytes at every position of `data`, without a copy."""
    whole = np.ndarray((1,), np.dtype("<u8"), data)
    return np.lib.stride_tricks.as_strided(whole, (data.size - PADDING + 1,), (1,))


def _numbers(words: Array) -> tuple[Array, Array]:
    """Decodes the zigzag numbers at the start of the words; returns them and 8 times their sizes in bytes."""
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
    """Returns where each record's body starts, and its size, in log order; `starts` are those of the first records of
    the batches.
    """
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


def decode(data: Array, starts: Array, counts: Array, ends: Array, dense: Array) -> Fields:
    """Decodes the fields of uncompressed records at `starts`..`ends` in `data`, which PADDING bytes follow.

    `dense`: which batches have a record for each of their offsets. Raises Irregular if a record does not end where its
    batch and its own size say.
    """
    words = overlapping(data)
    alike = even.runs(data, words, starts, counts, ends)
    if alike is not None:
        return _of_runs(alike)
    many = dense & (counts > 2 * SECTION_RECORDS)
    if many.any():
        try:
            return _decoded(words, *sections(data, words, starts, counts, ends, many))
        except Irregular:
            pass  # decode each batch in one piece instead
    return _decoded(words, starts, counts, ends)


def _of_runs(runs: list[even.Run]) -> Fields:
    """Returns the fields of records of the same shape, which have no headers."""
    counts = np.array([one.record_count for one in runs])
    starts = np.concatenate([np.arange(one.record_count) * one.shape.stride + one.start for one in runs])
    stride, key_at, key_size, value_at, value_size = (
        np.repeat(np.array([getattr(one.shape, name) for one in runs], np.int64), counts)
        for name in ("stride", "key_at", "key_size", "value_at", "value_size")
    )
    ends = starts + stride
    return Fields(
        np.concatenate([one.timestamp_delta for one in runs]), np.concatenate([one.offset_delta for one in runs]),
        starts + key_at, key_size, starts + value_at, value_size, np.zeros(ends.size, np.int64), ends, ends,
    )  # fmt: skip


def sections(
    data: Array, words: Array, starts: Array, counts: Array, ends: Array, many: Array
) -> tuple[Array, Array, Array]:
    """Returns starts, counts and ends of the batches;
    those of the mask `many` are split into sections of about SECTION_RECORDS.
    """
    which = np.flatnonzero(many)
    pieces = counts[which] // SECTION_RECORDS
    batch = np.repeat(which, pieces - 1)
    number = np.arange(batch.size) - np.repeat(np.cumsum(pieces - 1) - (pieces - 1), pieces - 1) + 1
    span = ends - starts
    guess = starts[batch] + span[batch] * number // np.repeat(pieces, pieces - 1)
    window = min(int((span[which] // counts[which]).max()) * 2 + 32, WINDOW_MAX)
    inside = guess + window + PADDING < data.size
    batch, guess = batch[inside], guess[inside]
    views = np.lib.stride_tricks.as_strided(data, (data.size - window + 1, window), (1, 1))
    row, column = np.nonzero(views[guess] == 0)  # the attributes of a record are always zero
    if row.size > ZEROS_MAX * guess.size:
        raise Irregular
    attributes, batch = guess[row] + column, batch[row]
    at, deltas, of = [starts], [np.zeros(starts.size, np.int64)], [np.arange(starts.size)]
    for length in (1, 2, 3):
        start, delta, fits = _record_at(words, attributes, length, ends[batch], counts[batch])
        fits[fits] = _is_followed(
            data, words, attributes[fits], start[fits], delta[fits], ends[batch[fits]], counts[batch[fits]], length
        )
        at.append(start[fits])
        deltas.append(delta[fits])
        of.append(batch[fits])
    starts_, delta_, batch_ = np.concatenate(at), np.concatenate(deltas), np.concatenate(of)
    order = np.lexsort((delta_, batch_))
    starts_, delta_, batch_ = starts_[order], delta_[order], batch_[order]
    first = np.append(
        True,
        (batch_[1:] != batch_[:-1]) | (delta_[1:] >= delta_[:-1] + SECTION_RECORDS // 2) & (starts_[1:] > starts_[:-1]),
    )
    starts_, delta_, batch_ = starts_[first], delta_[first], batch_[first]
    is_last = np.append(batch_[1:] != batch_[:-1], True)
    behind = np.where(is_last, ends[batch_], np.append(starts_[1:], 0))
    count = np.where(is_last, counts[batch_], np.append(delta_[1:], 0)) - delta_
    if (count < 1).any():
        raise Irregular
    return starts_, count, behind


def _size_at(words: Array, at: Array, length: int) -> tuple[Array, Array]:
    """Returns the sizes at some positions, and whether each has `length` bytes."""
    head = words[at]
    fits = (head & _U(0x808080 >> (24 - 8 * length))) == _U((0x8080 >> (24 - 8 * length)) if length > 1 else 0)
    raw = (head & _U(0x7F)) | ((head >> _U(1)) & _U(0x3F80)) | ((head >> _U(2)) & _U(0x1FC000))
    return ((raw & _U((1 << (7 * length)) - 1)) >> _U(1)).view(np.int64), fits


def _delta_at(words: Array, attributes: Array) -> Array:
    """Returns the offset deltas of records whose attributes are at the given positions; -1 if there is none."""
    found = np.full(attributes.size, -1, np.int64)
    head = words[attributes + 1]
    some = np.flatnonzero((~head & _U(0x0000008080808080)) != 0)  # a timestamp of at most five bytes
    if some.size:
        head = head[some]
        _, bits = _numbers(head)
        head = head >> bits.view(np.uint64)
        short = (~head & _U(0x808080)) != 0
        if short.any():
            found[some[short]] = _numbers(head[short])[0]
    return found


def _record_at(words: Array, attributes: Array, length: int, ends: Array, counts: Array) -> tuple[Array, Array, Array]:
    """Returns candidate records whose attributes follow a size of `length` bytes: their starts, offset deltas, and
    whether they are plausible.
    """
    start = attributes - length
    size, fits = _size_at(words, start, length)
    fits &= (size >= _RECORD_MIN) & (attributes + size <= ends)
    delta = np.full(attributes.size, -1, np.int64)
    delta[fits] = _delta_at(words, attributes[fits])
    return start, delta, fits & (delta > 0) & (delta < counts)


def _is_followed(
    data: Array, words: Array, attributes: Array, start: Array, delta: Array, ends: Array, counts: Array, length: int
) -> Array:
    """Whether the following record has the next offset delta, or the candidate is the last record."""
    size, _ = _size_at(words, start, length)
    behind = attributes + size
    found: Array = (behind == ends) & (delta + 1 == counts)
    for each in (1, 2, 3):
        _, fits = _size_at(words, np.minimum(behind, words.size - 1), each)
        fits &= behind + each < ends
        following = behind[fits] + each
        found[np.flatnonzero(fits)[(data[following] == 0) & (_delta_at(words, following) == delta[fits] + 1)]] = True
    return found


def _decoded(words: Array, starts: Array, counts: Array, ends: Array) -> Fields:
    try:
        bodies, sizes = starts_of(words, starts, counts)
        stops = bodies + sizes
        last = np.cumsum(counts) - 1
        if (sizes < _RECORD_MIN).any() or (stops[last] != ends).any():
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
    if int(used.max()) > 64:  # the number is longer than the word
        raise Irregular
    keys_at = bodies + 1 + (used >> 3)
    behind = keys_at + np.maximum(key_sizes, 0)
    value_sizes, bits = _numbers(words[behind])
    values_at = behind + (bits >> 3)
    behind = values_at + np.maximum(value_sizes, 0)
    counts, bits = _numbers(words[behind])
    headers_at = behind + (bits >> 3)
    bare = counts == 0
    if (
        (key_sizes < -1).any()
        or (value_sizes < -1).any()
        or (counts < 0).any()
        or (headers_at > stops).any()
        or (headers_at != stops)[bare].any()
    ):
        raise Irregular
    return Fields(timestamps, offsets, keys_at, key_sizes, values_at, value_sizes, counts, headers_at, stops)


def headers(data: Array, fields: Fields) -> Headers:
    """Decodes the headers of all records. Raises Irregular if they do not end where their record does."""
    words = overlapping(data)
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
