"""Record batches, format version 2: the header of 61 bytes, the records in it, and their checks.

A log is a sequence of batches. The broker reads headers (`header_at`) and leaves the records closed wherever it can;
`decode` opens them, `encode` writes a batch. Version 0 and 1 message sets are in `legacy`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from crc32c import crc32c

from . import compression
from .errors import MalformedMessage

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size  # 61
LOG_OVERHEAD = 12  # base offset and length, before the bytes that the length counts
CRC_START = 21  # the CRC covers everything from the attributes on
MAGIC = 2

CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08  # set: log append time
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40

NO_PRODUCER_ID = NO_TIMESTAMP = NO_SEQUENCE = NO_EPOCH = -1

_OFFSET_AND_LENGTH = struct.Struct(">qi")
_OFFSET = struct.Struct(">q")
_EPOCH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES_ETC = struct.Struct(">hiqqqhii")


class BatchHeader(NamedTuple):
    """The fields of a batch's header, in their order on the wire."""

    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_MASK)

    @property
    def is_append_time(self) -> bool:
        return bool(self.attributes & TIMESTAMP_TYPE_MASK)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers of a compacted batch may go; it takes the place of the base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_MASK else None

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)


def increment_sequence(sequence: int, by: int) -> int:
    """A producer's sequence `by` records later; after 2^31 - 1 comes 0."""
    return (sequence + by) & 0x7FFFFFFF


@dataclass(slots=True)
class Record:
    """One record. `headers` are pairs of a name and a value that may be None."""

    key: bytes | None = None
    value: bytes | None = None
    timestamp: int = NO_TIMESTAMP
    offset: int = 0
    headers: Sequence[tuple[str, bytes | None]] = field(default=())


class BatchAt(NamedTuple):
    """A batch's header, and where the batch lies."""

    position: int
    header: BatchHeader


def header_at(buf: Any, position: int = 0) -> BatchHeader:
    """The header at `position`; MalformedMessage where there are too few bytes for one. Nothing is checked."""
    try:
        return BatchHeader._make(HEADER.unpack_from(buf, position))
    except struct.error:
        raise MalformedMessage("records", f"a batch header of {HEADER_SIZE} bytes in {len(buf) - position}") from None


def batches(buf: Any, position: int = 0) -> Iterator[BatchAt]:
    """The complete batches from `position` on; what follows the last complete one is left."""
    end = len(buf)
    while position + HEADER_SIZE <= end:
        header = BatchHeader._make(HEADER.unpack_from(buf, position))
        if header.length < HEADER_SIZE - LOG_OVERHEAD or position + header.size > end:
            return
        yield BatchAt(position, header)
        position += header.size


def computed_crc(buf: Any, position: int, size: int) -> int:
    crc: int = crc32c(memoryview(buf)[position + CRC_START : position + size])
    return crc


def set_offset_and_epoch(buf: Any, position: int, base_offset: int, leader_epoch: int) -> None:
    """Writes the two fields that a leader assigns and that the CRC does not cover."""
    _OFFSET.pack_into(buf, position, base_offset)
    _EPOCH.pack_into(buf, position + LOG_OVERHEAD, leader_epoch)


def set_max_timestamp(buf: Any, position: int, header: BatchHeader, append_time: bool, timestamp: int) -> None:
    """Writes timestamp type and largest timestamp, and the CRC that follows from them."""
    attributes = header.attributes & ~TIMESTAMP_TYPE_MASK | (TIMESTAMP_TYPE_MASK if append_time else 0)
    struct.pack_into(">h", buf, position + 21, attributes)
    struct.pack_into(">q", buf, position + 35, timestamp)
    _CRC.pack_into(buf, position + 17, computed_crc(buf, position, header.size))


# records in a batch


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    n = shift = 0
    while True:
        b = data[pos]
        pos += 1
        n |= (b & 0x7F) << shift
        if b < 0x80:
            return (n >> 1) ^ -(n & 1), pos
        shift += 7
        if shift > 63:
            raise MalformedMessage("records", "varint of more than ten bytes")


