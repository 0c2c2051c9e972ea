"""Makes records of messages of versions 0 and 1 that are not compressed, as most that old producers send.

One loop looks at a message once: it checks what `legacy` would, and writes the record. It leaves messages that are
compressed, wrong or odd in any way to `legacy`, which knows how to refuse them.
"""

from __future__ import annotations

import struct
import zlib

from . import legacy, records
from .records import NO_TIMESTAMP, Record, varint

_ENTRY = struct.Struct(">8xiI")  # size and checksum
_LENGTH = struct.Struct(">i")
_TIMESTAMP = struct.Struct(">2xq")
_BEFORE_BYTES = 16  # offset, size and checksum
_HEAD_BYTES = (2, 10)  # version, attributes and timestamp, by the version
_PLAIN = (b"\0\0", b"\1\0")  # the version, and no attributes
_NULL = varint(-1)


class NewBatch:
    """A batch that is being made of messages."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.count = 0
        self.base_timestamp = self.largest = NO_TIMESTAMP

    def put(self, message: legacy.Message) -> None:
        record = Record(message.key, message.value, message.timestamp)
        records.put_record(self.body, record, self.delta_of(message.timestamp), self.count)
        self.count += 1

    def delta_of(self, timestamp: int) -> int:
        """Takes the timestamp of the next record; returns how far it is from that of the batch."""
        if not self.count:
            self.base_timestamp = timestamp
        self.largest = max(self.largest, timestamp)
        return timestamp - self.base_timestamp

    def packed(self, codec: int) -> bytearray:
        template = records.Template(codec=codec)
        return records.batch_of(self.body, template, self.count, self.count - 1, self.base_timestamp, self.largest)


def put_plain(made: NewBatch, buf: bytes, position: int, bytes_max: int, message_bytes_max: int) -> int | None:
    """Puts the messages from `position` on, `bytes_max` bytes of them and what the last one has beyond that.

    Returns the position after them: the end of `buf` after the last complete message. Returns None at a message that is
    left to `legacy`.
    """
    out, entry_of, length_at, crc32, end = list[bytes](), _ENTRY.unpack_from, _LENGTH.unpack_from, zlib.crc32, len(buf)
    until, head_bytes, head, smallest, time_delta = min(end, position + bytes_max), 0, b"", 0, b""
    while position < until:
        if position + 18 > end:
            position = end
            break
        size, crc = entry_of(buf, position)
        stop = position + 12 + size
        if size < legacy.SMALLEST[0] or stop > end or buf[position + records.MAGIC_AT] > 1:
            position = end
            break
        body = buf[position + _BEFORE_BYTES : stop]
        if size > message_bytes_max or crc32(body) != crc:
            return None
        if body[:head_bytes] != head or not head:
            head_bytes = _HEAD_BYTES[body[0]]
            head = body[:head_bytes]
            if head[:2] not in _PLAIN or len(head) < head_bytes:
                return None
            smallest = legacy.SMALLEST[body[0]]
            timestamp = _TIMESTAMP.unpack(head)[0] if body[0] else NO_TIMESTAMP
            time_delta = varint(made.delta_of(timestamp))
        if size < smallest:
            return None
        (length,) = length_at(body, head_bytes)
        at = head_bytes + 4
        if length < 0:
            key = _NULL
        else:
            key = varint(length) + body[at : at + length]
            at += length
            if at + 4 > size - 4:
                return None
        (length,) = length_at(body, at)
        if at + 4 + max(length, 0) != size - 4:
            return None
        value = _NULL if length < 0 else varint(length) + body[at + 4 :]
        record = time_delta + varint(made.count) + key + value
        out.append(varint(len(record) + 2) + b"\0" + record + b"\0")
        made.count += 1
        position = stop
    made.body += b"".join(out)
    return position
