"""Record batches, format version 2: the header of 61 bytes, the records in it, and their checks.

A log is a sequence of batches. The broker reads headers (`header_at`) and avoids decompressing records; `decode` opens
them, `encode` writes a batch. Message sets of versions 0 and 1 are in `legacy`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from . import compression
from .buffers import Data, WritableData
from .checksum import crc32c
from .errors import MalformedMessage
from .varints import uvarint_to

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size  # 61
LOG_OVERHEAD = 12  # base offset and length, before the bytes that the length counts
MAGIC_AT = 16  # where batches, and entries of message sets, have their version
CRC_START = 21  # the CRC covers everything from the attributes on
MAGIC = 2

CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08  # set: log append time
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40
ATTRIBUTES_MASK = 0x7F

NO_PRODUCER_ID = NO_TIMESTAMP = NO_SEQUENCE = NO_EPOCH = -1
PRODUCER_EPOCH_MAX = 2**15 - 1

_UP_TO_CRC = struct.Struct(">qiibI")
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
        """Size of the whole batch in bytes."""
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
        """When tombstones and markers of a compacted batch may be removed;
        stored in the place of the base timestamp (KIP-534).
        """
        return self.base_timestamp if self.attributes & DELETE_HORIZON_MASK else None

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)


def increment_sequence(sequence: int, by: int) -> int:
    """Returns a producer's sequence `by` records later; 0 follows 2^31 - 1."""
    return (sequence + by) & 0x7FFFFFFF


Headers = Sequence[tuple[str, bytes | None]]  # names and values


@dataclass(slots=True)
class Record:
    """One record. `headers` are pairs of a name and a value that may be None."""

    key: bytes | None = None
    value: bytes | None = None
    timestamp: int = NO_TIMESTAMP
    offset: int = 0
    headers: Headers = field(default=())


class BatchAt(NamedTuple):
    """A batch's header and position."""

    position: int
    header: BatchHeader


def header_at(buf: Data, position: int = 0) -> BatchHeader:
    """Returns the header at `position`, unchecked. Raises MalformedMessage if there are too few bytes."""
    try:
        return tuple.__new__(BatchHeader, HEADER.unpack_from(buf, position))  # twice as fast as `_make`
    except struct.error:
        raise MalformedMessage("records", f"a batch header of {HEADER_SIZE} bytes in {len(buf) - position}") from None


def batches(buf: Data, position: int = 0) -> Iterator[BatchAt]:
    """Yields the complete batches from `position` on; ignores what follows the last complete one."""
    end = len(buf)
    while position + HEADER_SIZE <= end:
        header = BatchHeader._make(HEADER.unpack_from(buf, position))
        if header.length < HEADER_SIZE - LOG_OVERHEAD or position + header.size > end:
            return
        yield BatchAt(position, header)
        position += header.size


def computed_crc(buf: Data, position: int, size: int) -> int:
    view = buf if isinstance(buf, memoryview) else memoryview(buf)
    crc: int = crc32c(view[position + CRC_START : position + size])
    return crc


def set_offset_and_epoch(buf: WritableData, position: int, base_offset: int, leader_epoch: int) -> None:
    """Writes the two fields that a leader assigns and that the CRC does not cover."""
    _OFFSET.pack_into(buf, position, base_offset)
    _EPOCH.pack_into(buf, position + LOG_OVERHEAD, leader_epoch)


def set_max_timestamp(buf: WritableData, position: int, header: BatchHeader, append_time: bool, timestamp: int) -> None:
    """Writes timestamp type, largest timestamp and the resulting CRC; clears undefined attributes, as Kafka does."""
    attributes = header.attributes & ATTRIBUTES_MASK & ~TIMESTAMP_TYPE_MASK | (
        TIMESTAMP_TYPE_MASK if append_time else 0
    )
    struct.pack_into(">h", buf, position + 21, attributes)
    struct.pack_into(">q", buf, position + 35, timestamp)
    _CRC.pack_into(buf, position + 17, computed_crc(buf, position, header.size))


# records in a batch


INT64_MIN = -(1 << 63)


def int64(n: int) -> int:
    """Truncates a number to 64 bits."""
    return ((n - INT64_MIN) & 0xFFFFFFFFFFFFFFFF) + INT64_MIN