def _long_varint(n: int) -> bytes:
    out = bytearray()
    n = (n << 1) ^ (n >> 63)
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


_VARINTS = [_long_varint(n) for n in range(2048)]
_NULL = _long_varint(-1)
_FEW = 64  # records whose beginnings are kept
RECORD_START_MAX = 12  # bytes of `starts_of`: a length and a number of five bytes each, and two


def varint(n: int) -> bytes:
    """A number as records have it: zigzag, seven bits a byte."""
    return _VARINTS[n] if 0 <= n < 2048 else _long_varint(n)


def decode(buf: Any, at: BatchAt, limit: int = compression.DECOMPRESSED_BYTES_MAX) -> list[Record]:
    """The records of a batch, with absolute offsets and timestamps.

    Raises MalformedMessage when the data is not what the header says, DecompressedTooLarge beyond `limit` bytes.
    """
    position, header = at
    body = memoryview(buf)[position + HEADER_SIZE : position + header.size]
    data = compression.decompress(header.codec, body, limit)
    try:
        return _decode_body(data, header)
    except (IndexError, UnicodeDecodeError) as error:
        raise MalformedMessage("records", f"records end early: {error}") from None


def _decode_body(data: bytes, header: BatchHeader) -> list[Record]:
    if header.record_count < 0 or header.record_count * 7 > len(data):  # a record takes seven bytes at least
        raise MalformedMessage("records", f"{header.record_count} records in {len(data)} bytes")
    append_time = header.max_timestamp if header.is_append_time else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    records, pos, end = [], 0, len(data)
    for _ in range(header.record_count):
        size, pos = _varint(data, pos)
        stop = pos + size
        if size < 0 or stop > end:
            raise MalformedMessage("records", f"a record of {size} bytes in {end - pos}")
        pos += 1  # record attributes, unused
        timestamp, pos = _varint(data, pos)
        offset, pos = _varint(data, pos)
        key, pos = _field(data, pos, stop)
        value, pos = _field(data, pos, stop)
        n, pos = _varint(data, pos)
        if n < 0 or n * 2 > stop - pos:
            raise MalformedMessage("records", f"{n} headers in {stop - pos} bytes")
        headers = ()
        if n:
            headers, pos = _headers(data, pos, stop, n)
        if pos != stop:
            raise MalformedMessage("records", f"a record ends at {pos} instead of {stop}")
        time = base_timestamp + timestamp if append_time is None else append_time
        records.append(Record(key, value, time, base_offset + offset, headers))
    if pos != end:
        raise MalformedMessage("records", f"{end - pos} bytes after the last record")
    return records


