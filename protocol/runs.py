"""Converts runs of records to messages of versions 0 and 1, with next to no work for one record.

Records of one producer mostly differ in the lengths of their keys and values, and in nothing else that divides them:
their timestamps and offsets take the same bytes. Such records are a *family*. In a family the length of a record, and
that of its key if there are keys, say all its other lengths. What follows from these is kept by the bytes that have
them: one `struct.Struct` reads the record and the first two bytes after it, another one writes the message, and no
number is decoded byte by byte. The lengths that were found are checked. A record of another family ends the run, and
so does one that is not whole: `conversion` reads it by itself, and begins the next run after it.

What is known is kept for the next batch too, up to `KNOWN_MAX` lengths. To look for the family of a record takes as
long as to convert ten of them, so that one is guessed first: the one that the last batch began with, and the one that
came after it.
"""

from __future__ import annotations

import struct
import zlib
from functools import cache
from itertools import repeat
from typing import NamedTuple

from .errors import MalformedMessage
from .records import NO_TIMESTAMP, varint_at

KNOWN_MAX = 20_000
_RUN_SHORT = 4  # after a shorter run it is not tried whether the next family pays
_NUMBERS = {1: ("B", 0x80, 0), 2: ("H", 0x8080, 0x8000)}  # by size: its form, and the bits that say this size
_DELTA_MAX = 1 << 13  # an offset of two bytes is smaller
_LENGTH = struct.Struct(">i")
_TIMED = struct.Struct(">bbq")
_NULL = b"\xff\xff\xff\xff"
_BEGIN_BYTES = 2  # by which a record is known: its length, which has as many bytes, or one and the attributes
_SIZE_BYTES_MAX = 2
_AFTER = bytes(_BEGIN_BYTES)  # stands for the record after the last one


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


# What follows from the lengths of a record and its key. A plain tuple, which Python unpacks fastest:
# - how the record is read, and its bytes
# - the lengths of the key, and of the value if there is no key, as they are in the record; and that of the value
# - the lengths of the key and of the value as they are in the message, its bytes, and how it is written
Known = tuple[struct.Struct, int, bytes, bytes, bytes, bytes, int, struct.Struct]
# Of a family: the version of messages, the bytes of a timestamp and of an offset, and those before the length of the
# key; 0 if there is no key.
Key = tuple[int, int, int, int]


class _Shape(NamedTuple):
    """Where a record is divided."""

    key: Key
    begin_bytes: int  # before its timestamp
    key_length: bytes
    key_bytes: int  # -1: there is none
    value_length: bytes
    value_bytes: int
    after: int  # the bytes of its headers, or of their number, which is zero


def _shape_at(data: bytes, start: int, magic: int) -> _Shape | None:
    """Returns the shape of the record at `start`; None if it is not whole, has long numbers, or is wrong."""
    try:
        size, at_attributes = varint_at(data, start)
        at_time = at_attributes + 1
        at_delta = varint_at(data, at_time)[1]
        at_key = varint_at(data, at_delta)[1]
        key_bytes, key = varint_at(data, at_key)
        at_length = key + max(key_bytes, 0)
        value_bytes, value = varint_at(data, at_length)
    except (IndexError, MalformedMessage):
        return None
    stop = at_attributes + size
    after = stop - value - max(value_bytes, 0)
    times, deltas = at_delta - at_time, at_key - at_delta
    is_long = at_attributes - start > _SIZE_BYTES_MAX or max(times, deltas) > max(_NUMBERS)
    if is_long or after <= 0 or stop > len(data):
        return None
    of_key = magic, times, deltas, at_key - start if key_bytes >= 0 else 0
    lengths = data[at_key:key], max(key_bytes, -1), data[at_length:value], max(value_bytes, -1)
    return _Shape(of_key, at_time - start, *lengths, after)


