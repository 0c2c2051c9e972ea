"""Requests of stories about share groups that lease records."""

from __future__ import annotations

from typing import Any

from ottla.coordinator.format import share_format
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.schema import NO_UUID

from ..differential import Pair
from ..transcripts import Asks
from .share import Ids

SETTINGS: dict[str, object] = {
    "group.share.assignment.interval.ms": 0,
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.min.session.timeout.ms": 1000,
    "group.share.max.share.sessions": 8,
    "group.share.max.size": 3,
    "share.coordinator.snapshot.update.records.per.snapshot": 5,
    "share.coordinator.state.topic.num.partitions": 2,
    "errors.deadletterqueue.auto.create.topics.enable": True,
    "log.retention.ms": -1,  # what is produced bears times long ago
}


F = m.ShareFetchRequest


Acks = list[tuple[int, int, list[int]]]


def fetched(
    pair: Pair,
    group: str,
    ids: Ids,
    epoch: int,
    acks: Acks | None = None,
    *,
    version: int = 2,
    partitions: tuple[int, ...] = (0,),
    named: bool = True,
    forgotten: tuple[int, ...] = (),
    member: str | None = "m1",
    **more: Any,
) -> Any:
    limits: dict[str, Any] = {
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "max_records": 500,
        "batch_size": 500,
    }

    def make(side: int) -> Any:
        parts = [F.FetchPartition(partition_index=p, acknowledgement_batches=batches(F, acks)) for p in partitions]
        request = F(group_id=group, member_id=member, share_session_epoch=epoch, **{**limits, **more})
        if named:
            request.topics = [F.FetchTopic(topic_id=ids[side], partitions=parts)]
        if forgotten:
            request.forgotten_topics_data = [F.ForgottenTopic(topic_id=ids[side], partitions=list(forgotten))]
        return request

    return pair.both("ShareFetch", version, make)[0]


def batches(request: Any, acks: Acks | None) -> list[Any]:
    return [
        request.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=types)
        for a, b, types in acks or []
    ]


def acknowledged(
    pair: Pair,
    group: str,
    ids: Ids,
    epoch: int,
    acks: Acks,
    *,
    version: int = 2,
    member: str | None = "m1",
    index: int = 0,
    **more: Any,
) -> Any:
    r = m.ShareAcknowledgeRequest

    def make(side: int) -> Any:
        part = r.AcknowledgePartition(partition_index=index, acknowledgement_batches=batches(r, acks))
        request = r(group_id=group, member_id=member, share_session_epoch=epoch, **more)
        request.topics = [r.AcknowledgeTopic(topic_id=ids[side], partitions=[part])]
        return request

    return pair.both("ShareAcknowledge", version, make)[0]


def acquired(reply: Any) -> list[tuple[int, int, int]]:
    return [
        (a.first_offset, a.last_offset, a.delivery_count)
        for t in reply.responses
        for p in t.partitions
        for a in p.acquired_records
    ]


def offsets(pair: Pair, group: str, version: int = 1) -> Any:
    r = m.DescribeShareGroupOffsetsRequest
    request = r(groups=[r.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)])
    return pair.ask("DescribeShareGroupOffsets", version, request)[0]


# what is written


def written(wire: Asks, partitions: int) -> list[tuple[Any, Any]]:
    """The records of `__share_group_state`, without what is random or a moment."""
    topics = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="__share_group_state")])
    (found,) = wire.ask("Metadata", 12, topics).topics
    pairs = []
    for index in range(partitions):
        r = m.FetchRequest
        part = r.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 24)
        request = r(max_wait_ms=100, min_bytes=1, topics=[r.FetchTopic(topic_id=found.topic_id, partitions=[part])])
        (reply,) = wire.ask("Fetch", 16, request).responses[0].partitions
        for at in records.batches(bytes(reply.records)):
            for record in records.decode(bytes(reply.records), at):
                decoded = share_format().decode(record)
                assert decoded is not None
                pairs.append(decoded)
    for key, value in pairs:
        key.topic_id = NO_UUID
        if value is not None and hasattr(value, "create_timestamp"):
            value.create_timestamp = value.write_timestamp = value.create_timestamp == value.write_timestamp
    return pairs
