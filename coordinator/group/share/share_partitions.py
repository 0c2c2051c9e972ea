"""The share-partitions of a share group at the group coordinator: initialized, altered, deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...format import CoordinatorRecord
from ...shard import Result
from ..state import ShardState, other_kind
from .group import NOTHING, Initialization, ShareGroup, TopicState, combined, without
from .records import UNKNOWN_NAME, initialization_record, initializing_record

if TYPE_CHECKING:
    Deleted = messages.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic
    # with the state epoch and the start offsets
    Altered = tuple[messages.AlterShareGroupOffsetsResponse, int, dict[bytes, dict[int, int]]]

Topics = Mapping[bytes, frozenset[int]]
"""Partitions by topic id."""


def _record(shard: ShardState, group_id: str, found: Initialization) -> CoordinatorRecord:
    return initialization_record(group_id, found, shard.env.image)


# initialization


def initialized(shard: ShardState, group_id: str, topics: Topics) -> Result:
    """Notes that the share coordinator has initialized these share-partitions."""
    if not topics or not isinstance(shard.groups.get(group_id), ShareGroup):
        return Result()
    before = shard.initializations.get(group_id, NOTHING)
    image, now = shard.env.image, shard.env.now_ms()
    new = {topic: TopicState(image.topic_name(topic) or UNKNOWN_NAME, of, now) for topic, of in topics.items()}
    after = Initialization(without(before.initializing, topics), combined(before.initialized, new), before.deleting)
    return Result([_record(shard, group_id, after)])


def uninitialized(shard: ShardState, group_id: str, topics: Topics) -> Result:
    """Notes that the share coordinator did not initialize these share-partitions."""
    before = shard.initializations.get(group_id, NOTHING)
    if not before.initializing or not topics:
        return Result()
    return Result([_record(shard, group_id, before._replace(initializing=without(before.initializing, topics)))])


def initialized_partitions(shard: ShardState, group_id: str, as_of: int) -> dict[bytes, frozenset[int]]:
    found = shard.initializations.get(group_id, NOTHING, as_of)
    return {topic: state.partitions for topic, state in found.initialized.items()}


# AlterShareGroupOffsets


def alter(shard: ShardState, request: messages.AlterShareGroupOffsetsRequest) -> Result[Altered]:
    """AlterShareGroupOffsets; replies with the response, and the share-partitions to initialize again. Raises
    NON_EMPTY_GROUP, and the error of a group of another kind.
    """
    group = shard.groups.get(request.group_id)
    if group is None:
        group = ShareGroup(request.group_id, shard.timeline)
    if not isinstance(group, ShareGroup):
        raise other_kind(group.id, ShareGroup.kind)
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


def _altered(
    index: int,
    known: bool,
) -> messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition:
    p = messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition
    if known:
        return p(partition_index=index)
    error = ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    return error.put_into(p(partition_index=index))


# deletion


def begin_delete(
    shard: ShardState,
    request: messages.DeleteShareGroupOffsetsRequest,
) -> Result[tuple[list[Deleted], dict[bytes, frozenset[int]]]]:
    """DeleteShareGroupOffsets, first step; replies with the topics that cannot be deleted, and those that can.
    Raises ApiError.
    """
    group = shard.existing_of(ShareGroup, request.group_id)
    if not group.is_empty:
        raise ApiError(Errors.NON_EMPTY_GROUP)
    found = shard.initializations.get(group.id)
    if found is None:
        return Result(reply=([], {}))
    left, deleting = dict(found.initialized), set(found.deleting)
    refused: list[Deleted] = []
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
            text = (
                ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION).message_or_default
                if topic_id is None
                else "There is no offset information to delete."
            )
            refused.append(_deleted(topic.topic_name, None, int(Errors.UNKNOWN_TOPIC_OR_PARTITION), text))
    after = found._replace(initialized=left, deleting=frozenset(deleting))
    return Result([_record(shard, group.id, after)], (refused, wanted))


def complete_delete(shard: ShardState, group_id: str, topics: Mapping[bytes, str]) -> Result[list[Deleted]]:
    """DeleteShareGroupOffsets, last step; replies with the topics' results."""
    found = shard.initializations.get(group_id)
    if found is None:
        return Result(reply=[])
    results = [_deleted(name, topic_id, 0, None) for topic_id, name in topics.items()]
    return Result([_record(shard, group_id, found._replace(deleting=found.deleting - topics.keys()))], results)


def _deleted(name: str, topic_id: bytes | None, code: int, text: str | None) -> Deleted:
    t = messages.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic
    out = t(topic_name=name, error_code=code, error_message=text)
    if topic_id is not None:
        out.topic_id = topic_id
    return out


def begin_delete_groups(
    shard: ShardState,
    group_ids: Sequence[str],
) -> Result[dict[str, ApiError | dict[bytes, frozenset[int]]]]:
    """DeleteGroups, for the share groups among some groups; replies with an error or with the state to delete for each
    of them.
    """
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
            for topic in sorted(state.deleting):
                count = image.partition_count(topic)
                if count >= 0:
                    wanted[topic] = wanted.get(topic, frozenset()) | frozenset(range(count))
            records.append(_record(shard, group_id, Initialization({}, {}, frozenset(wanted))))
            found[group_id] = wanted
    return Result(records, found)


def topics_deleted(shard: ShardState, gone: frozenset[bytes]) -> Result:
    """Drops the share-partitions of topics that were deleted."""
    records = []
    for group_id, found in shard.initializations.items():
        if not gone.isdisjoint((*found.initializing, *found.initialized, *found.deleting)):
            after = Initialization(
                {t: s for t, s in found.initializing.items() if t not in gone},
                {t: s for t, s in found.initialized.items() if t not in gone},
                found.deleting - gone,
            )
            records.append(_record(shard, group_id, after))
    return Result(records, atomic=False)
