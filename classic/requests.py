"""Fetch and ListOffsets in whatever version a broker has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..protocol import messages
from ..protocol.errors import MalformedMessage
from ..protocol.trees import tree
from .connection import Connection
from .errors import UNKNOWN, check
from .message import MessageSet

LATEST_TIME, EARLIEST_TIME = -1, -2


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """`max_size`: how many bytes of the partition are returned at most."""

    topic: str
    partition: int
    offset: int
    max_size: int


def fetched(
    connection: Connection, wanted: Sequence[FetchRequest], max_wait_ms: int, min_bytes: int
) -> list[MessageSet]:
    """Returns a set for each request, in their order. Raises OSError and MalformedMessage."""
    version = connection.version_of("Fetch")
    r = messages.FetchRequest
    topics: dict[str, list[messages.FetchRequest.FetchPartition]] = {}
    for one in wanted:
        row = r.FetchPartition(partition=one.partition, fetch_offset=one.offset, partition_max_bytes=one.max_size)
        topics.setdefault(one.topic, []).append(row)
    request = r(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        topics=[r.FetchTopic(topic=topic, partitions=parts) for topic, parts in topics.items()],
    )
    reply = connection.ask("Fetch", version, request)
    found = {(topic.topic, part.partition_index): part for topic in reply.responses for part in topic.partitions}
    sets = []
    for one in wanted:
        part = found.get((one.topic, one.partition))
        where = f"{one.topic}-{one.partition} from offset {one.offset}"
        if part is None:
            sets.append(MessageSet(b"", one.offset, reply.error_code or UNKNOWN, where=where))
        else:
            data = part.records or b""
            sets.append(MessageSet(data, one.offset, part.error_code, part.high_watermark, where))
    return sets


def offsets_before(connection: Connection, topic: str, partition: int, time_ms: int, max_num_offsets: int) -> list[int]:
    """Returns offsets up to a time, the largest first: those at which segments begin, and the end for LATEST_TIME.

    A broker of Kafka 4 does not tell segments: then it is the offset of the first message since that time (the end if
    there is none), and the first offset of the log. Raises KafkaError, OSError and MalformedMessage.
    """
    version = connection.version_of("ListOffsets")
    if version:
        times = (time_ms,) if time_ms == EARLIEST_TIME else (time_ms, EARLIEST_TIME)
        offsets = [_offset_at(connection, version, topic, partition, time) for time in times]
        return sorted(set(offsets), reverse=True)[:max_num_offsets]
    part = _asked(connection, 0, topic, partition, time_ms, max_num_offsets)
    return list(part.old_style_offsets)


def _offset_at(connection: Connection, version: int, topic: str, partition: int, time_ms: int) -> int:
    found = _asked(connection, version, topic, partition, time_ms)
    if found.offset < 0:
        found = _asked(connection, version, topic, partition, LATEST_TIME)
    return int(found.offset)


def _asked(
    connection: Connection, version: int, topic: str, partition: int, time_ms: int, max_num_offsets: int = 1
) -> Any:
    r = messages.ListOffsetsRequest
    part = tree("ListOffsetsRequest", version).at("topics.partitions").cls(partition_index=partition, timestamp=time_ms)
    if version == 0:
        part.max_num_offsets = max_num_offsets
    request = r(replica_id=-1, topics=[r.ListOffsetsTopic(name=topic, partitions=[part])])
    reply = connection.ask("ListOffsets", version, request)
    answers = [part for one in reply.topics for part in one.partitions]
    if len(answers) != 1:
        raise MalformedMessage("topics", f"{len(answers)} answers about one partition")
    (found,) = answers
    check(found.error_code, f"{topic}-{partition}")
    return found
