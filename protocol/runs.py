"""Converts runs of records that have the same shape to messages of versions 0 and 1.

Most records of a batch differ in their numbers and bytes only: all lengths are the same. One `struct.Struct` reads such
records one after another, another one writes their messages. Nothing is decided for a record but whether it has the
shape of the one before it. The first one of another shape ends the run: `conversion` reads it by itself, and begins the
next run after it. `mixed_runs` does the same for records of different lengths.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from .records import INT64_MIN, NO_TIMESTAMP, varint_at

_NUMBERS = {1: ("B", 0x80, 0), 2: ("H", 0x8080, 0x8000)}  # by size: its form, and the bits that say this size
_LENGTH = struct.Struct(">i")
_ENTRY_HEAD_BYTES = 16
_TIMES_SPAN_MS = 1 << 13  # how far the timestamps of two bytes are from that of the batch, at most


class Target(NamedTuple):
    """What the messages of a batch have in common."""

    magic: int
    attributes: int
    base_offset: int
    since: int  # the offset that is 0 in the messages
    first_offset: int  # those before it end a run
    base_time: int
    append_time: int | None  # the timestamp of all


class Run(NamedTuple):
    """What became messages."""

    number: int
    position: int  # after its last record
    last: int  # its last offset
    largest: int  # timestamp


class Shape(NamedTuple):
    """How a record is divided, and what those of its shape have in common."""

    reading: struct.Struct
    begin: bytes  # its length and attributes
    key_length: bytes
    value_length: bytes
    key_bytes: int
    value_bytes: int
    times: tuple[str, int, int]
    deltas: tuple[str, int, int]


def shape_at(data: bytes, start: int) -> Shape | None:
    """Returns the shape of the complete record at `start`; None if it has long numbers, or its fields go beyond it."""
    size, at_time = varint_at(data, start)
    stop, at_time = at_time + size, at_time + 1
    at_delta = varint_at(data, at_time)[1]
    at_key = varint_at(data, at_delta)[1]
    key_bytes, key = varint_at(data, at_key)
    at_length = key + max(key_bytes, 0)
    value_bytes, value = varint_at(data, at_length)
    after = stop - value - max(value_bytes, 0)  # the headers, or their number, which is zero
    times, deltas = _NUMBERS.get(at_delta - at_time), _NUMBERS.get(at_key - at_delta)
    if times is None or deltas is None or after <= 0:
        return None
    form = f">{at_time - start}s{times[0]}{deltas[0]}{key - at_key}s{at_length - key}s{value - at_length}s"
    reading = struct.Struct(f"{form}{max(value_bytes, 0)}s{after}x")
    begin, key_length, value_length = data[start:at_time], data[at_key:key], data[at_length:value]
    return Shape(reading, begin, key_length, value_length, max(key_bytes, -1), max(value_bytes, -1), times, deltas)


def is_near_end(base_time: int) -> bool:
    """Whether a timestamp of two bytes may lead beyond 64 bits."""
    return not INT64_MIN + _TIMES_SPAN_MS <= base_time < -INT64_MIN - _TIMES_SPAN_MS


def convert(out: bytearray, data: bytes, start: int, number_max: int, target: Target) -> Run:
    """Appends the messages of the records that follow the complete one at `start` and have its shape, `number_max` at
    most. There are none where a timestamp or an offset has more than two bytes, or a timestamp may be out of range.
    """
    size, position = varint_at(data, start)
    position += size
    record_bytes = position - start
    number = min(number_max, (len(data) - position) // record_bytes)
    shape = None if number <= 0 or is_near_end(target.base_time) else shape_at(data, start)
    if shape is None:
        return Run(0, position, 0, NO_TIMESTAMP)
    reading, begin, key_length, value_length, key_bytes, value_bytes, times, deltas = shape
    whole = reading.iter_unpack(memoryview(data)[position : position + number * record_bytes])
    magic, attributes, base_offset, since, first_offset, base_time, append_time = target
    length = _LENGTH.pack(value_bytes)
    has_key = key_bytes >= 0
    rest_bytes = (key_bytes + 4 if has_key else 0) + max(value_bytes, 0)
    begin_of_head = bytes((magic, attributes if magic else 0))
    end_of_head = _LENGTH.pack(key_bytes) + (b"" if has_key else length)
    timed = struct.Struct(f">2sq{len(end_of_head)}s").pack
    head_bytes = 2 + 8 * magic + len(end_of_head)
    message_bytes = 4 + head_bytes + rest_bytes
    put, crc32 = struct.Struct(f">qiI{head_bytes}s{rest_bytes}s").pack_into, zlib.crc32
    begun = at = len(out)
    entry_bytes = _ENTRY_HEAD_BYTES + head_bytes + rest_bytes
    out += bytes(number * entry_bytes)
    (_, time_mask, time_mark), (_, delta_mask, delta_mark) = times, deltas
    delta_mask |= 1 if delta_mask == 0x80 else 0x100  # an odd number is a negative one
    is_short = delta_mark == 0
    head, head_crc, former, largest, last = b"", 0, -1, NO_TIMESTAMP, 0
    for prefix, time, delta, mark, key_part, size_part, body in whole:
        if prefix != begin or mark != key_length or size_part != value_length or delta & delta_mask != delta_mark:
            break
        offset = base_offset + (delta >> 1 if is_short else delta >> 9 & 63 | (delta & 127) << 6)
        if offset < first_offset or time & time_mask != time_mark:
            break
        if time != former:
            former = time
            if magic:
                n = time if time_mark == 0 else time >> 8 & 127 | (time & 127) << 7
                timestamp = base_time + (n >> 1 ^ -(n & 1)) if append_time is None else append_time
                largest = timestamp if timestamp > largest else largest  # max() would cost more than all of this
                head = timed(begin_of_head, timestamp, end_of_head)
            else:
                head = begin_of_head + end_of_head
            head_crc = crc32(head)
        rest = key_part + length + body if has_key else body
        put(out, at, offset - since, message_bytes, crc32(rest, head_crc), head, rest)
        at += entry_bytes
        last = offset
    del out[at:]
    done = (at - begun) // entry_bytes
    return Run(done, position + done * record_bytes, last, largest)
