"""Gives what producers sent the offsets and the format of a log that has message sets of version 0 or 1 (Kafka's
`LogValidator`).

- Messages that are not compressed, and have the log's version, get their offsets in place.
- A compressed message of version 1 stays as it is, if the offsets in it count its messages: only the wrapper's offset
  changes. In version 0 the inner offsets are absolute, so that it is compressed again.
- Everything else is made again: other versions, other codecs, record batches, several compressed messages, inner
  offsets that lie. One compressed message comes of it.

With log append time all messages of a set have the time of the append. Memory is bounded by what a set may hold
(`compression.openable_bytes`). The generators are work as in `conversion`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from . import compression, legacy, lz4_frames, opening
from .buffers import Data
from .compression import CHUNK_BYTES, LZ4, NONE, ZSTD, Undecodable, openable_bytes
from .conversion import PACKED_AT_ONCE_BYTES, STEP_BYTES, Work, check_codec
from .errors import ApiError, Errors, MalformedMessage
from .legacy import Checks, HoldsNone, Message, WrongField
from .records import MAGIC_AT, NO_TIMESTAMP, BatchAt

_OFFSET = struct.Struct(">q")
_CRC = struct.Struct(">I")
_ATTRIBUTES_AND_TIME = struct.Struct(">bq")
_LENGTH = struct.Struct(">i")
_CRC_AT = legacy.ENTRY.size


class Rules(NamedTuple):
    """What the topic asks for."""

    magic: int  # of the log: 0 or 1
    codec: int | None  # the topic's `compression.type`; None: the producer's
    is_compacted: bool
    is_append_time: bool
    bounds: tuple[int, int]  # of timestamps
    message_bytes_max: int
    checks: Checks  # before 0.10 messages keep their version, whatever it is


class Place(NamedTuple):
    """Where a set is appended."""

    base_offset: int
    now_ms: int


def assigned(buf: Data, rules: Rules, place: Place) -> Work[bytes | bytearray]:
    """Returns the bytes to append for a message set; none for an empty set. What follows the last complete message is
    ignored, as in Kafka.

    Raises ApiError: CORRUPT_MESSAGE for wrong checksums and what else is no message set, MESSAGE_TOO_LARGE,
    INVALID_RECORD for a compacted topic without keys, INVALID_TIMESTAMP, and UNKNOWN_SERVER_ERROR for bytes that cannot
    be decompressed, unknown codecs, and keys and values that go beyond their message.
    """
    codec, count, is_of_log, worked = NONE, 0, True, 0
    for entry in legacy.entries(buf):
        if entry.size - legacy.ENTRY.size > rules.message_bytes_max:
            raise ApiError(Errors.MESSAGE_TOO_LARGE)
        if not entry.crc_valid or entry.size - legacy.ENTRY.size < legacy.SMALLEST[entry.magic]:
            raise ApiError(Errors.CORRUPT_MESSAGE)
        codec = entry.codec or codec
        is_of_log = is_of_log and (entry.magic == rules.magic or not rules.checks.versions)
        count += 1
        worked += entry.size
        if worked >= STEP_BYTES:
            worked = 0
            yield None
    check_codec(codec, rules.checks)
    target = codec if rules.codec is None else rules.codec
    try:
        if is_of_log and codec == target == NONE:
            return (yield from _in_place(buf, rules, place))
        if is_of_log and codec == target and rules.magic and count == 1:
            kept = yield from _rewrapped(buf, rules, place)
            if kept is not None:
                return kept
        found = legacy.contents(buf, None, rules.checks)
        return (yield from _made_again(found, target, openable_bytes(len(buf)), rules, place))
    except (Undecodable, WrongField):
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR) from None
    except HoldsNone:
        raise ApiError(rules.checks.holding_none) from None
    except MalformedMessage:
        raise ApiError(Errors.CORRUPT_MESSAGE) from None


def assigned_batch(buf: Data, at: BatchAt, rules: Rules, place: Place) -> Work[bytes | bytearray]:
    """Returns the bytes to append for a record batch, whose header was checked. Headers of its records are left out.

    Raises ApiError as `assigned`; UNSUPPORTED_FOR_MESSAGE_FORMAT for batches of idempotent producers.
    """
    header = at.header
    if header.producer_id >= 0 or header.is_transactional:
        raise ApiError(Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    target = header.codec if rules.codec is None else rules.codec
    if target >= ZSTD:
        raise ApiError(Errors.UNSUPPORTED_COMPRESSION_TYPE)
    try:
        found = _messages_of(buf, at)
        return (yield from _made_again(found, target, openable_bytes(header.size), rules, place))
    except Undecodable:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR) from None
    except MalformedMessage:
        raise ApiError(Errors.CORRUPT_MESSAGE) from None


def _messages_of(buf: Data, at: BatchAt) -> Iterator[list[Message]]:
    is_append_time = at.header.is_append_time
    for some in opening.contents(buf, at):
        yield [Message(0, one.key, one.value, 1, one.timestamp, append_time=is_append_time) for one in some]


def _check_time(timestamp: int, is_append_time: bool, rules: Rules) -> None:
    """Raises ApiError(INVALID_TIMESTAMP): out of bounds, or said to be the time of an append, which the broker says."""
    earliest, latest = rules.bounds
    if is_append_time or not (rules.is_append_time or timestamp == NO_TIMESTAMP or earliest <= timestamp <= latest):
        raise ApiError(Errors.INVALID_TIMESTAMP)


def _in_place(buf: Data, rules: Rules, place: Place) -> Work[bytearray]:
    """Writes offsets, and times of the append, into a copy of messages that are not compressed."""
    out, offset, end, worked = bytearray(buf), place.base_offset, 0, 0
    for entry in legacy.entries(buf):
        at = entry.position
        end = at + entry.size
        key_at = at + _CRC_AT + legacy.SMALLEST[entry.magic] - 2 * _LENGTH.size
        (key_size,) = _LENGTH.unpack_from(buf, key_at)
        value_at = key_at + _LENGTH.size + max(key_size, 0)
        if value_at + _LENGTH.size > end:
            raise WrongField("records", f"a key of {key_size} bytes")
        (value_size,) = _LENGTH.unpack_from(buf, value_at)
        if value_at + _LENGTH.size + max(value_size, 0) > end:
            raise WrongField("records", f"a value of {value_size} bytes")
        if key_size < 0 and rules.is_compacted:
            raise ApiError(Errors.INVALID_RECORD)
        _OFFSET.pack_into(out, at, offset)
        if entry.magic and rules.magic:
            attributes = buf[at + MAGIC_AT + 1]
            _check_time(entry.timestamp, bool(attributes & legacy.APPEND_TIME_MASK), rules)
            if rules.is_append_time:
                _set_time(out, at, end, attributes | legacy.APPEND_TIME_MASK, place.now_ms)
        offset += 1
        worked += entry.size
        if worked >= STEP_BYTES:
            worked = 0
            yield None
    del out[end:]
    return out


def _set_time(out: bytearray, at: int, end: int, attributes: int, timestamp: int) -> None:
    """Writes attributes and timestamp of the message at `at`, and its checksum."""
    _ATTRIBUTES_AND_TIME.pack_into(out, at + MAGIC_AT + 1, attributes, timestamp)
    _CRC.pack_into(out, at + _CRC_AT, zlib.crc32(memoryview(out)[at + MAGIC_AT : end]))


def _rewrapped(buf: Data, rules: Rules, place: Place) -> Work[bytearray | None]:
    """Gives a compressed message of version 1 its offset; None if the offsets in it do not count its messages."""
    (entry,) = legacy.entries(buf)
    attributes = buf[MAGIC_AT + 1]
    count, largest, left = 0, NO_TIMESTAMP, openable_bytes(len(buf))
    first = None
    for some in legacy.contents(buf, None, rules.checks):
        for message in some:
            first = message.offset if first is None else first
            if message.offset - first != count:
                return None
            _check(message, rules)
            largest = max(largest, message.timestamp)
            left -= len(message.key or b"") + len(message.value or b"")
            count += 1
        if left < 0:
            raise ApiError(Errors.CORRUPT_MESSAGE, limit="decompressed-bytes")
        yield None
    out = bytearray(memoryview(buf)[: entry.size])
    _OFFSET.pack_into(out, 0, place.base_offset + count - 1)
    if rules.is_append_time:
        _set_time(out, 0, entry.size, attributes | legacy.APPEND_TIME_MASK, place.now_ms)
    elif entry.timestamp != largest:
        _set_time(out, 0, entry.size, attributes, largest)
    return out


def _check(message: Message, rules: Rules) -> None:
    if message.key is None and rules.is_compacted:
        raise ApiError(Errors.INVALID_RECORD)
    if message.magic and rules.magic:
        _check_time(message.timestamp, message.append_time, rules)


def _made_again(
    found: Iterable[list[Message]], codec: int, left: int, rules: Rules, place: Place
) -> Work[bytes | bytearray]:
    """Makes messages of the log's version, or one compressed message of them, which hold `left` bytes at most."""
    out, offset, largest, worked = bytearray(), place.base_offset, NO_TIMESTAMP, 0
    since = place.base_offset if rules.magic and codec != NONE else 0
    for some in found:
        before = len(out)
        for message in some:
            _check(message, rules)
            message.append_time = rules.is_append_time
            if rules.checks.versions:
                message.magic = rules.magic
            if rules.is_append_time:
                message.timestamp = place.now_ms
            largest = max(largest, message.timestamp)
            out += _fitting(legacy.entry_of(message, offset - since, NONE), rules if codec == NONE else None)
            offset += 1
        left -= len(out) - before
        if left < 0:
            raise ApiError(Errors.CORRUPT_MESSAGE, limit="decompressed-bytes")
        worked += len(out) - before if some else CHUNK_BYTES  # some compressed bytes make no message
        if worked >= STEP_BYTES:
            worked = 0
            yield None
    if codec == NONE or not out:
        return out
    packed = (yield lambda: _packed(out, codec, rules.magic)) if len(out) > PACKED_AT_ONCE_BYTES else None
    value = bytes(_packed(out, codec, rules.magic) if packed is None else packed)
    last = offset - 1
    wrapper = Message(last, None, value, rules.magic, largest, append_time=rules.is_append_time)
    return _fitting(legacy.entry_of(wrapper, last, codec), rules)


def _fitting(entry: bytes, rules: Rules | None) -> bytes:
    """Returns an entry. Raises ApiError(MESSAGE_TOO_LARGE)."""
    if rules is not None and len(entry) - legacy.ENTRY.size > rules.message_bytes_max:
        raise ApiError(Errors.MESSAGE_TOO_LARGE)
    return entry


def _packed(data: bytearray, codec: int, magic: int) -> bytes:
    value = compression.compress(codec, bytes(data))
    return lz4_frames.with_old_checksum(value) if magic == 0 and codec == LZ4 else value