class Family:
    """Records whose numbers and keys have as many bytes, and what is known of their lengths."""

    __slots__ = (
        "after",
        "delta_mark",
        "delta_mask",
        "key",
        "key_at",
        "known",
        "time_mark",
        "time_mask",
    )

    def __init__(self, shape: _Shape) -> None:
        self.key = shape.key
        _, times, deltas, self.key_at = shape.key
        _, self.time_mask, self.time_mark = _NUMBERS[times]
        _, mask, self.delta_mark = _NUMBERS[deltas]
        self.delta_mask = mask | (1 if deltas == 1 else 0x100)  # an odd number is a negative one
        self.after: Family | None = None  # the one that followed last time
        self.known: dict[bytes, Known] = {}

    def learn(self, data: bytes, position: int) -> Known | None:
        """Returns what is to be known of records with the length of the one at `position`; None if that is not whole,
        or of another family.
        """
        shape = _shape_at(data, position, self.key[0])
        if shape is None or shape.key != self.key:
            return None
        magic, times, deltas, _ = self.key
        lengths = shape.key_length
        form = f">{shape.begin_bytes}x{_NUMBERS[times][0]}{_NUMBERS[deltas][0]}"
        if self.key_at:
            form += f"{len(lengths)}s{shape.key_bytes}s{len(shape.value_length)}s"
        else:
            lengths += shape.value_length
            form += f"{len(lengths)}s"
        value_bytes = max(shape.value_bytes, 0)
        reading = struct.Struct(f"{form}{value_bytes}s{shape.after}x{_BEGIN_BYTES}s")
        head_bytes, rest_bytes = 2 + 8 * magic, 4 + max(shape.key_bytes, 0) + 4 + value_bytes
        known = (
            reading,
            reading.size - _BEGIN_BYTES,
            lengths,
            shape.value_length,
            _LENGTH.pack(shape.key_bytes),
            _LENGTH.pack(shape.value_bytes) if self.key_at else _NULL + _LENGTH.pack(shape.value_bytes),
            4 + head_bytes + rest_bytes,
            struct.Struct(f">qiI{head_bytes}s{rest_bytes}s"),
        )
        _FAMILIES.add()
        self.known[self.lengths_at(data, position)] = known
        return known

    def lengths_at(self, data: bytes, position: int) -> bytes:
        """Returns the bytes by which a record is known."""
        at = position + self.key_at
        return data[position : position + _BEGIN_BYTES] + (data[at : at + 1] if self.key_at else b"")


class _Families:
    """All that is known."""

    def __init__(self) -> None:
        self.all: dict[Key, Family] = {}
        self.first: dict[int, Family] = {}  # what the last batch began with, by the version of messages
        self._count = 0

    def at(self, data: bytes, position: int, magic: int) -> Family | None:
        """Returns the family of the record at `position`."""
        shape = _shape_at(data, position, magic)
        if shape is None:
            return None
        family = self.all.get(shape.key)
        if family is None:
            self.add()
            family = self.all[shape.key] = Family(shape)
        return family

    def follow(self, former: Family | None, family: Family) -> None:
        """Keeps what is guessed next time, of families that are not forgotten."""
        if self.all.get(family.key) is family:
            if former is None:
                self.first[family.key[0]] = family
            elif former is not family:
                former.after = family

    def add(self) -> None:
        """Counts one more; forgets all when there are too many."""
        self._count += 1
        if self._count > KNOWN_MAX:
            for family in self.all.values():
                family.known.clear()
                family.after = None
            self.all, self.first, self._count = {}, {}, 1


_FAMILIES = _Families()


@cache
def _deltas() -> list[int]:
    """Returns the offsets of two bytes at most, as they are read; and one that none is."""
    zigzags = range(0, 2 * _DELTA_MAX, 2)
    return [n if n < 0x80 else (n & 0x7F | 0x80) << 8 | n >> 7 for n in zigzags] + [-1]