def varint_at(data: bytes, pos: int) -> tuple[int, int]:
    """Returns a varint of a record (`varint`), and the position after it. Raises IndexError or MalformedMessage."""
    n = shift = 0
    while True:
        b = data[pos]
        pos += 1
        n |= (b & 0x7F) << shift
        if b < 0x80:
            n &= 0xFFFFFFFFFFFFFFFF
            return (n >> 1) ^ -(n & 1), pos
        shift += 7
        if shift > 63:
            raise MalformedMessage("records", "varint of more than ten bytes")


def _long_varint(n: int) -> bytes:
    return unsigned_varint((n << 1) ^ (n >> 63))


def unsigned_varint(n: int) -> bytes:
    """Encodes a number as in flexible messages: seven bits per byte."""
    out = bytearray()
    uvarint_to(out, n)
    return bytes(out)


_VARINTS = [_long_varint(n) for n in range(2048)]
_NULL = _long_varint(-1)
RECORD_BYTES_MIN = 7  # size, attributes, timestamp, offset delta, sizes of key and value, number of headers
VARINT_BYTES_MAX = 10
_FEW = 64  # records whose first bytes are cached, and as many offset deltas differ in the first byte only
RECORD_START_MAX = 12  # bytes of `starts_of`: a length and an offset delta of five bytes each, and two more


def varint(n: int) -> bytes:
    """Encodes a number as in records: zigzag, seven bits per byte."""
    return _VARINTS[n] if 0 <= n < 2048 else _long_varint(n)


def decode(buf: Data, at: BatchAt, limit: int | None = None) -> list[Record]:
    """Returns all records of a batch, with absolute offsets and timestamps; `opening.contents` does so in steps.

    `limit`: how many bytes the batch may hold; by default in proportion to its size. Raises MalformedMessage if the
    data does not match the header, DecompressedTooLarge beyond the limit.
    """
    header, data = at.header, _decompressed(buf, at, limit)
    found, pos, _ = whole_records(data, 0, header, header.record_count)
    check_end(header, len(found), len(data) - pos)
    return found


def _decompressed(buf: Data, at: BatchAt, limit: int | None) -> bytes:
    position, header = at
    body = memoryview(buf)[position + HEADER_SIZE : position + header.size]
    return compression.decompress(
        header.codec, body, compression.openable_bytes(header.size) if limit is None else limit
    )


def check_end(header: BatchHeader, count: int, rest: int) -> None:
    """Raises MalformedMessage unless the batch had as many records as its header claims, and no bytes after them."""
    if count != header.record_count:
        raise MalformedMessage("records", f"{count} records instead of {header.record_count}")
    if rest:
        raise MalformedMessage("records", f"{rest} bytes after the last record")


def whole_records(data: bytes, pos: int, header: BatchHeader, count: int) -> tuple[list[Record], int, int]:
    """Returns at most `count` complete records from `pos` on, where the next one begins, and where it ends (0: its size
    is incomplete).

    Raises MalformedMessage for bytes that cannot be a record.
    """
    append_time = header.max_timestamp if header.is_append_time else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    found: list[Record] = []
    start, end = pos, len(data)
    try:
        while pos < end and len(found) < count:
            size, pos = varint_at(data, pos)
            stop = pos + size
            if size < RECORD_BYTES_MIN - 1:
                raise MalformedMessage("records", f"a record of {size} bytes")
            if stop > end:
                return found, start, stop
            pos += 1  # record attributes, unused
            timestamp, pos = varint_at(data, pos)
            offset, pos = varint_at(data, pos)
            key, pos = _field(data, pos, stop)
            value, pos = _field(data, pos, stop)
            n, pos = varint_at(data, pos)
            if n < 0 or n * 2 > stop - pos:
                raise MalformedMessage("records", f"{n} headers in {stop - pos} bytes")
            headers: Headers = ()
            if n:
                headers, pos = _headers(data, pos, stop, n)
            if pos != stop:
                raise MalformedMessage("records", f"a record ends at {pos} instead of {stop}")
            time = base_timestamp + timestamp if append_time is None else append_time
            if not INT64_MIN <= time < -INT64_MIN:
                time = int64(time)
            found.append(Record(key, value, time, base_offset + offset, headers))
            start = pos
    except IndexError:
        if end - start >= VARINT_BYTES_MAX:  # more than a record's size is missing
            raise MalformedMessage("records", "records end early") from None
        return found, start, 0
    return found, pos, 0


