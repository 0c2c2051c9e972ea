"""Converts record batches to message sets of versions 0 and 1 for old consumers, and message sets to batches.

Both are generators. Each item is the work of one step: None, or a function that takes longer, does not use the loop and
whose result is sent back. A batch becomes one compressed message, or a message for each of its records; headers,
producer ids and control batches are left out, as in Kafka. The messages of one Produce request for a partition become
one batch. Records of one shape that follow each other are converted as a run (`runs`).

Memory is bounded by what one batch may hold (`compression.openable_bytes`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import TypeVar

from . import compression, legacy, lz4_frames, records, runs
from .buffers import Data
from .compression import CHUNK_BYTES, LZ4, NONE, ZSTD, Undecodable, openable_bytes
from .errors import ApiError, Errors, MalformedMessage
from .plain_messages import NewBatch, put_plain
from .records import (
    HEADER_SIZE,
    INT64_MIN,
    NO_TIMESTAMP,
    RECORD_BYTES_MIN,
    VARINT_BYTES_MAX,
    BatchAt,
    BatchHeader,
    int64,
    varint_at,
)

T = TypeVar("T")
Packed = bytes | bytearray
Work = Generator[Callable[[], Packed] | None, Packed | None, T]
STEP_BYTES = 64 << 10
PACKED_AT_ONCE_BYTES = 1 << 16
KNOWN_BYTES_MIN = 18  # the bytes of a batch or an entry that are read before it is known what it is
_ENTRY = struct.Struct(">qiI")  # offset, size, checksum
_TIMED = struct.Struct(">bbq")
_SIZE = struct.Struct(">i")
_SIZE_AND_MAGIC = struct.Struct(">8xi4xb")  # of a batch or an entry
_OVERHEAD = legacy.ENTRY.size
_V1_KEY_AT = 26  # in an entry of version 1
_NULL = b"\xff\xff\xff\xff"
_RUN_SHORT = 8  # a shorter run does not pay
_BETWEEN_RUNS_MAX = 64  # records that are read one by one where the last runs were short
_APPEND_TIME = legacy.APPEND_TIME_MASK


# down


def older_set(buf: Data, magic: int, first_offset: int, bytes_max: int) -> Work[tuple[list[bytes], int]]:
    """Converts what a log has to a message set of version `magic`, batch by batch until it has `bytes_max` bytes.
    Returns (its bytes, batch by batch; the offset after it).

    Messages of logs that are older than record batches stay as they are, or are converted to version 0.

    Raises as `older` does.
    """
    made, made_bytes, position, end, worked = list[bytes](), 0, 0, first_offset, 0
    while position + KNOWN_BYTES_MIN <= len(buf) and made_bytes < bytes_max:
        size = int.from_bytes(buf[position + 8 : position + 12], "big") + _OVERHEAD
        if position + size > len(buf):
            break
        if buf[position + records.MAGIC_AT] == records.MAGIC:
            at = BatchAt(position, records.header_at(buf, position))
            made.append((yield from older(buf, at, magic, first_offset)))
            end = at.header.next_offset
        else:
            entry = memoryview(buf)[position : position + size]
            made.append((yield from _as_old(entry, magic)))
            end = int.from_bytes(entry[:8], "big") + 1
        made_bytes += len(made[-1])
        position += size
        worked += size
        if worked >= STEP_BYTES:
            worked = 0
            yield None
    return made, end


def is_as_old(buf: Data, magic: int) -> bool:
    """Whether everything that begins in `buf`, which has whole batches or entries up to the last, has at most version
    `magic`.
    """
    position, end, found = 0, len(buf) - records.MAGIC_AT, _SIZE_AND_MAGIC.unpack_from
    while position < end:
        size, version = found(buf, position)
        if version > magic or size < 0:
            return False
        position += size + _OVERHEAD
    return True


def _as_old(entry: memoryview, magic: int) -> Work[bytes]:
    """Returns an entry of version 0 or 1, converted if its version is above `magic`."""
    if entry[records.MAGIC_AT] <= magic:
        return bytes(entry)
    if not entry[records.MAGIC_AT + 1] & records.CODEC_MASK:
        body = b"\0\0" + entry[_V1_KEY_AT:]
        return _ENTRY.pack(int.from_bytes(entry[:8], "big"), len(body) + 4, zlib.crc32(body)) + body
    messages = []
    for some in legacy.contents(entry):
        messages += [replace(message, magic=magic, append_time=False) for message in some]
        yield None
    return legacy.encode(messages, entry[records.MAGIC_AT + 1] & records.CODEC_MASK)


def older(buf: Data, at: BatchAt, magic: int, first_offset: int) -> Work[bytes]:
    """Converts a batch to a message set of version `magic`: returns its bytes. Without compression it begins with the
    message at `first_offset`; a compressed message is whole.

    Raises MalformedMessage if the bytes are not what the header claims, and ApiError(UNSUPPORTED_COMPRESSION_TYPE) for
    zstd.
    """
    header = at.header
    if header.is_control:
        return b""
    if header.codec == ZSTD:
        raise ApiError(Errors.UNSUPPORTED_COMPRESSION_TYPE)
    made = _Older(header, magic, first_offset)
    body = memoryview(buf)[at.position + HEADER_SIZE : at.position + header.size]
    parts: list[bytes] = []
    held = needed = 0
    for chunk in _chunks(header, body):
        parts.append(chunk)
        held += len(chunk)
        if held < needed:
            yield None
            continue
        data = b"".join(parts)
        pos, needed = made.take(data)
        parts, held = [data[pos:]], len(data) - pos
        if len(data) >= STEP_BYTES:
            yield None
    records.check_end(header, made.count, held)
    messages = b"".join(made.out)
    if header.codec == NONE or not messages:
        return messages
    is_long = len(messages) > PACKED_AT_ONCE_BYTES
    packed = (yield lambda: made.packed(messages)) if is_long else made.packed(messages)
    assert packed is not None
    return bytes(packed)


def _chunks(header: BatchHeader, body: memoryview) -> Iterable[bytes]:
    if header.codec == NONE and len(body) <= STEP_BYTES:
        return (bytes(body),)
    return compression.chunks(header.codec, body, openable_bytes(header.size), STEP_BYTES)


class _Older:
    """The messages of a batch so far."""

    __slots__ = ("between_runs", "count", "first_offset", "header", "largest", "last", "magic", "out", "since")

    def __init__(self, header: BatchHeader, magic: int, first_offset: int) -> None:
        self.header = header
        self.magic = magic
        # the offsets of messages in a compressed message of version 1 count from its first one
        self.since: int | None = None if header.codec != NONE and magic else 0
        self.first_offset = first_offset if header.codec == NONE else INT64_MIN
        self.out: list[bytes] = []
        self.count = 0
        self.last = header.base_offset
        self.largest = NO_TIMESTAMP
        self.between_runs = 1

    def take(self, data: bytes) -> tuple[int, int]:
        """Converts the complete records of `data`. Returns where the first incomplete one begins, and how many bytes it
        has, if that is known.
        """
        header, magic, out, pos, end = self.header, self.magic, self.out, 0, len(data)
        base_offset, base_time, wanted = header.base_offset, header.base_timestamp, header.record_count
        append_time = header.max_timestamp if header.is_append_time else None
        attributes = _APPEND_TIME if append_time is not None else 0
        crc32, pack, size_of, pack_timed, first = zlib.crc32, _ENTRY.pack, _SIZE.pack, _TIMED.pack, self.first_offset
        start = pos
        if self.since is not None and first <= base_offset:
            pos = start = self._run(data, pos)
        until_run = self.between_runs
        try:
            while pos < end and self.count < wanted:
                b, c = data[pos], data[pos + 1]  # the usual lengths of numbers avoid a call, which costs more
                size, pos = (b >> 1 & 63 | c << 6, pos + 2) if b > 127 > c and not b & 1 else varint_at(data, pos)
                stop = pos + size
                if size < RECORD_BYTES_MIN - 1:
                    raise MalformedMessage("records", f"a record of {size} bytes")
                if stop > end:
                    return start, stop - start
                b = data[pos + 1]
                time, pos = (b >> 1 ^ -(b & 1), pos + 2) if b < 128 else varint_at(data, pos + 1)
                b, c = data[pos], data[pos + 1]
                delta, pos = (b >> 1 & 63 | c << 6, pos + 2) if b > 127 > c and not b & 1 else varint_at(data, pos)
                b = data[pos]
                length, pos = (b >> 1 ^ -(b & 1), pos + 1) if b < 128 else varint_at(data, pos)
                key = _NULL if length < 0 else size_of(length) + data[pos : pos + length]
                pos += max(0, length)
                b, c = data[pos], data[pos + 1]
                length, pos = (b >> 1 & 63 | c << 6, pos + 2) if b > 127 > c and not b & 1 else varint_at(data, pos)
                value = _NULL if length < 0 else size_of(length) + data[pos : pos + length]
                pos += max(0, length)
                if pos >= stop:
                    raise MalformedMessage("records", f"a field goes beyond its record, which ends at {stop}")
                offset = base_offset + delta
                if offset >= first:
                    if magic:
                        time = base_time + time if append_time is None else append_time
                        if not INT64_MIN <= time < -INT64_MIN:
                            time = int64(time)
                        self.largest = max(self.largest, time)
                        body = pack_timed(1, attributes, time) + key + value
                    else:
                        body = b"\0\0" + key + value
                    if self.since is None:
                        self.since = offset
                    out.append(pack(offset - self.since, len(body) + 4, crc32(body)) + body)
                    self.last = offset
                    until_run -= 1
                self.count += 1
                pos = start = stop  # headers are left out
                if not until_run:
                    pos = start = self._run(data, stop)
                    until_run = self.between_runs
        except (IndexError, struct.error) as error:  # struct.error: a length or an offset is beyond its range
            if isinstance(error, struct.error) or end - start >= VARINT_BYTES_MAX:
                raise MalformedMessage("records", "records end early, or a number is beyond its range") from None
        return start, 0

    def _run(self, data: bytes, start: int) -> int:
        """Converts the records from `start` on as a run. Returns the position after them."""
        header, since = self.header, self.since
        assert since is not None
        append_time = header.max_timestamp if header.is_append_time else None
        attributes = _APPEND_TIME if append_time is not None else 0
        target = runs.Target(
            self.magic, attributes, header.base_offset, since, self.first_offset, header.base_timestamp, append_time
        )
        run = runs.convert(self.out, data, start, header.record_count - self.count, target)
        if run.number:
            self.count += run.number
            self.last = run.last
            self.largest = max(self.largest, run.largest)
        self.between_runs = 1 if run.number >= _RUN_SHORT else min(_BETWEEN_RUNS_MAX, self.between_runs * 4)
        return run.position

    def packed(self, messages: bytes) -> bytes:
        """Returns one compressed message around all messages."""
        header = self.header
        value = compression.compress(header.codec, messages)
        if self.magic == 0 and header.codec == LZ4:
            value = lz4_frames.with_old_checksum(value)
        largest = header.max_timestamp if header.is_append_time else self.largest
        wrapper = legacy.Message(self.last, None, value, self.magic, largest, append_time=header.is_append_time)
        return legacy.entry_of(wrapper, self.last, header.codec)


# up


def _plain(made: NewBatch, buf: bytes, message_bytes_max: int) -> Work[bool]:
    """Makes records of messages of which none is compressed or wrong. Returns whether all are such."""
    position = 0
    while position < len(buf):
        after = put_plain(made, buf, position, STEP_BYTES, message_bytes_max)
        if after is None:
            return False
        position = after
        if position < len(buf):
            yield None
    return True


def check_codec(codec: int, checks: legacy.Checks) -> None:
    """Raises ApiError: for a codec that message sets do not have."""
    if codec >= ZSTD:
        raise ApiError(checks.zstd if codec == ZSTD else Errors.UNKNOWN_SERVER_ERROR)


def newer(buf: Data, message_bytes_max: int, checks: legacy.Checks) -> Work[bytearray]:
    """Converts a message set to a batch; an empty one for an empty set. What follows the last complete message is
    ignored, as in Kafka.

    `message_bytes_max`: the largest message. Raises ApiError(CORRUPT_MESSAGE) for wrong checksums and what else is no
    message set, ApiError(MESSAGE_TOO_LARGE), ApiError(INVALID_TIMESTAMP) for a time that is said to be that of an
    append, and ApiError(UNKNOWN_SERVER_ERROR) for bytes that cannot be decompressed, unknown codecs, and keys and
    values that go beyond their message, as Kafka.
    """
    made = NewBatch()
    if (yield from _plain(made, bytes(buf), message_bytes_max)):
        return made.packed(NONE) if made.count else bytearray()
    codec = NONE
    for entry in legacy.entries(buf):
        if entry.size - legacy.ENTRY.size > message_bytes_max:
            raise ApiError(Errors.MESSAGE_TOO_LARGE)
        if entry.magic and entry.crc_valid and buf[entry.position + records.MAGIC_AT + 1] & _APPEND_TIME:
            raise ApiError(Errors.INVALID_TIMESTAMP)
        codec = entry.codec or codec
    check_codec(codec, checks)
    made, left, worked = NewBatch(), openable_bytes(len(buf)), 0
    try:
        for some in legacy.contents(buf, None, checks):
            before = len(made.body)
            for message in some:
                made.put(message)
            left -= len(made.body) - before
            if left < 0:
                raise ApiError(Errors.CORRUPT_MESSAGE, limit="decompressed-bytes")
            worked += len(made.body) - before if some else CHUNK_BYTES  # some compressed bytes make no message
            if worked >= STEP_BYTES:
                worked = 0
                yield None
    except (Undecodable, legacy.WrongField):
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR) from None
    except legacy.HoldsNone:
        raise ApiError(checks.holding_none) from None
    except MalformedMessage:
        raise ApiError(Errors.CORRUPT_MESSAGE) from None
    if not made.count:
        return bytearray()
    is_long = codec != NONE and len(made.body) > PACKED_AT_ONCE_BYTES
    packed = (yield lambda: made.packed(codec)) if is_long else made.packed(codec)
    assert isinstance(packed, bytearray)
    return packed
