"""OffsetFetch, versions 1 to 10: what groups have committed.

2 all topics, and an error of the group's; 5 leader epochs; 6 flexible; 7 only stable offsets (KIP-447); 8 several groups (KIP-709);
9 members of consumer groups (KIP-848); 10 topics by id (KIP-848).
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import offsets
from ...coordinator.shard import Result
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.schema import NO_UUID
from ..context import Context

GROUP_ERROR_SINCE = 2
SEVERAL_SINCE = 8
TOPIC_IDS_SINCE = 10


async def handle(context: Context, request: Any) -> Any:
    r = messages.OffsetFetchResponse
    if context.version >= SEVERAL_SINCE:
        return r(groups=[await _fetch(context, group, request.require_stable) for group in request.groups])
    q = messages.OffsetFetchRequest
    topics = request.topics
    asked = q.OffsetFetchRequestGroup(
        group_id=request.group_id,
        member_id=None,
        member_epoch=-1,
        topics=None if topics is None else [q.OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes) for t in topics],
    )
    found = await _fetch(context, asked, request.require_stable)
    return _single(context, found)


def _single(context: Context, found: Any) -> Any:
    """A reply of the versions that know one group."""
    r = messages.OffsetFetchResponse
    topics = []
    for t in found.topics:
        parts = [
            r.OffsetFetchResponsePartition(
                partition_index=p.partition_index,
                committed_offset=p.committed_offset,
                committed_leader_epoch=p.committed_leader_epoch,
                metadata=p.metadata,
                error_code=p.error_code,
            )
            for p in t.partitions
        ]
        topics.append(r.OffsetFetchResponseTopic(name=t.name, partitions=parts))
    return r(topics=topics, error_code=found.error_code)


async def _fetch(context: Context, asked: Any, require_stable: bool) -> Any:
    """The answer for one group; topics that are unknown by their ids keep their places in it."""
    image = context.broker.groups.image
    unknown = []
    if context.version >= TOPIC_IDS_SINCE and asked.topics is not None:
        for topic in asked.topics:
            topic.name = image.topic_name(topic.topic_id)
        unknown = [t for t in asked.topics if t.name is None]
        wanted = messages.OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=asked.group_id,
            member_id=asked.member_id,
            member_epoch=asked.member_epoch,
            topics=[t for t in asked.topics if t.name is not None],
        )
    else:
        wanted = asked
    try:
        found = await _of_coordinator(context, wanted, require_stable)
    except ApiError as error:
        return _group_error(context, asked, error.code)
    if context.version >= TOPIC_IDS_SINCE:
        found.topics = [t for t in found.topics if _with_id(t, image)]
        found.topics += [_failed(t, Errors.UNKNOWN_TOPIC_ID) for t in unknown]
    return found


def _with_id(topic: Any, image: Any) -> bool:
    """Names a topic by its id; False for one that is gone."""
    topic.topic_id = image.topic_id(topic.name) or NO_UUID
    topic.name = ""
    return bool(topic.topic_id != NO_UUID)


async def _of_coordinator(context: Context, asked: Any, require_stable: bool) -> Any:
    groups = context.broker.groups
    if not require_stable:
        return groups.read(asked.group_id, lambda shard, as_of: offsets.fetch(shard, asked, as_of))
    try:
        return await groups.write(asked.group_id, lambda shard: Result(reply=offsets.fetch(shard, asked, None)))
    except ApiError as error:
        # Kafka answers here what makes a client look for the coordinator again
        raise ApiError(Errors.NOT_COORDINATOR) if error.code == Errors.COORDINATOR_NOT_AVAILABLE else error from None


def _failed(topic: Any, code: int) -> Any:
    r = messages.OffsetFetchResponse
    parts = [
        r.OffsetFetchResponsePartitions(partition_index=i, committed_offset=-1, committed_leader_epoch=-1, metadata="", error_code=int(code))
        for i in topic.partition_indexes
    ]
    return r.OffsetFetchResponseTopics(name=topic.name or "", topic_id=topic.topic_id, partitions=parts)


def _group_error(context: Context, asked: Any, code: int) -> Any:
    r = messages.OffsetFetchResponse
    if context.version >= GROUP_ERROR_SINCE:
        return r.OffsetFetchResponseGroup(group_id=asked.group_id, error_code=code)
    return r.OffsetFetchResponseGroup(group_id=asked.group_id, topics=[_failed(t, code) for t in asked.topics or ()])