def pairs(buf: Data, at: BatchAt, limit: int | None = None) -> list[tuple[int, bytes | None, bytes | None]]:
    """Returns only offset, key and value of each record of a batch,
    for loading many records. Raises MalformedMessage.
    """
    header, data = at.header, _decompressed(buf, at, limit)
    found, pos, base = [], 0, header.base_offset
    try:
        for _ in range(header.record_count):
            size, pos = varint_at(data, pos)
            stop = pos + size
            if size < RECORD_BYTES_MIN - 1:
                raise MalformedMessage("records", f"a record of {size} bytes")
            pos += 1
            delta = data[pos]
            pos = pos + 1 if delta < 0x80 else varint_at(data, pos)[1]  # the timestamp
            delta = data[pos]
            if delta < 0x80:
                delta, pos = delta >> 1, pos + 1
            else:
                delta, pos = varint_at(data, pos)
            key, pos = _field(data, pos, stop)
            value, pos = _field(data, pos, stop)
            found.append((base + delta, key, value))
            pos = stop
    except IndexError as error:
        raise MalformedMessage("records", f"records end early: {error}") from None
    return found


def _field(data: bytes, pos: int, stop: int) -> tuple[bytes | None, int]:
    n, pos = varint_at(data, pos)
    if n < 0:
        return None, pos
    if pos + n > stop:
        raise MalformedMessage("records", f"a field of {n} bytes in {stop - pos}")
    return data[pos : pos + n], pos + n


def _headers(data: bytes, pos: int, stop: int, n: int) -> tuple[Headers, int]:
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
    """The fields of a batch besides its records."""

    base_offset: int = 0
    leader_epoch: int = 0
    codec: int = compression.NONE
    append_time: int | None = None  # the largest timestamp if the log append time counts
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    base_sequence: int = NO_SEQUENCE
    transactional: bool = False
    control: bool = False
    level: int | None = None
    last_offset_delta: int | None = None  # set if compaction removed records from the batch
    delete_horizon_ms: int | None = None


def encode(records: Iterable[Record], template: Template | None = None) -> bytearray:
    """Encodes a batch of `records`. Offset deltas count from the first record's offset, unless all offsets are zero."""
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
    """Makes a batch of records that are already encoded (`put_record`)."""
    attributes = (
        t.codec
        | (TIMESTAMP_TYPE_MASK if t.append_time is not None else 0)
        | (TRANSACTIONAL_MASK if t.transactional else 0)
        | (CONTROL_MASK if t.control else 0)
        | (DELETE_HORIZON_MASK if t.delete_horizon_ms is not None else 0)
    )
    packed = body if t.codec == compression.NONE else compression.compress(t.codec, bytes(body), t.level)
    length = HEADER_SIZE - LOG_OVERHEAD + len(packed)
    out = bytearray(_UP_TO_CRC.pack(t.base_offset, length, t.leader_epoch, MAGIC, 0))
    out += _ATTRIBUTES_ETC.pack(
        attributes, last_delta, base_timestamp, largest, t.producer_id, t.producer_epoch, t.base_sequence, count
    )
    out += packed
    _CRC.pack_into(out, 17, computed_crc(out, 0, len(out)))
    return out


def put_record(body: bytearray, record: Record, timestamp_delta: int, offset_delta: int) -> None:
    """Appends an encoded record to `body`."""
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
    """Returns the first bytes (length, attributes, timestamp, offset delta) of records that have their batch's
    timestamp, from record number `first` on.

    `size`: the bytes of each record from the length of its key to its end.
    For callers that write many records of one size.
    """
    if first + count <= _FEW:
        return _first_starts(size)[first : first + count]
    row, skipped = divmod(first, _FEW)
    starts = [] if row else _first_starts(size).copy()
    heads: list[bytes] = []
    for high in map(unsigned_varint, range(row or 1, -(-(first + count) // _FEW))):
        length = varint(size + 3 + len(high))  # of an offset delta, the first byte has six bits and a sign
        if not heads or not heads[0].startswith(length):
            heads = [length + b"\0\0" + bytes((0x80 | low << 1,)) for low in range(_FEW)]
        starts += [head + high for head in heads]
    return starts[skipped : skipped + count]


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
