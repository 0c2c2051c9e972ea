"""Where the records of a batch are, with what compaction decides by: no record is made, and no value is copied.

`pieces` reads what `records.decode` reads, and refuses what that refuses. `copy_record` writes what
`records.put_record` would.
"""

from __future__ import annotations

from collections.abc import Iterator

from .compression import NONE, WHOLE_STEP_BYTES, openable_bytes
from .errors import MalformedMessage
from .opening import Source, pass_headers
from .records import (
    HEADER_SIZE,
    INT64_MIN,
    RECORD_BYTES_MIN,
    VARINT_BYTES_MAX,
    BatchAt,
    BatchHeader,
    check_end,
    int64,
    put_record,
    varint,
    varint_at,
    whole_records,
)

Span = tuple[bytes | None, int, int, int, int, int, int]
"""A record: its key, offset and timestamp, the size of its value (negative: it has none), where it begins, where the
length of its key is, and where it ends.
"""
Piece = tuple[bytes, list[Span]]
"""Consecutive records, and the bytes that they are in."""

PIECE_RECORDS = 4096


def pieces(buf: bytes, at: BatchAt) -> Iterator[Piece]:
    """Yields the records of a batch, while it is decompressed. Raises MalformedMessage."""
    header = at.header
    if header.codec != NONE:
        yield from _decompressed(buf, at)
        return
    pos, end, left = at.position + HEADER_SIZE, at.position + header.size, header.record_count
    while True:
        found, pos, _ = spans(buf, pos, end, header, min(left, PIECE_RECORDS))
        left -= len(found)
        yield buf, found
        if len(found) < PIECE_RECORDS:
            break
    check_end(header, header.record_count - left, end - pos)


def _decompressed(buf: bytes, at: BatchAt) -> Iterator[Piece]:
    header = at.header
    source = Source(buf, at, openable_bytes(header.size), WHOLE_STEP_BYTES)
    left = header.record_count
    source.more()
    while True:
        found, source.pos, stop = spans(source.data, source.pos, len(source.data), header, min(left, PIECE_RECORDS))
        left -= len(found)
        yield source.data, found
        missing = stop - source.pos
        if missing > WHOLE_STEP_BYTES:
            for _ in source.fill(missing):
                pass
            if source.left < missing:
                break
        elif left > 0 and len(found) == PIECE_RECORDS:
            continue
        elif (left <= 0 and source.left) or not source.more():
            break
    check_end(header, header.record_count - left, source.left)


def spans(data: bytes, pos: int, end: int, header: BatchHeader, count: int) -> tuple[list[Span], int, int]:
    """Returns at most `count` complete records between `pos` and `end`, where the next one begins, and where it ends
    (0: its size is incomplete). Raises MalformedMessage for bytes that cannot be a record.

    Numbers of one and two bytes are read here: a call for each would take most of the time.
    """
    append_time = header.max_timestamp if header.is_append_time else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    found: list[Span] = []
    start = pos
    try:
        while pos < end and len(found) < count:
            n, pos = data[pos], pos + 1
            if n > 0x7F:
                more = data[pos]
                n, pos = (n & 0x7F | more << 7, pos + 1) if more < 0x80 else _unsigned_at(data, pos - 1)
            stop = pos + (n >> 1)
            if n & 1 or n >> 1 < RECORD_BYTES_MIN - 1:
                raise MalformedMessage("records", f"a record of {(n >> 1) ^ -(n & 1)} bytes")
            if stop > end:
                return found, start, stop
            n, pos = data[pos + 1], pos + 2  # the byte after the attributes
            if n > 0x7F:
                n, pos = _unsigned_at(data, pos - 1)
            time = base_timestamp + ((n >> 1) ^ -(n & 1)) if append_time is None else append_time
            n, pos = data[pos], pos + 1
            if n > 0x7F:
                more = data[pos]
                n, pos = (n & 0x7F | more << 7, pos + 1) if more < 0x80 else _unsigned_at(data, pos - 1)
            offset, place = base_offset + ((n >> 1) ^ -(n & 1)), pos
            n, pos = data[pos], pos + 1
            if n > 0x7F:
                n, pos = _unsigned_at(data, place)
            key = None
            if not n & 1:
                key = data[pos : pos + (n >> 1)]
                pos += n >> 1
                if pos > stop:
                    raise MalformedMessage("records", f"a key ends at {pos}, its record at {stop}")
            n, pos = data[pos], pos + 1
            if n > 0x7F:
                more = data[pos]
                n, pos = (n & 0x7F | more << 7, pos + 1) if more < 0x80 else _unsigned_at(data, pos - 1)
            value_size = (n >> 1) ^ -(n & 1)
            if value_size > 0:
                pos += value_size
            if pos >= stop:
                raise MalformedMessage("records", f"a value ends at {pos}, its record at {stop}")
            if data[pos] or pos + 1 != stop:
                pos = pass_headers(data, pos, stop)
                if pos != stop:
                    raise MalformedMessage("records", f"a record ends at {pos} instead of {stop}")
            time = time if INT64_MIN <= time < -INT64_MIN else int64(time)
            found.append((key, offset, time, value_size, start, place, stop))
            start = pos = stop
    except IndexError:
        if end - start >= VARINT_BYTES_MAX:  # more than a record's size is missing
            raise MalformedMessage("records", "records end early") from None
        return found, start, 0
    return found, pos, 0


def _unsigned_at(data: bytes, pos: int) -> tuple[int, int]:
    """Returns a varint before zigzag, and the position after it. Raises IndexError or MalformedMessage."""
    number, pos = varint_at(data, pos)
    return (number << 1 if number >= 0 else ~number << 1 | 1), pos


def copy_record(body: bytearray, data: bytes, span: Span, header: BatchHeader, base_timestamp: int) -> None:
    """Appends a record to `body` as `records.put_record` does, with another base timestamp. A copy is enough for one
    whose lengths have no more bytes than they need, and which has no headers.
    """
    key, offset, timestamp, value_size, start, place, stop = span
    if key is None:
        size = 1 if data[place] == 1 else 0
    else:
        size = len(varint(len(key))) + len(key)
    size += len(varint(value_size)) + max(value_size, 0) + 1
    if size != stop - place or value_size < -1:
        (record,), _, _ = whole_records(data, start, header, 1)
        put_record(body, record, timestamp - base_timestamp, offset - header.base_offset)
        return
    first = b"\0" + varint(timestamp - base_timestamp) + varint(offset - header.base_offset)
    body += varint(len(first) + size)
    body += first
    body += data[place:stop]
