"""What storage needs to know of a batch in a file, in any format version."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ..protocol.buffers import Data
from ..protocol.records import HEADER_SIZE, LOG_OVERHEAD, MAGIC, MAGIC_AT, NO_TIMESTAMP, BatchAt, BatchHeader, header_at

_LEGACY = struct.Struct(">qiIbb")
_BOUNDS = struct.Struct(">qi4xb6xi")  # base offset, length, version, last offset delta
_LENGTH_MIN = HEADER_SIZE - LOG_OVERHEAD
_LEGACY_LENGTH_MIN = 14


class BatchInfo(NamedTuple):
    """A batch in a file; for message sets of versions 0 and 1 an outer entry, whose `header` is None."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    magic: int
    header: BatchHeader | None


class Appended(NamedTuple):
    """The offsets of an append. `append_time` is -1 unless the topic uses log append time."""

    base_offset: int
    next_offset: int
    append_time: int


def batch_info(position: int, base_offset: int, header: BatchHeader) -> BatchInfo:
    """Returns a batch that has `base_offset` in its file, in less time than the constructor, which is always
    interpreted.
    """
    last = base_offset + header.last_offset_delta
    size = header.length + LOG_OVERHEAD
    return tuple.__new__(BatchInfo, (position, size, base_offset, last, header.max_timestamp, header.magic, header))


def appended(base_offset: int, next_offset: int, append_time: int) -> Appended:
    """Returns an `Appended` in less time than its constructor."""
    return tuple.__new__(Appended, (base_offset, next_offset, append_time))


def info_of(at: BatchAt, position: int) -> BatchInfo:
    return batch_info(position, at.header.base_offset, at.header)


def info_at(buf: Data, start: int, position: int) -> BatchInfo | None:
    """Returns the batch at `start`; None if the bytes cannot be a batch, or are too few."""
    left = len(buf) - start
    if left < LOG_OVERHEAD + 6:
        return None
    offset, length, _, magic, _ = _LEGACY.unpack_from(buf, start)
    if magic == MAGIC:
        if left < HEADER_SIZE or length < _LENGTH_MIN:
            return None
        return info_of(BatchAt(start, header_at(buf, start)), position)
    if magic not in (0, 1) or length < _LEGACY_LENGTH_MIN or left < LOG_OVERHEAD + _LEGACY_LENGTH_MIN:
        return None
    timestamp = struct.unpack_from(">q", buf, start + MAGIC_AT + 2)[0] if magic else NO_TIMESTAMP
    return BatchInfo(position, length + LOG_OVERHEAD, offset, offset, timestamp, magic, None)


def infos_of(data: Data) -> Iterator[BatchInfo]:
    """Yields the batches of `data`, which are complete."""
    position = 0
    while position < len(data):
        info = info_at(data, position, position)
        assert info is not None, f"no batch at byte {position}"
        yield info
        position += info.size


def passed_over(buf: Data, offset: int, end: int) -> tuple[int, int]:
    """Returns where the first batch of `buf` begins that does not end before `offset`, and how many batches precede it.

    Makes no object for those batches. Stops earlier: at bytes that cannot be a batch, at a batch that goes beyond `end`
    (from the beginning of `buf`, may be after its end), or at a header that is not wholly in `buf`.
    """
    bounds, last = _BOUNDS.unpack_from, len(buf) - _BOUNDS.size
    start = count = 0
    while start <= last:
        first, length, magic, delta = bounds(buf, start)
        if magic == MAGIC:
            if first + delta >= offset or length < _LENGTH_MIN:
                break
        elif magic not in (0, 1) or first >= offset or length < _LEGACY_LENGTH_MIN:
            break
        following = start + LOG_OVERHEAD + length
        if following > end:
            break
        start = following
        count += 1
    return start, count
