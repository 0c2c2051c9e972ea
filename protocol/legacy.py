"""Message sets of format version 0 and 1, as logs written before Kafka 0.11 hold them (seed 001, sections 5.4 and 5.5).

An entry is an offset, a size and a message; a message that is compressed holds a message set as its value. In version 1 the
offsets inside count from 0 and the wrapper has the offset of the last; in version 0 they are absolute.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import compression
from .errors import MalformedMessage
from .records import NO_TIMESTAMP

ENTRY = struct.Struct(">qi")
V0 = struct.Struct(">Ibb")
V1 = struct.Struct(">Ibbq")
SMALLEST = (14, 22)  # a message without key and value, by its version
APPEND_TIME_MASK = 0x08


@dataclass(slots=True)
class Message:
    """One message: its fields, and its offset in the log."""

    offset: int
    key: bytes | None
    value: bytes | None
    magic: int = 1
    timestamp: int = NO_TIMESTAMP
    codec: int = compression.NONE
    append_time: bool = False


class EntryAt(NamedTuple):
    position: int
    offset: int  # of the last message where the entry is a compressed set
    size: int  # of the whole entry
    magic: int
    crc_valid: bool
    timestamp: int
    codec: int


def entries(buf: Any, position: int = 0) -> Iterator[EntryAt]:
    """The complete outer entries from `position` on; ends before one of another format."""
    end = len(buf)
    while position + 18 <= end:
        offset, size = ENTRY.unpack_from(buf, position)
        stop = position + 12 + size
        magic = buf[position + 16]
        if size < 14 or stop > end or magic > 1:
            return
        crc, _, attributes = V0.unpack_from(buf, position + 12)
        timestamp = struct.unpack_from(">q", buf, position + 18)[0] if magic and size >= 22 else NO_TIMESTAMP
        valid = crc == zlib.crc32(memoryview(buf)[position + 16 : stop])
        yield EntryAt(position, offset, 12 + size, magic, valid, timestamp, attributes & 0x07)
        position = stop


def decode(buf: Any, limit: int = compression.DECOMPRESSED_BYTES_MAX) -> list[Message]:
    """The messages of a set, compressed ones opened. MalformedMessage for a wrong CRC or a message that ends early."""
    messages: list[Message] = []
    for entry in entries(buf):
        message = _message(memoryview(buf)[entry.position : entry.position + entry.size], entry)
        if message.codec == compression.NONE:
            messages.append(message)
        else:
            messages += _opened(message, limit)
    return messages


def _opened(wrapper: Message, limit: int) -> list[Message]:
    if wrapper.value is None:
        raise MalformedMessage("records", "a compressed message without a value")
    data = compression.decompress(wrapper.codec, wrapper.value, limit)
    inner = [_message(memoryview(data)[e.position : e.position + e.size], e) for e in entries(data)]
    if not inner or any(m.codec for m in inner):
        raise MalformedMessage("records", "a compressed message that holds none, or another compressed one")
    shift = wrapper.offset - inner[-1].offset if wrapper.magic else 0
    for message in inner:
        message.offset += shift
        if wrapper.append_time:
            message.timestamp, message.append_time = wrapper.timestamp, True
    return inner


def _message(data: Any, entry: EntryAt) -> Message:
    if not entry.crc_valid:
        raise MalformedMessage("records", f"wrong CRC in the message at offset {entry.offset}")
    if entry.size - 12 < SMALLEST[entry.magic]:
        raise MalformedMessage("records", f"a message of {entry.size - 12} bytes")
    attributes = data[17]
    pos = 26 if entry.magic else 18
    key, pos = _field(data, pos)
    value, pos = _field(data, pos)
    append_time = bool(entry.magic and attributes & APPEND_TIME_MASK)
    return Message(entry.offset, key, value, entry.magic, entry.timestamp, attributes & 0x07, append_time)


def _field(data: Any, pos: int) -> tuple[bytes | None, int]:
    try:
        (n,) = struct.unpack_from(">i", data, pos)
    except struct.error:
        raise MalformedMessage("records", "a message ends early") from None
    pos += 4
    if n < 0:
        return None, pos
    if pos + n > len(data):
        raise MalformedMessage("records", f"a field of {n} bytes in {len(data) - pos}")
    return bytes(data[pos : pos + n]), pos + n


def encode(messages: Iterable[Message], codec: int = compression.NONE) -> bytes:
    """A message set; with a codec, one wrapper around all of them."""
    messages = list(messages)
    if codec == compression.NONE or not messages:
        return b"".join(_entry(m, m.offset, compression.NONE) for m in messages)
    magic, base = messages[0].magic, messages[0].offset if messages[0].magic else 0
    inner = b"".join(_entry(m, m.offset - base, compression.NONE) for m in messages)
    largest = max(m.timestamp for m in messages)
    wrapper = Message(messages[-1].offset, None, compression.compress(codec, inner), magic, largest)
    wrapper.append_time = messages[0].append_time
    return _entry(wrapper, wrapper.offset, codec)


def _entry(message: Message, offset: int, codec: int) -> bytes:
    attributes = codec | (APPEND_TIME_MASK if message.append_time else 0)
    body = struct.pack(">bb", message.magic, attributes)
    if message.magic:
        body += struct.pack(">q", message.timestamp)
    for part in (message.key, message.value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return ENTRY.pack(offset, len(body) + 4) + struct.pack(">I", zlib.crc32(body)) + body