def pairs(buf: Any, at: BatchAt, limit: int = compression.DECOMPRESSED_BYTES_MAX) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of each record of a batch, and no more: what a loader of a million wants. MalformedMessage."""
    position, header = at
    data = compression.decompress(header.codec, memoryview(buf)[position + HEADER_SIZE : position + header.size], limit)
    found, pos, base = [], 0, header.base_offset
    try:
        for _ in range(header.record_count):
            size, pos = _varint(data, pos)
            stop = pos + size
            pos += 1
            delta = data[pos]
            pos = pos + 1 if delta < 0x80 else _varint(data, pos)[1]  # the timestamp
            delta = data[pos]
            if delta < 0x80:
                delta, pos = delta >> 1, pos + 1
            else:
                delta, pos = _varint(data, pos)
            key, pos = _field(data, pos, stop)
            value, pos = _field(data, pos, stop)
            found.append((base + delta, key, value))
            pos = stop
    except IndexError as error:
        raise MalformedMessage("records", f"records end early: {error}") from None
    return found


def _field(data: bytes, pos: int, stop: int) -> tuple[bytes | None, int]:
    n, pos = _varint(data, pos)
    if n < 0:
        return None, pos
    if pos + n > stop:
        raise MalformedMessage("records", f"a field of {n} bytes in {stop - pos}")
    return data[pos : pos + n], pos + n


def _headers(data: bytes, pos: int, stop: int, n: int) -> tuple[Any, int]:
    headers = []
    for _ in range(n):
        name, pos = _field(data, pos, stop)
        if name is None:
            raise MalformedMessage("records", "a header without a name")
        value, pos = _field(data, pos, stop)
        headers.append((str(name, "utf-8", "replace"), value))
    return headers, pos


@dataclass(slots=True)
class Template:
    """What a batch says besides its records."""

    base_offset: int = 0
    leader_epoch: int = 0
    codec: int = compression.NONE
    append_time: int | None = None  # the largest timestamp where the log's time counts
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    base_sequence: int = NO_SEQUENCE
    transactional: bool = False
    control: bool = False
    level: int | None = None
    last_offset_delta: int | None = None  # where compaction kept less than it read
    delete_horizon_ms: int | None = None


def encode(records: Iterable[Record], template: Template | None = None) -> bytearray:
    """A batch of `records`. Their offsets count from the first one's unless they are all zero."""
    t = template or Template()
    records = list(records)
    keep_offsets = any(r.offset for r in records)
    base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    if t.delete_horizon_ms is not None:
        base_timestamp = t.delete_horizon_ms
    body = bytearray()
    last_delta = 0
    for index, record in enumerate(records):
        last_delta = record.offset - t.base_offset if keep_offsets else index
        put_record(body, record, record.timestamp - base_timestamp, last_delta)
    if t.last_offset_delta is not None:
        last_delta = t.last_offset_delta
    largest = max((r.timestamp for r in records), default=NO_TIMESTAMP) if t.append_time is None else t.append_time
    return batch_of(body, t, len(records), last_delta, base_timestamp, largest)


def batch_of(body: bytearray, t: Template, count: int, last_delta: int, base_timestamp: int, largest: int) -> bytearray:
    """A batch of records that are encoded already (`put_record`)."""
    attributes = (
        t.codec
        | (TIMESTAMP_TYPE_MASK if t.append_time is not None else 0)
        | (TRANSACTIONAL_MASK if t.transactional else 0)
        | (CONTROL_MASK if t.control else 0)
        | (DELETE_HORIZON_MASK if t.delete_horizon_ms is not None else 0)
    )
    packed = compression.compress(t.codec, bytes(body), t.level)
    tail = _ATTRIBUTES_ETC.pack(attributes, last_delta, base_timestamp, largest, t.producer_id, t.producer_epoch, t.base_sequence, count)
    out = bytearray(_OFFSET_AND_LENGTH.pack(t.base_offset, HEADER_SIZE - LOG_OVERHEAD + len(packed)))
    out += struct.pack(">ibI", t.leader_epoch, MAGIC, 0)
    out += tail
    out += packed
    _CRC.pack_into(out, 17, computed_crc(out, 0, len(out)))
    return out


def put_record(body: bytearray, record: Record, timestamp_delta: int, offset_delta: int) -> None:
    """Adds a record to those of a batch."""
    parts = [b"\0", varint(timestamp_delta), varint(offset_delta)]
    _add_field(parts, record.key)
    _add_field(parts, record.value)
    parts.append(varint(len(record.headers)))
    for name, value in record.headers:
        _add_field(parts, name.encode())
        _add_field(parts, value)
    packed = b"".join(parts)
    body += varint(len(packed))
    body += packed


def starts_of(size: int, first: int, count: int) -> list[bytes]:
    """How records begin that bear their batch's time, from its record number `first` on: with their length, attributes, time and number.

    `size`: the bytes of each from its key's length to its end. For those who write many records of one size.
    """
    if first + count <= _FEW:
        return _first_starts(size)[first : first + count]
    return [_start_of(size, index) for index in range(first, first + count)]


@lru_cache(256)
def _first_starts(size: int) -> list[bytes]:
    return [_start_of(size, index) for index in range(_FEW)]


def _start_of(size: int, index: int) -> bytes:
    start = b"\0\0" + varint(index)
    return varint(len(start) + size) + start


def _add_field(parts: list[bytes], field: bytes | None) -> None:
    if field is None:
        parts.append(_NULL)
    else:
        parts.append(varint(len(field)))
        parts.append(field)
