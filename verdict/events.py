"""What rules look at: connections that open and close, requests and replies, in the order in which a broker saw them.

A live broker and a trace give the same events. Messages are those of the codec, with one difference: the records of a
partition are a `BatchHead`, or None.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from ..protocol import messages as m
from ..protocol.structs import Struct

UNKNOWN: Final = "unknown"
S = TypeVar("S", bound=Struct)
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")  # of a batch
_MAGIC_AT: Final = 16
_TRANSACTIONAL: Final = 0x10


class BatchHead(NamedTuple):
    """What the header of the first record batch says. `size`: in bytes, of all batches of the partition; `crc`: of all
    that follows it, records, times and sequence numbers; -1 where a trace does not say it.
    """

    size: int
    attributes: int = 0
    records: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    crc: int = -1

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)


Batch = tuple[str | bytes, int, BatchHead]
"""The topic's name or id, the partition, and the head."""


def batch_head(records: object) -> BatchHead | None:
    """Returns what the records of a message begin with: bytes, or a head already."""
    if records is None or isinstance(records, BatchHead):
        return records
    size = len(records)  # type: ignore[arg-type]  # bytes, or LateRecords
    if not isinstance(records, bytes | bytearray | memoryview) or size < _HEADER.size or records[_MAGIC_AT] != 2:
        return BatchHead(size)
    _, _, _, _, crc, attributes, _, _, _, producer_id, epoch, sequence, count = _HEADER.unpack_from(records)
    return BatchHead(size, attributes, count, producer_id, epoch, sequence, crc)


@dataclass(slots=True)
class Event:
    """`at_ms`: the broker's time; `mono_us`: a clock that only goes forward, for how long something took."""

    connection: int
    at_ms: int
    mono_us: int


@dataclass(slots=True)
class Opened(Event):
    """`address`: the client's. `to`: the broker's, empty if it is not known."""

    address: str = ""
    to: str = ""
    listener: str = ""


@dataclass(slots=True)
class Closed(Event):
    """`by`: client or broker, empty if it is not known. `reason`: of the broker (docs/reference/trace.md). `idle_us`:
    since its last request or reply. `unanswered`: the request whose reply was awaited; None without one.
    """

    by: str = ""
    reason: str = ""
    idle_us: int = 0
    unanswered: Request | None = None


@dataclass(slots=True)
class Refused(Event):
    """A frame that is no request of a version that is served. `key`, `version`: None if it is too short for them."""

    address: str = ""
    key: int | None = None
    version: int | None = None
    correlation_id: int | None = None
    reason: str = ""


@dataclass(slots=True)
class Request(Event):
    """`exchange`: the number that it shares with its reply. `message`: None if no rule asks for it, or if it cannot be
    decoded. `is_first`: of its connection, if that was seen from its beginning; `listener`: where that came, empty
    otherwise. `client_is_whole`: whether its client was seen from its beginning as far as is known: all its connections
    were so far, and no events are missing. `text`: of a message that was too large to be kept. `batches`: see the
    function of that name.
    """

    exchange: int = 0
    api: str = ""
    key: int = -1
    version: int = 0
    correlation_id: int = 0
    client_id: str | None = None
    address: str = ""
    software: str = UNKNOWN
    software_version: str = UNKNOWN
    size: int = 0
    message: Struct | None = None
    is_first: bool = False
    client_is_whole: bool = False
    listener: str = ""
    text: str = ""
    batches: list[Batch] | None = None

    def of(self, kind: type[S]) -> S | None:
        """The message, if it is of this class."""
        return self.message if isinstance(self.message, kind) else None

    def is_elsewhere(self, before: Request) -> bool:
        """Whether it came over another connection than one before it: the first was lost, and its reply can be, or its
        broker was out of reach for a while.
        """
        return self.connection != before.connection


@dataclass(slots=True)
class Reply(Event):
    """`message`: None if no rule asks for it, if nothing was sent, or if faults have damaged it. `errors`: see
    `replies.errors_of`. `waiting`: the API keys of requests that had come behind its own and waited for it, None if
    there were none, or if it was not put off.
    """

    exchange: int = 0
    size: int = 0
    throttle_time_ms: int = 0
    message: Struct | None = None
    text: str = ""
    errors: list[int] | None = None
    waiting: list[int] | None = None

    def of(self, kind: type[S]) -> S | None:
        """The message, if it is of this class."""
        return self.message if isinstance(self.message, kind) else None


def batches(request: Request) -> list[Batch]:
    """The batches of a Produce request that have a producer id."""
    if request.batches is None:
        produced = request.of(m.ProduceRequest)
        request.batches = [
            (topic.name or topic.topic_id, one.index, head)
            for topic in (produced.topic_data if produced is not None else ())
            for one in topic.partition_data
            if (head := batch_head(one.records)) is not None and head.producer_id >= 0
        ]
    return request.batches


def leave_records(event: Request | Reply) -> None:
    """Replaces the records of a message by the head of their first batch; `size` is then that of the rest."""
    message = event.message
    if isinstance(message, m.ProduceRequest):
        event.message, records_bytes = _produced(message)
    elif isinstance(message, m.FetchResponse):
        event.message, records_bytes = _fetched(message)
    elif isinstance(message, m.ShareFetchResponse):
        event.message, records_bytes = _shared(message)
    else:
        return
    event.size = max(event.size - records_bytes, 0)


def _produced(message: m.ProduceRequest) -> tuple[Struct, int]:
    r = m.ProduceRequest
    topics, size = [], 0
    for topic in message.topic_data:
        partitions = []
        for one in topic.partition_data:
            head = batch_head(one.records)
            size += head.size if head is not None else 0
            partitions.append(r.PartitionProduceData(index=one.index, records=head))
        topics.append(r.TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=partitions))
    given = message.transactional_id, message.acks, message.timeout_ms
    return r(*given, topic_data=topics), size


def _fetched(message: m.FetchResponse) -> tuple[Struct, int]:
    a = m.FetchResponse
    topics, size = [], 0
    for topic in message.responses:
        partitions = []
        for one in topic.partitions:
            head = batch_head(one.records)
            size += head.size if head is not None else 0
            part = a.PartitionData(partition_index=one.partition_index, error_code=one.error_code)
            if one.error_code:
                part.current_leader = one.current_leader
            partitions.append(part)
        topics.append(a.FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions))
    kept = a(error_code=message.error_code, session_id=message.session_id, responses=topics)
    return kept, size


def _shared(message: m.ShareFetchResponse) -> tuple[Struct, int]:
    a = m.ShareFetchResponse
    topics, size = [], 0
    for topic in message.responses:
        partitions = []
        for one in topic.partitions:
            head = batch_head(one.records)
            size += head.size if head is not None else 0
            part = a.PartitionData(partition_index=one.partition_index, error_code=one.error_code)
            part.acknowledge_error_code, part.acquired_records = one.acknowledge_error_code, one.acquired_records
            partitions.append(part)
        topics.append(a.ShareFetchableTopicResponse(topic_id=topic.topic_id, partitions=partitions))
    kept = a(error_code=message.error_code, responses=topics)
    kept.acquisition_lock_timeout_ms = message.acquisition_lock_timeout_ms
    return kept, size
