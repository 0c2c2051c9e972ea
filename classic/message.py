"""Messages, and sets of them as producers send and brokers return them: of formats 0 and 1, or batches (format 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..protocol import compression, legacy, records
from ..protocol.buffers import Data
from ..protocol.errors import MalformedMessage
from .errors import check

CODECS = {name: codec for codec, name in enumerate(compression.NAMES)}


@dataclass(frozen=True, slots=True)
class Message:
    """`value`: None for a deletion in a compacted topic. `key`: None for none."""

    value: bytes | None
    key: bytes | None = None


class MessageAndOffset(NamedTuple):
    message: Message
    offset: int

    @property
    def next_offset(self) -> int:
        return self.offset + 1


class MessageSet:
    """What a broker returned of a partition: an iterator over MessageAndOffset, from the offset on that was asked for.

    Iterating raises KafkaError if the broker returned an error (OffsetOutOfRange: there is no such offset), and
    MalformedMessage for bytes that are no messages.

    `error_code`, `high_watermark`: as returned. `next_offset`: from where to go on. `is_partial`: there are bytes, but
    of no whole message, so that the buffer was too small.
    """

    def __init__(self, data: Data, offset: int, error_code: int = 0, high_watermark: int = -1, where: str = "") -> None:
        self.error_code, self.high_watermark = error_code, high_watermark
        self.size_in_bytes = len(data)
        self.next_offset = offset
        self._where = where
        self._messages: list[MessageAndOffset] = []
        self.valid_bytes = 0 if error_code else self._read(memoryview(data), offset)
        self.is_partial = self.size_in_bytes > 0 and not error_code and not self.valid_bytes

    def __iter__(self) -> Iterator[MessageAndOffset]:
        check(self.error_code, self._where)
        return iter(self._messages)

    def _read(self, data: memoryview, first: int) -> int:
        """Returns how many bytes whole messages have."""
        position = 0
        while position + records.MAGIC_AT < len(data):
            if data[position + records.MAGIC_AT] < records.MAGIC:
                found = list(legacy.entries(data, position))
                end = found[-1].position + found[-1].size if found else position
                messages = legacy.decode(data[position:end])
                self._take([(one.offset, one.key, one.value) for one in messages], first)
            else:
                at = next(records.batches(data, position), None)
                end = position if at is None else position + at.header.size
                if at is not None:
                    self._open(data, at, first)
            if end == position:
                break
            position = end
        return position

    def _open(self, data: memoryview, at: records.BatchAt, first: int) -> None:
        if records.computed_crc(data, at.position, at.header.size) != at.header.crc:
            raise MalformedMessage("records", f"wrong CRC in the batch at offset {at.header.base_offset}")
        if not at.header.is_control:
            self._take([(one.offset, one.key, one.value) for one in records.decode(data, at)], first)
        self.next_offset = max(self.next_offset, at.header.next_offset)

    def _take(self, found: Sequence[tuple[int, bytes | None, bytes | None]], first: int) -> None:
        for offset, key, value in found:
            if offset >= first:
                self._messages.append(MessageAndOffset(Message(value, key), offset))
                self.next_offset = offset + 1


def encoded(messages: Sequence[Message], produce_version: int, codec: int, timestamp_ms: int) -> bytes:
    """Returns messages in the format that a version of Produce has."""
    if produce_version >= 3:
        made = [records.Record(one.key, one.value, timestamp_ms) for one in messages]
        return bytes(records.encode(made, records.Template(codec=codec)))
    magic = 1 if produce_version == 2 else 0
    time = timestamp_ms if magic else records.NO_TIMESTAMP
    return legacy.encode([legacy.Message(i, m.key, m.value, magic, time) for i, m in enumerate(messages)], codec)