def convert(out: list[bytes], data: bytes, position: int, number_max: int, target: Target) -> Run:
    """Appends the messages of the records from `position` on, `number_max` at most, up to the first one that is not
    whole, has a long number, comes before the first offset, or has an offset or a timestamp out of range.
    """
    whole = Run(0, position, 0, NO_TIMESTAMP)
    former, guess = None, _FAMILIES.first.get(target.magic)
    while whole.number < number_max and whole.position < len(data):
        family = guess or _FAMILIES.at(data, whole.position, target.magic)
        if family is None:
            break
        run = _of_family(out, data, whole.position, number_max - whole.number, target, family)
        if run.number:
            whole = Run(whole.number + run.number, run.position, run.last, max(whole.largest, run.largest))
            if run.number < _RUN_SHORT:
                break
            _FAMILIES.follow(former, family)
            former, guess = family, family.after
        elif guess is not None:
            guess = None
        else:  # what is known of its length has another division
            family.learn(data, whole.position)
            break
    return whole


def _head(target: Target, family: Family, time: int) -> tuple[int, bytes]:
    """Returns the timestamp of a message, and its bytes between checksum and lengths. `time`: as a record has it."""
    if not target.magic:
        return NO_TIMESTAMP, b"\0\0"
    n = time if family.time_mark == 0 else time >> 8 & 127 | (time & 127) << 7
    timestamp = target.base_time + (n >> 1 ^ -(n & 1)) if target.append_time is None else target.append_time
    return timestamp, _TIMED.pack(1, target.attributes, timestamp)


def _of_family(out: list[bytes], data: bytes, position: int, number_max: int, target: Target, family: Family) -> Run:
    """Does the work of `convert` for the records of one family."""
    base_offset, since, first_offset = target.base_offset, target.since, target.first_offset
    delta_mask, delta_mark, key_at = family.delta_mask, family.delta_mark, family.key_at
    known_of, put, crc32, deltas = family.known.get, out.append, zlib.crc32, _deltas()
    head, head_crc, former, largest, offset = b"", 0, -1, NO_TIMESTAMP, 0
    following = _DELTA_MAX  # at the offset that is expected: none yet
    begun, begin, record_bytes, moved = len(out), data[position : position + _BEGIN_BYTES], 0, 0
    while True:
        try:
            for _ in repeat(None, number_max - (len(out) - begun)):
                known = known_of(begin + data[position + key_at : position + key_at + 1] if key_at else begin)
                if known is None:
                    known = family.learn(data, position)
                    if known is None:
                        break
                reading, record_bytes, lengths, value_length, key_length, length, message_bytes, writing = known
                if key_at:
                    time, delta, found, key_part, size_part, body, begin = reading.unpack_from(data, position)
                    if size_part != value_length:
                        break
                    rest = key_length + key_part + length + body
                else:
                    time, delta, found, body, begin = reading.unpack_from(data, position)
                    rest = length + body
                if found != lengths:
                    break
                if time != former:
                    if time & family.time_mask != family.time_mark:
                        break
                    former, timestamp, head = time, *_head(target, family, time)
                    head_crc = crc32(head)
                    largest = timestamp if timestamp > largest else largest
                if delta == deltas[following]:
                    following += 1
                    offset += 1
                elif delta & delta_mask == delta_mark:
                    n = delta >> 1 if delta_mark == 0 else delta >> 9 & 63 | (delta & 127) << 6
                    if base_offset + n < first_offset:
                        break
                    following, offset = n + 1, base_offset + n - since
                else:
                    break
                put(writing.pack(offset, message_bytes, crc32(rest, head_crc), head, rest))
                position += record_bytes
        except struct.error:  # the record is the last one, or not whole, or a number is out of range
            if record_bytes <= len(data) - position < record_bytes + _BEGIN_BYTES:
                data, moved, position = data[position:] + _AFTER, position, 0
                continue
        return Run(len(out) - begun, position + moved, offset + since, largest)
