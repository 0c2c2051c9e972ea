"""A record as the lab shows it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypedDict

from ....coordinator.described import Describer, control_name, control_value, describer
from ....protocol import legacy, opening
from ....protocol.compression import NAMES
from ....protocol.errors import MalformedMessage
from ....protocol.records import NO_PRODUCER_ID, BatchAt, BatchHeader, Record
from ....storage.batch_info import BatchInfo
from ....storage.file_slice import read_whole
from ....storage.segment import Segment

HEADERS_MAX = 100


class HeaderView(TypedDict):
    """A header. `value`: as that of a record."""

    name: str
    value: str | None


class RecordView(TypedDict):
    """A record. `key` and `value`: as texts, or `0x` and hexadecimal digits if they are not printable; null stays null.
    `key_bytes` and `value_bytes`: how long they are, of which only the beginning may be shown. `headers`: the first
    100. `type` and `decoded`: what a record of an internal topic or a control record says. `batch_offset`: the base
    offset of its batch. `producer_id`: null without one. `problem`: why the batch at this offset cannot be read.
    """

    offset: int
    timestamp: int
    key: str | None
    value: str | None
    key_bytes: int | None
    value_bytes: int | None
    headers: list[HeaderView]
    type: str | None
    decoded: object
    batch_offset: int
    codec: str
    leader_epoch: int
    producer_id: int | None
    producer_epoch: int
    transactional: bool
    control: bool
    problem: str | None


Wanted = Callable[[Record], bool]


def text_of(data: bytes | None, shown: int) -> str | None:
    """The first `shown` bytes as a text if they are printable, else in hexadecimal digits."""
    if data is None:
        return None
    part = bytes(data[:shown])
    try:
        found = part.decode()
    except UnicodeDecodeError as error:
        if len(part) == len(data) or error.start < len(part) - 3:
            return "0x" + part.hex()
        found = part[: error.start].decode()  # a character is cut
    is_text = found.replace("\n", "").replace("\t", "").replace("\r", "").isprintable()
    return found if is_text else "0x" + part.hex()


class Viewer:
    """Shows the records of a topic. `shown`: how many bytes of keys and values are."""

    def __init__(self, topic: str, shown: int) -> None:
        self._describe: Describer | None = describer(topic)
        self._shown = shown

    def batch(
        self, segment: Segment, batch: BatchInfo, low: int, wanted: Wanted
    ) -> Generator[None, None, list[RecordView]]:
        """Returns the records of a batch from the offset `low` on that are wanted, a step for each chunk."""
        found: list[RecordView] = []
        base, header = batch.base_offset, batch.header
        try:
            data = read_whole(segment, batch)
            if header is None:
                for messages in legacy.contents(data):
                    plain = (Record(m.key, m.value, m.timestamp, m.offset) for m in messages)
                    found += [self._view(one, base, None) for one in plain if one.offset >= low and wanted(one)]
                    yield
                return found
            for some in opening.contents(data, BatchAt(0, header)):
                found += [self._view(one, base, header) for one in some if one.offset >= low and wanted(one)]
                yield
        except MalformedMessage as error:
            found.append({**self._view(Record(offset=max(low, base)), base, header), "problem": str(error)})
        return found

    def _view(self, record: Record, base: int, header: BatchHeader | None) -> RecordView:
        kind, decoded = (None, None) if header is None else self._decoded(record, header)
        key, value, shown = record.key, record.value, self._shown
        has_producer = header is not None and header.producer_id != NO_PRODUCER_ID
        return {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": text_of(key, shown),
            "value": text_of(value, shown),
            "key_bytes": None if key is None else len(key),
            "value_bytes": None if value is None else len(value),
            "headers": [
                {"name": name[:shown], "value": text_of(of, shown)} for name, of in record.headers[:HEADERS_MAX]
            ],
            "type": kind,
            "decoded": decoded,
            "batch_offset": base,
            "codec": NAMES[header.codec] if header is not None and header.codec < len(NAMES) else NAMES[0],
            "leader_epoch": -1 if header is None else header.partition_leader_epoch,
            "producer_id": header.producer_id if header is not None and has_producer else None,
            "producer_epoch": -1 if header is None else header.producer_epoch,
            "transactional": header is not None and header.is_transactional,
            "control": header is not None and header.is_control,
            "problem": None,
        }

    def _decoded(self, record: Record, header: BatchHeader) -> tuple[str | None, object]:
        try:
            if header.is_control:
                kind = control_name(record.key)
                return kind, None if kind is None else {"value": control_value(kind, record.value)}
            found = None if self._describe is None else self._describe(record)
        except MalformedMessage:
            return None, None
        return (None, None) if found is None else (found.type, {"key": found.key, "value": found.value})
