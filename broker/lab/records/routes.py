"""Records: reads some of a partition, and writes one."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypedDict

from ....coordinator.metadata.format import CLUSTER_METADATA
from ....protocol import messages
from ....protocol.records import BatchAt, Record, encode, header_at
from ....storage import timestamps
from ....storage.log import Log
from ...internal_topics import is_internal
from ...later import Later, drive
from ...replica.partition import Partition
from ...steps import Allowance, TooLong, at_once, opened_in_steps
from ..lab import Lab
from ..routes import Refused, route
from ..shapes import INT64, Invalid, Range, Size
from .views import RecordView, Viewer, Wanted

REPLY_BYTES_MAX = 1 << 20  # of keys, values and headers, beyond which a reply ends with the record that it has
SEARCHED_BYTES_MAX = 16 << 20  # of the log that one request looks through
STEPS_AT_ONCE = 16  # of 16 KiB of records each, in a turn of the loop
ACKS_LEADER = 1
Encoding = Literal["text", "hex", "base64"]
DECODERS: dict[str, Callable[[str], bytes]] = {
    "text": str.encode,
    "hex": bytes.fromhex,
    "base64": lambda text: base64.b64decode(text, validate=True),
}


@dataclass(frozen=True)
class RecordsAsked:
    """Which records of a partition."""

    topic: str
    partition: Annotated[int, "The number of the partition.", Range(0)]
    offset: Annotated[
        int | None,
        "The first offset; a negative one counts from the end: -10 for the last ten. Default: the log start offset.",
        Range(-INT64, INT64),
    ] = None
    timestamp: Annotated[
        int | None, "Instead of an offset: the first record at or after this time, in milliseconds.", Range(0, INT64)
    ] = None
    key: Annotated[str | None, "Only records with this key, as a text, or as `0x` and hexadecimal digits."] = None
    contains: Annotated[str | None, "Only records whose key or value contains this text.", Size(1)] = None
    limit: Annotated[int, "How many records at most.", Range(1, 1000)] = 50
    shown: Annotated[int, "How many bytes of each key and value are shown.", Range(1, REPLY_BYTES_MAX)] = 4096

    def __post_init__(self) -> None:
        if self.offset is not None and self.timestamp is not None:
            raise Invalid("timestamp", "cannot be given beside offset")


class RecordsView(TypedDict):
    """Records in the order of their offsets, also those above the high watermark. `next`: the offset from where a
    search goes on, or where the next record will be; `is_end`: whether the end of the log was reached.
    """

    topic: str
    partition: int
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    log_end_offset: int
    records: list[RecordView]
    next: int
    is_end: bool


@dataclass(frozen=True)
class NewRecord:
    """A record to write."""

    topic: str
    partition: Annotated[int, "The number of the partition.", Range(0)] = 0
    key: Annotated[str | None, "The key; without one it is null."] = None
    value: Annotated[str | None, "The value; without one it is null, a tombstone."] = None
    headers: Annotated[dict[str, str | None], "Headers by name.", Size(0, 100)] = field(default_factory=dict)
    timestamp: Annotated[int | None, "Milliseconds since 1970; default: now.", Range(0, INT64)] = None
    encoding: Annotated[Encoding, "How the key, the value and the values of headers are written."] = "text"


class WrittenView(TypedDict):
    """Where a record was written. Consumers read it when the high watermark is above its offset."""

    topic: str
    partition: int
    offset: int
    high_watermark: int


ABSENT = {404: "the topic or the partition does not exist", 409: "the log cannot be read now"}


@route("GET /v1/records/{topic}/{partition}", example=RecordsAsked("orders", 0, limit=10), errors=ABSENT)
def list_records(lab: Lab, asked: RecordsAsked) -> Later[RecordsView]:
    """Shows records of a partition, by offset, time or key; those of internal topics are decoded. A search looks
    through 16 MiB of the log, and says in `next` where the next one goes on.
    """
    return drive(_read(lab, asked))


@route(
    "POST /v1/records/{topic}",
    example=NewRecord("orders", key="a", value="first", headers={"by": "lab"}),
    errors=ABSENT | {409: "the record is refused, as if a producer had sent it"},
)
def write_record(lab: Lab, asked: NewRecord) -> WrittenView:
    """Writes a record. It does not wait for the high watermark."""
    partition = _partition(lab, asked.topic, asked.partition)
    if is_internal(asked.topic) or asked.topic == CLUSTER_METADATA:
        raise Refused(409, f"{asked.topic} is an internal topic, which only the broker writes")
    now = lab.broker.schedule.now_ms()
    record = Record(
        _bytes("key", asked.key, asked.encoding),
        _bytes("value", asked.value, asked.encoding),
        now if asked.timestamp is None else asked.timestamp,
    )
    record.headers = [(name, _bytes("headers", one, asked.encoding)) for name, one in asked.headers.items()]
    data, answer = encode([record]), messages.ProduceResponse.PartitionProduceResponse()
    at, steps = BatchAt(0, header_at(data)), Allowance(len(data))
    lab.broker.appender.append(partition, data, at, ACKS_LEADER, answer, None, steps)
    lab.broker.turn.settle()
    return {
        "topic": asked.topic,
        "partition": asked.partition,
        "offset": answer.base_offset,
        "high_watermark": partition.high_watermark,
    }


def _bytes(place: str, text: str | None, encoding: Encoding) -> bytes | None:
    try:
        return None if text is None else DECODERS[encoding](text)
    except (ValueError, binascii.Error) as error:
        raise Invalid(place, f"is not written as {encoding}: {error}") from None


def _partition(lab: Lab, topic: str, index: int) -> Partition:
    broker = lab.broker
    found = broker.partitions.by_name.get((topic, index))
    if topic == CLUSTER_METADATA and index == 0:
        found = broker.metadata.partition
    if found is None:
        raise LookupError(f"partition {topic}-{index} does not exist")
    return found


async def _read(lab: Lab, asked: RecordsAsked) -> RecordsView:
    partition = _partition(lab, asked.topic, asked.partition)
    log = partition.open_log()
    at = await _first(lab, log, asked)
    found = _Found(lab, log, asked)
    while not found.is_full and at < log.end_offset:
        before = at
        at = await found.some(at)
        if at == before:
            at = log.end_offset  # there are no more batches
        await lab.broker.turn.next()
    kept = found.fitting()
    if len(kept) < len(found.records):
        at = kept[-1]["offset"] + 1
    return {
        "topic": asked.topic,
        "partition": asked.partition,
        "log_start_offset": partition.start_offset,
        "last_stable_offset": partition.last_stable_offset,
        "high_watermark": partition.high_watermark,
        "log_end_offset": partition.end_offset,
        "records": kept,
        "next": at,
        "is_end": at >= log.end_offset,
    }


class _Found:
    """The records that were found so far, and how much was read for them."""

    def __init__(self, lab: Lab, log: Log, asked: RecordsAsked) -> None:
        self.records: list[RecordView] = []
        self._turn, self._log, self._limit = lab.broker.turn, log, asked.limit
        self._viewer, self._wanted = Viewer(asked.topic, asked.shown), _wanted(asked)
        self._searched = self._size = 0

    @property
    def is_full(self) -> bool:
        enough = len(self.records) >= self._limit or self._size >= REPLY_BYTES_MAX
        return enough or self._searched >= SEARCHED_BYTES_MAX

    async def some(self, at: int) -> int:
        """Reads the batches from an offset on, as many as one turn of the loop takes; returns the offset after them."""
        allowance = Allowance(STEPS_AT_ONCE)
        for segment, batch in self._log.batches_from(at):
            has_turn = allowance.left == STEPS_AT_ONCE
            try:
                records = at_once(self._viewer.batch(segment, batch, at, self._wanted), allowance)
            except TooLong:
                if not has_turn:
                    return at
                with segment.held():
                    records = await opened_in_steps(self._turn, self._viewer.batch(segment, batch, at, self._wanted))
            self.records += records
            self._searched += batch.size
            self._size += sum(map(_size, records))
            at = batch.last_offset + 1
            if allowance.left <= 0 or self.is_full:
                break
        return at

    def fitting(self) -> list[RecordView]:
        """The first records, at most so many as a reply may have; at least one."""
        size = 0
        for count, one in enumerate(self.records[: self._limit], 1):
            size += _size(one)
            if size >= REPLY_BYTES_MAX:
                return self.records[:count]
        return self.records[: self._limit]


def _size(record: RecordView) -> int:
    headers = sum(len(one["name"]) + len(one["value"] or "") for one in record["headers"])
    return len(record["key"] or "") + len(record["value"] or "") + headers


async def _first(lab: Lab, log: Log, asked: RecordsAsked) -> int:
    """The offset where reading begins."""
    if asked.timestamp is not None:
        found = await opened_in_steps(lab.broker.turn, timestamps.first_from(log, asked.timestamp))
        return log.end_offset if found is None else found.offset
    if asked.offset is None:
        return log.start_offset
    at = log.end_offset + asked.offset if asked.offset < 0 else asked.offset
    return min(max(at, log.start_offset), log.end_offset)


def _wanted(asked: RecordsAsked) -> Wanted:
    key = None if asked.key is None else _key(asked.key)
    part = None if asked.contains is None else asked.contains.encode("utf-8", "replace")

    def test(record: Record) -> bool:
        if key is not None and record.key != key:
            return False
        return part is None or part in (record.key or b"") or part in (record.value or b"")

    return test


def _key(text: str) -> bytes:
    try:
        return bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode("utf-8", "replace")
    except ValueError as error:
        raise Invalid("key", f"is not written in hexadecimal digits: {error}") from None
