"""Message sets of format versions 0 and 1, which logs written before Kafka 0.11 contain.

An entry is an offset, a size and a message; a compressed message holds a message set as its value. In version 1 the
inner offsets count from 0 and the wrapper has the offset of the last message; in version 0 the inner offsets are
absolute. See "Message sets" in Kafka's protocol documentation (Record format).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from . import compression
from .buffers import Data
from .errors import Errors, MalformedMessage
from .records import NO_TIMESTAMP

ENTRY = struct.Struct(">qi")
V0 = struct.Struct(">Ibb")
V1 = struct.Struct(">Ibbq")
SMALLEST = (14, 22)  # sizes of a message without key and value, by its version
APPEND_TIME_MASK = 0x08


class HoldsNone(MalformedMessage):
    """A compressed message without messages."""


class WrongField(MalformedMessage):
    """A key or a value that goes beyond its message: Kafka looks at none, and fails where it reads it."""


class Checks(NamedTuple):
    """What a release checks in compressed messages that producers send, and how it refuses some. Without more, what
    readers of a log check.
    """

    checksums_since: int = 0  # the first version whose inner checksums must be right
    versions: bool = False  # whether all messages must have the version of the compressed one
    bases: bool = False  # whether the offset of the compressed one must be 0 or possible
    takes_none: bool = False  # whether a compressed one without messages is no error
    oldest_lz4: bool = False  # whether frames of LZ4 must be those that releases before 0.10 read
    one_stream: bool = False  # whether snappy must be one stream
    takes_short_gzip: bool = False  # whether gzip that ends early has what it says until there
    holding_none: int = Errors.CORRUPT_MESSAGE
    zstd: int = Errors.CORRUPT_MESSAGE


READING = Checks()


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
    offset: int  # of the last message if the entry is compressed
    size: int  # of the whole entry
    magic: int
    crc_valid: bool
    timestamp: int
    codec: int


def entries(buf: Data, position: int = 0) -> Iterator[EntryAt]:
    """Yields the complete outer entries from `position` on; stops before an entry of another format."""
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


def decode(buf: Data, limit: int | None = None) -> list[Message]:
    """Returns the messages of a set, like `contents`, all at once."""
    return [message for some in contents(buf, limit) for message in some]


def contents(buf: Data, limit: int | None = None, checks: Checks = READING) -> Iterator[list[Message]]:
    """Yields the messages of a set, including compressed ones, while they are decompressed. An item, which may be
    empty, is the work of one step.

    Raises MalformedMessage for a wrong CRC or an incomplete message; HoldsNone and WrongField are such.

    `limit`: how many bytes each compressed message may hold; by default in proportion to the set.
    """
    limit = compression.openable_bytes(len(buf)) if limit is None else limit
    for entry in entries(buf):
        message = _message(memoryview(buf)[entry.position : entry.position + entry.size], entry)
        if message.codec == compression.NONE:
            yield [message]
        else:
            yield from _opened(message, limit, checks)


def _opened(wrapper: Message, limit: int, checks: Checks) -> Iterator[list[Message]]:
    """Opens a compressed message; twice if its inner offsets are counted from the last one."""
    if wrapper.value is None:
        raise HoldsNone("records", "a compressed message without a value")
    if checks.oldest_lz4 and wrapper.codec == compression.LZ4:
        from . import lz4_frames

        lz4_frames.check_oldest(wrapper.value)
    if checks.one_stream and wrapper.codec == compression.SNAPPY:
        for _ in compression.one_stream(wrapper.value):
            yield []
    last = None
    if wrapper.magic:
        for _, found in _inner(wrapper, limit, checks):
            last = found[-1].offset if found else last
            yield []
    shift = wrapper.offset - last if last is not None else 0
    if checks.bases and wrapper.offset and shift < 0:  # 0 is what some producers write
        raise MalformedMessage("records", f"offsets up to {last} in a compressed message at {wrapper.offset}")
    checks_crc = wrapper.magic >= checks.checksums_since
    count = 0
    for data, found in _inner(wrapper, limit, checks):
        inner = [_message(memoryview(data)[e.position : e.position + e.size], e, checks_crc) for e in found]
        for message in inner:
            if message.codec or (checks.versions and message.magic != wrapper.magic):
                raise MalformedMessage("records", "a compressed message that holds another one, or another version")
            message.offset += shift
            message.append_time = wrapper.append_time
            if wrapper.append_time:
                message.timestamp = wrapper.timestamp
        count += len(inner)
        yield inner
    if not count and not checks.takes_none:
        raise HoldsNone("records", "a compressed message that holds none")


def _inner(wrapper: Message, limit: int, checks: Checks) -> Iterator[tuple[bytes, list[EntryAt]]]:
    """Yields decompressed bytes and the complete entries in them, chunk by chunk; ignores an incomplete one at the end.
    Raises MalformedMessage for what is none.
    """
    parts: list[bytes] = []
    held = needed = 0
    value = wrapper.value or b""
    if wrapper.codec == compression.LZ4 and not wrapper.magic:
        from . import lz4_frames  # nothing else of a start needs it

        value = lz4_frames.with_right_checksum(value)
    for chunk in _chunks(wrapper.codec, value, limit, checks.takes_short_gzip):
        parts.append(chunk)
        held += len(chunk)
        if held < needed:
            yield b"", []
            continue
        data = b"".join(parts)
        found = list(entries(data))
        yield data, found
        end = found[-1].position + found[-1].size if found else 0
        parts, held, needed = [data[end:]], len(data) - end, ENTRY.size
        if held >= needed:
            _, size = ENTRY.unpack_from(data, end)
            needed = ENTRY.size + size
            if size < SMALLEST[0] or needed <= held:
                raise MalformedMessage("records", f"a message of {size} bytes, or of an unknown version")
            if needed > limit:  # it cannot be complete
                return


def _chunks(codec: int, value: bytes, limit: int, may_end_early: bool) -> Iterator[bytes]:
    try:
        yield from compression.chunks(codec, value, limit)
    except compression.EndsEarly:
        if not may_end_early:
            raise


def _message(data: Data, entry: EntryAt, checks: bool = True) -> Message:
    if checks and not entry.crc_valid:
        raise MalformedMessage("records", f"wrong CRC in the message at offset {entry.offset}")
    if entry.size - 12 < SMALLEST[entry.magic]:
        raise MalformedMessage("records", f"a message of {entry.size - 12} bytes")
    attributes = data[17]
    pos = 26 if entry.magic else 18
    key, pos = _field(data, pos)
    value, pos = _field(data, pos)
    append_time = bool(entry.magic and attributes & APPEND_TIME_MASK)
    return Message(entry.offset, key, value, entry.magic, entry.timestamp, attributes & 0x07, append_time)


def _field(data: Data, pos: int) -> tuple[bytes | None, int]:
    try:
        (n,) = struct.unpack_from(">i", data, pos)
    except struct.error:
        raise WrongField("records", "a message ends early") from None
    pos += 4
    if n < 0:
        return None, pos
    if pos + n > len(data):
        raise WrongField("records", f"a field of {n} bytes in {len(data) - pos}")
    return bytes(data[pos : pos + n]), pos + n


def encode(messages: Iterable[Message], codec: int = compression.NONE) -> bytes:
    """Encodes a message set; with a codec, as one wrapper around all messages."""
    messages = list(messages)
    if codec == compression.NONE or not messages:
        return b"".join(entry_of(m, m.offset, compression.NONE) for m in messages)
    magic, base = messages[0].magic, messages[0].offset if messages[0].magic else 0
    inner = b"".join(entry_of(m, m.offset - base, compression.NONE) for m in messages)
    largest = max(m.timestamp for m in messages)
    value = compression.compress(codec, inner)
    if codec == compression.LZ4 and not magic:
        from . import lz4_frames

        value = lz4_frames.with_old_checksum(value)
    wrapper = Message(messages[-1].offset, None, value, magic, largest)
    wrapper.append_time = messages[0].append_time
    return entry_of(wrapper, wrapper.offset, codec)


def entry_of(message: Message, offset: int, codec: int) -> bytes:
    """Returns a message with its offset and size; `codec`: that of its value."""
    attributes = codec | (APPEND_TIME_MASK if message.append_time else 0)
    body = struct.pack(">bb", message.magic, attributes)
    if message.magic:
        body += struct.pack(">q", message.timestamp)
    for part in (message.key, message.value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return ENTRY.pack(offset, len(body) + 4) + struct.pack(">I", zlib.crc32(body)) + body
