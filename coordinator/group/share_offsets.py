"""Share-partitions of a share group as the group coordinator keeps them: initialised, altered, deleted.

Their state is the share coordinator's. What is done to it takes two steps: a record here says what is under way, the caller has the share
coordinator do it, and a second record says that it was done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..format import CoordinatorRecord
from ..shard import Result
from .share import NOTHING, UNKNOWN_NAME, Initialization, ShareGroup, TopicState, combined, initialization_record, without
from .share_heartbeat import initializing_record, share_group

if TYPE_CHECKING:
    from .shard import GroupShard

Topics = Mapping[bytes, frozenset[int]]
"""Partitions by topic id."""


def _record(shard: GroupShard, group_id: str, found: Initialization) -> CoordinatorRecord:
    return initialization_record(group_id, found, shard.env.image)


# initialising


def initialized(shard: GroupShard, group_id: str, topics: Topics) -> Result:
    """The share coordinator knows these share-partitions now."""
    if not topics or not isinstance(shard.groups.get(group_id), ShareGroup):
        return Result()
    before = shard.initializations.get(group_id, NOTHING)
    image, now = shard.env.image, shard.env.now_ms()
    new = {topic: TopicState(image.topic_name(topic) or UNKNOWN_NAME, of, now) for topic, of in topics.items()}
    after = Initialization(without(before.initializing, topics), combined(before.initialized, new), before.deleting)
    return Result([_record(shard, group_id, after)])


def uninitialized(shard: GroupShard, group_id: str, topics: Topics) -> Result:
    """The share coordinator did not take these share-partitions."""
    before = shard.initializations.get(group_id, NOTHING)
    if not before.initializing or not topics:
        return Result()
    return Result([_record(shard, group_id, before._replace(initializing=without(before.initializing, topics)))])


def initialized_partitions(shard: GroupShard, group_id: str, as_of: int) -> dict[bytes, frozenset[int]]:
    found = shard.initializations.get(group_id, NOTHING, as_of)
    return {topic: state.partitions for topic, state in found.initialized.items()}


# altering


def alter(shard: GroupShard, request: Any) -> Result:
    """AlterShareGroupOffsets; replies with the response, and what is to be initialised anew. ApiError."""
    group = share_group(shard, request.group_id, create=True)
    if not group.is_empty:
        raise ApiError(Errors.NON_EMPTY_GROUP)
    r = messages.AlterShareGroupOffsetsResponse
    response = r()
    offsets: dict[bytes, dict[int, int]] = {}
    states: dict[bytes, TopicState] = {}
    image, now = shard.env.image, shard.env.now_ms()
    for topic in request.topics:
        topic_id = image.topic_id(topic.topic_name)
        out = r.AlterShareGroupOffsetsResponseTopic(topic_name=topic.topic_name)
        count = 0
        if topic_id is not None:
            out.topic_id = topic_id
            count = image.partition_count(topic_id)
            wanted = {p.partition_index: p.start_offset for p in topic.partitions if p.partition_index < count}
            states[topic_id] = TopicState(topic.topic_name, frozenset(wanted), now)
            if wanted:
                offsets[topic_id] = wanted
        for partition in topic.partitions:
            out.partitions.append(_altered(partition.partition_index, partition.partition_index < count))
        response.responses.append(out)
    records = [initializing_record(shard, group.id, states)] if states else []
    return Result(records, (response, group.epoch, offsets))


def _altered(index: int, known: bool) -> Any:
    p = messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition
    if known:
        return p(partition_index=index)
    error = ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    return p(partition_index=index, error_code=error.code, error_message=error.text)


# deleting


def begin_delete(shard: GroupShard, request: Any) -> Result:
    """DeleteShareGroupOffsets, first step; replies with the topics that cannot be deleted, and those that can. ApiError."""
    group = shard.existing(request.group_id)
    if not isinstance(group, ShareGroup):
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a share group.")
    if not group.is_empty:
        raise ApiError(Errors.NON_EMPTY_GROUP)
    found = shard.initializations.get(group.id)
    if found is None:
        return Result(reply=([], {}))
    left, deleting = dict(found.initialized), set(found.deleting)
    refused: list[Any] = []
    wanted: dict[bytes, frozenset[int]] = {}
    image = shard.env.image
    for topic in request.topics:
        topic_id = image.topic_id(topic.topic_name)
        if topic_id is not None and topic_id in left:
            wanted[topic_id] = left.pop(topic_id).partitions
            deleting.add(topic_id)
        elif topic_id is not None and topic_id in deleting:
            wanted[topic_id] = frozenset(range(image.partition_count(topic_id)))
        else:
            text = ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION).text if topic_id is None else "There is no offset information to delete."
            refused.append(_deleted(topic.topic_name, None, int(Errors.UNKNOWN_TOPIC_OR_PARTITION), text))
    after = found._replace(initialized=left, deleting=frozenset(deleting))
    return Result([_record(shard, group.id, after)], (refused, wanted))


def complete_delete(shard: GroupShard, group_id: str, topics: Mapping[bytes, str]) -> Result:
    """DeleteShareGroupOffsets, last step; replies with the topics' results."""
    found = shard.initializations.get(group_id)
    if found is None:
        return Result(reply=[])
    results = [_deleted(name, topic_id, 0, None) for topic_id, name in topics.items()]
    return Result([_record(shard, group_id, found._replace(deleting=found.deleting - topics.keys()))], results)


def _deleted(name: str, topic_id: bytes | None, code: int, text: str | None) -> Any:
    t = messages.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic
    out = t(topic_name=name, error_code=code, error_message=text)
    if topic_id is not None:
        out.topic_id = topic_id
    return out


def begin_delete_groups(shard: GroupShard, group_ids: list[str]) -> Result:
    """DeleteGroups, for the share groups among some groups; replies with an error or with the state to delete for each of them."""
    records: list[CoordinatorRecord] = []
    found: dict[str, ApiError | dict[bytes, frozenset[int]]] = {}
    image = shard.env.image
    for group_id in group_ids:
        group = shard.groups.get(group_id)
        state = shard.initializations.get(group_id)
        if not isinstance(group, ShareGroup):
            continue
        if not group.is_empty:
            found[group_id] = ApiError(Errors.NON_EMPTY_GROUP)
        elif state is not None:
            wanted = {t: s.partitions for t, s in combined(state.initialized, state.initializing).items()}
            for topic in state.deleting:
                count = image.partition_count(topic)
                if count >= 0:
                    wanted[topic] = wanted.get(topic, frozenset()) | frozenset(range(count))
            records.append(_record(shard, group_id, Initialization({}, {}, frozenset(wanted))))
            found[group_id] = wanted
    return Result(records, found)


def topic_deleted(shard: GroupShard, topic_id: bytes) -> Result:
    """A topic went: nothing of it is initialised any more."""
    records = []
    for group_id, found in shard.initializations.items():
        if topic_id in found.initializing or topic_id in found.initialized or topic_id in found.deleting:
            after = Initialization(
                {t: s for t, s in found.initializing.items() if t != topic_id},
                {t: s for t, s in found.initialized.items() if t != topic_id},
                found.deleting - {topic_id},
            )
            records.append(_record(shard, group_id, after))
    return Result(records, atomic=False)
