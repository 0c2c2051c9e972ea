"""Converts records of different lengths to messages of versions 0 and 1.

Records of one producer mostly differ in the length of their values, and in nothing else that divides them: the lengths
of their keys, timestamps and offsets take the same bytes. Then the length of a record says all others. What is known of
a length is kept by the first two bytes of the record: one `struct.Struct` reads the record, and no number in it is
decoded byte by byte. Its other lengths are checked. A record that has others, or that is not whole, ends the run.

What is known is kept for the next batch too, up to `KNOWN_MAX` lengths.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from .errors import MalformedMessage
from .records import NO_TIMESTAMP
from .runs import Run, Shape, Target, shape_at

KNOWN_MAX = 20_000
_ENTRY = struct.Struct(">qiI")  # offset, size, checksum
_LENGTH = struct.Struct(">i")
_RUN_SHORT = 4
_BEGIN_BYTES = 2  # by which a record is known: its length, which has as many bytes, or one and the attributes
_BEGIN_MAX = 3  # of a length of two bytes, with the attributes

Fields = tuple[bytes, int, int, bytes, bytes, bytes, bytes]  # as `Shape.reading` finds them
# how a record is read, its bytes, the length of its value as it is in the record and as it is in a message, and the
# number of bytes of the message that come after its head
Known = tuple[Callable[[bytes, int], Fields], int, bytes, bytes, int]
# what records have in common: the forms of their numbers, and the length of their key as it is in a record
Family = tuple[tuple[str, int, int], tuple[str, int, int], bytes]


class _Lengths:
    """What is known of lengths, by family."""

    def __init__(self) -> None:
        self._families: dict[Family, dict[bytes, Known]] = {}
        self._count = 0

    def of(self, family: Family) -> dict[bytes, Known]:
        self.add()
        return self._families.setdefault(family, {})

    def add(self) -> None:
        """Counts one more; forgets all when there are too many."""
        self._count += 1
        if self._count > KNOWN_MAX:
            self._families = {}
            self._count = 1


_LENGTHS = _Lengths()


def convert(out: bytearray, data: bytes, position: int, number_max: int, target: Target) -> Run:
    """Appends the messages of the complete records from `position` on, `number_max` at most, up to the first one that
    has another form.
    """
    number, last, largest = 0, 0, NO_TIMESTAMP
    while number < number_max and (shape := _shape(data, position)) is not None:
        run = _of_family(out, data, position, number_max - number, target, shape)
        if run.number:
            number, position, last, largest = number + run.number, run.position, run.last, max(largest, run.largest)
        if run.number < _RUN_SHORT:  # the next family does not pay
            break
    return Run(number, position, last, largest)


def _shape(data: bytes, start: int) -> Shape | None:
    """Returns the shape of the record at `start`; None if it is not whole, longer than lengths are known, or wrong."""
    try:
        shape = shape_at(data, start)
    except (IndexError, MalformedMessage, struct.error):
        return None
    if shape is None or len(shape.begin) > _BEGIN_MAX or start + shape.reading.size > len(data):
        return None
    return shape


def _family(shape: Shape) -> Family:
    return shape.times, shape.deltas, shape.key_length


def _known(shape: Shape) -> Known:
    rest_bytes = max(shape.key_bytes, 0) + 4 + max(shape.value_bytes, 0)
    length = _LENGTH.pack(shape.value_bytes)
    return shape.reading.unpack_from, shape.reading.size, shape.value_length, length, rest_bytes


def _of_family(out: bytearray, data: bytes, position: int, number_max: int, target: Target, shape: Shape) -> Run:
    """Does the work of `convert` for records whose numbers and keys have as many bytes as those of `shape`."""
    magic, attributes, base_offset, since, first_offset, base_time, append_time = target
    (_, time_mask, time_mark), (_, delta_mask, delta_mark) = shape.times, shape.deltas
    delta_mask |= 1 if delta_mask == 0x80 else 0x100  # an odd number is a negative one
    is_short, key_length, end_of_head = delta_mark == 0, shape.key_length, _LENGTH.pack(shape.key_bytes)
    family = _family(shape)
    lengths = _LENGTHS.of(family)
    known_of, pack, crc32, timed = lengths.get, _ENTRY.pack, zlib.crc32, struct.Struct(">bbq4s").pack
    head, head_crc, former, largest, last, number = b"", 0, -1, NO_TIMESTAMP, 0, 0
    head_bytes = 4 + 2 + 8 * magic + 4
    while number < number_max:
        known = known_of(data[position : position + _BEGIN_BYTES])
        if known is None:
            found = _shape(data, position)
            if found is None or _family(found) != family:
                break
            known = lengths[data[position : position + _BEGIN_BYTES]] = _known(found)
            _LENGTHS.add()
        read, record_bytes, value_length, length, rest_bytes = known
        try:
            _, time, delta, mark, key_part, size_part, body = read(data, position)
        except struct.error:  # the record is not whole
            break
        if mark != key_length or size_part != value_length or delta & delta_mask != delta_mark:
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
                head = timed(1, attributes, timestamp, end_of_head)
            else:
                head = b"\0\0" + end_of_head
            head_crc = crc32(head)
        rest = key_part + length + body
        out += pack(offset - since, head_bytes + rest_bytes, crc32(rest, head_crc)) + head + rest
        position += record_bytes
        number += 1
        last = offset
    return Run(number, position, last, largest)
