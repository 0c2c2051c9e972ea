"""OffsetFetch: the committed offsets of one group."""

from __future__ import annotations

from ....protocol import messages
from ....protocol.errors import Errors
from ....protocol.schema import NO_UUID
from ...timeline import TimelineDict
from ..format import TOPIC_ID, Key, Stored
from ..state import ShardState

NO_OFFSET = -1


def fetch(
    shard: ShardState, request: messages.OffsetFetchRequest.OffsetFetchRequestGroup, as_of: int | None
) -> messages.OffsetFetchResponse.OffsetFetchResponseGroup:
    """Returns the committed offsets of a group, for the requested topics or for all. `as_of` None: the newest ones,
    including unstable offsets. Raises ApiError.
    """
    r = messages.OffsetFetchResponse
    response = r.OffsetFetchResponseGroup(group_id=request.group_id)
    group = shard.groups.get(request.group_id, None, as_of)
    found = None
    if group is not None and group.has_readable_offsets(request.member_id, request.member_epoch, as_of):
        found = shard.offsets.by_group.get(request.group_id)
    if request.topics is None:
        for name, partitions in _by_topic(found, as_of).items():
            topic = r.OffsetFetchResponseTopics(name=name)
            topic.partitions = [_fetched(shard, request.group_id, name, p, c, as_of) for p, c in partitions.items()]
            response.topics.append(topic)
        return response
    for asked in request.topics:
        topic = r.OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id)
        for index in asked.partition_indexes:
            committed: Stored | None = found.get((asked.name, index), None, as_of) if found is not None else None
            if committed is not None and NO_UUID != committed[TOPIC_ID] != asked.topic_id != NO_UUID:
                committed = None
            topic.partitions.append(_fetched(shard, request.group_id, asked.name, index, committed, as_of))
        response.topics.append(topic)
    return response


def _by_topic(found: TimelineDict[Key, Stored] | None, as_of: int | None) -> dict[str, dict[int, Stored]]:
    topics: dict[str, dict[int, Stored]] = {}
    for (name, index), committed in found.items(as_of) if found is not None else ():
        topics.setdefault(name, {})[index] = committed
    return topics


def _fetched(
    shard: ShardState, group_id: str, name: str, index: int, committed: Stored | None, as_of: int | None
) -> messages.OffsetFetchResponse.OffsetFetchResponsePartitions:
    p = messages.OffsetFetchResponse.OffsetFetchResponsePartitions
    if as_of is None and shard.offsets.is_pending(group_id, (name, index)):
        unstable = int(Errors.UNSTABLE_OFFSET_COMMIT)
        return p(
            partition_index=index,
            error_code=unstable,
            committed_offset=NO_OFFSET,
            committed_leader_epoch=-1,
            metadata="",
        )
    if committed is None:
        return p(partition_index=index, committed_offset=NO_OFFSET, committed_leader_epoch=-1, metadata="")
    _, offset, leader_epoch, metadata, *_ = committed
    return p(partition_index=index, committed_offset=offset, committed_leader_epoch=leader_epoch, metadata=metadata)
