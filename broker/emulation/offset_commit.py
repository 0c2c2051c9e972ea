"""OffsetCommit of an emulated release, versions 0 and 1.

Version 0 stores offsets in ZooKeeper, each in the node of its partition (`zookeeper.connect`). Without a ZooKeeper each
partition gets the error of a broker without it: since 3.3 UNSUPPORTED_VERSION, as with KRaft; before, that of a broker
that has lost its ZooKeeper.

Version 1 is stored like the later ones. It says of each offset when it was committed, from which the retention time
counts; -1 stands for now. 0.8.2 does not look at that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, cast

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..net.api import Api, Handler
from ..net.context import Context
from .outcomes import outcome_of
from .releases import Release

if TYPE_CHECKING:
    from ..zookeeper.zookeeper import ZooKeeper

KRAFT_SINCE = (3, 3)
NOW = -1
EXPIRED = -2  # a retention time; -1 stands for that of the broker


class Timed(Protocol):
    """A partition of version 1 of the request."""

    partition_index: int
    commit_timestamp: int


def without_zookeeper(release: Release) -> int:
    """Returns the error of requests that need ZooKeeper."""
    unknown = release.is_before(*KRAFT_SINCE)
    return int(Errors.UNKNOWN_SERVER_ERROR if unknown else Errors.UNSUPPORTED_VERSION)


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    def emulated(context: Context, request: messages.OffsetCommitRequest) -> object:
        if context.version == 1 and not release.is_before(0, 9):
            return _commit_timed(handle, context, request)
        if context.version > 0:
            return handle(context, request)
        zookeeper = context.broker.zookeeper
        if zookeeper is None:
            raise ApiError(without_zookeeper(release))
        return _commit(context, request, zookeeper)

    return emulated


async def _commit_timed(
    handle: Handler, context: Context, request: messages.OffsetCommitRequest
) -> messages.OffsetCommitResponse:
    """Commits what has the same commit time together."""
    r = messages.OffsetCommitRequest
    by_time: dict[int, list[messages.OffsetCommitRequest.OffsetCommitRequestTopic]] = {}
    for topic in request.topics:
        for part in cast("list[Timed]", topic.partitions):
            topics = by_time.setdefault(part.commit_timestamp, [])
            if not topics or topics[-1].name != topic.name:
                topics.append(r.OffsetCommitRequestTopic(name=topic.name, partitions=[]))
            topics[-1].partitions.append(cast("messages.OffsetCommitRequest.OffsetCommitRequestPartition", part))
    if by_time.keys() <= {NOW}:
        found: messages.OffsetCommitResponse = await outcome_of(handle(context, request))
        return found
    codes: dict[tuple[str, int], int] = {}
    for time, topics in by_time.items():
        asked = r(
            group_id=request.group_id,
            generation_id_or_member_epoch=request.generation_id_or_member_epoch,
            member_id=request.member_id,
            retention_time_ms=NOW if time == NOW else _retention_ms(context, time),
            topics=topics,
        )
        outcome: messages.OffsetCommitResponse = await outcome_of(handle(context, asked))
        codes |= {(t.name, p.partition_index): p.error_code for t in outcome.topics for p in t.partitions}
    return _answered(request, codes)


def _retention_ms(context: Context, commit_time_ms: int) -> int:
    """Returns the rest of the retention time of an offset."""
    minutes: int = context.broker.settings.value("offsets.retention.minutes")
    rest = commit_time_ms + minutes * 60_000 - context.broker.schedule.now_ms()
    return rest if rest >= 0 else EXPIRED


def _answered(
    request: messages.OffsetCommitRequest, codes: dict[tuple[str, int], int]
) -> messages.OffsetCommitResponse:
    r = messages.OffsetCommitResponse
    response = r(topics=[])
    for topic in request.topics:
        parts = [
            r.OffsetCommitResponsePartition(
                partition_index=part.partition_index, error_code=codes[topic.name, part.partition_index]
            )
            for part in topic.partitions
        ]
        response.topics.append(r.OffsetCommitResponseTopic(name=topic.name, partitions=parts))
    return response


async def _commit(
    context: Context, request: messages.OffsetCommitRequest, zookeeper: ZooKeeper
) -> messages.OffsetCommitResponse:
    """Commits to ZooKeeper; partitions that a topic does not have too, as Kafka does."""
    r = messages.OffsetCommitResponse
    length_max = context.broker.settings.value("offset.metadata.max.bytes")
    response, offsets = r(topics=[]), dict[tuple[str, int], int]()
    for topic in request.topics:
        is_known = topic.name in context.broker.image.topics
        out = r.OffsetCommitResponseTopic(name=topic.name, partitions=[])
        response.topics.append(out)
        for part in topic.partitions:
            error = Errors.NONE
            if not is_known:
                error = Errors.UNKNOWN_TOPIC_OR_PARTITION
            elif len(part.committed_metadata or "") > length_max:
                error = Errors.OFFSET_METADATA_TOO_LARGE
            else:
                offsets[topic.name, part.partition_index] = part.committed_offset
            answer = r.OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=int(error))
            out.partitions.append(answer)
    if offsets and not await zookeeper.commit(request.group_id, offsets):
        for out in response.topics:
            for answer in out.partitions:
                if not answer.error_code:
                    answer.error_code = int(Errors.UNKNOWN_SERVER_ERROR)
    return response
