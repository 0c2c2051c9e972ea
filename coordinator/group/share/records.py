"""The records of share groups: how they are made, and how they are replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ....protocol import messages
from ...format import CoordinatorRecord
from ..assignment_work import TargetRecords
from ..environment import Target, TopicImage
from ..modern import STABLE
from ..modern_replay import Replay, replay_assignment, replay_epoch, replay_target, replayed_group
from ..state import ShardState
from .group import NOTHING, Initialization, ShareGroup, ShareMember, TopicState, combined

UNKNOWN_NAME = "<UNKNOWN>"


def metadata_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """The record of what a member says about itself."""
    key = messages.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.id)
    return key, messages.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
    )


def current_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """The record of a member's current assignment."""
    key = messages.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id)
    return key, _current_value(member)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The records that take a member out of its group."""
    m = messages
    return [
        (m.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        (m.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        (m.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def epoch_record(group_id: str, epoch: int, hash_of_metadata: int) -> CoordinatorRecord:
    m = messages
    return m.ShareGroupMetadataKey(group_id=group_id), m.ShareGroupMetadataValue(
        epoch=epoch, metadata_hash=hash_of_metadata
    )


def assignment_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = messages.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return messages.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value


def target_record(group_id: str, member_id: str, target: Target) -> CoordinatorRecord:
    v = messages.ShareGroupTargetAssignmentMemberValue
    parts = [v.TopicPartition(topic_id=topic, partitions=sorted(of)) for topic, of in target.items()]
    return messages.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), v(
        topic_partitions=parts
    )


def _current_value(member: ShareMember) -> messages.ShareGroupCurrentMemberAssignmentValue:
    v = messages.ShareGroupCurrentMemberAssignmentValue
    parts = [v.TopicPartitions(topic_id=topic, partitions=sorted(of)) for topic, of in member.assigned.items()]
    return v(
        member_epoch=member.epoch, previous_member_epoch=member.previous_epoch, state=STABLE, assigned_partitions=parts
    )


RECORDS: TargetRecords[Target] = TargetRecords(target_record, assignment_record, {})


# share-partitions


def initialization_record(group_id: str, found: Initialization, image: TopicImage) -> CoordinatorRecord:
    v = messages.ShareGroupStatePartitionMetadataValue

    def topics(
        states: Mapping[bytes, TopicState],
    ) -> list[messages.ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
        return [
            v.TopicPartitionsInfo(topic_id=i, topic_name=s.name, partitions=sorted(s.partitions))
            for i, s in states.items()
        ]

    value = v(
        initializing_topics=topics(found.initializing),
        initialized_topics=topics(found.initialized),
        deleting_topics=[
            v.TopicInfo(topic_id=i, topic_name=image.topic_name(i) or UNKNOWN_NAME) for i in sorted(found.deleting)
        ],
    )
    return messages.ShareGroupStatePartitionMetadataKey(group_id=group_id), value


def initializing_record(shard: ShardState, group_id: str, topics: dict[bytes, TopicState]) -> CoordinatorRecord:
    found = shard.initializations.get(group_id, NOTHING)
    initializing = combined(found.initializing, topics)
    deleting = found.deleting - initializing.keys()
    return initialization_record(group_id, Initialization(initializing, found.initialized, deleting), shard.env.image)


# replay


def replay_member(
    shard: ShardState,
    key: messages.ShareGroupMemberMetadataKey,
    value: messages.ShareGroupMemberMetadataValue | None,
) -> None:
    group = replayed_group(shard, ShareGroup, key.group_id, value)
    if group is None:
        return
    if value is None:
        group.remove_member(key.member_id)
        return
    member = replace(
        group.members.get(key.member_id) or ShareMember(key.member_id),
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
    )
    group.set_member(member)
    shard.note_topics(key.group_id, value.subscribed_topic_names)


def replay_current(
    shard: ShardState,
    key: messages.ShareGroupCurrentMemberAssignmentKey,
    value: messages.ShareGroupCurrentMemberAssignmentValue | None,
) -> None:
    group = replayed_group(shard, ShareGroup, key.group_id, value)
    if group is None:
        return
    member = group.members.get(key.member_id)
    if value is not None:
        assigned = {bytes(t.topic_id): frozenset(t.partitions) for t in value.assigned_partitions}
        member = member or ShareMember(key.member_id)
        group.set_member(
            replace(member, epoch=value.member_epoch, previous_epoch=value.previous_member_epoch, assigned=assigned)
        )
    elif member is not None:
        group.set_member(replace(member, epoch=-1, previous_epoch=-1, assigned={}))


def replay_initialization(
    shard: ShardState,
    key: messages.ShareGroupStatePartitionMetadataKey,
    value: messages.ShareGroupStatePartitionMetadataValue | None,
) -> None:
    if value is None:
        shard.initializations.pop(key.group_id)
    else:
        shard.made(ShareGroup, key.group_id)
        shard.initializations[key.group_id] = _initialization_of(value, shard.env.now_ms())


def _initialization_of(value: messages.ShareGroupStatePartitionMetadataValue, now_ms: int) -> Initialization:
    def states(
        topics: list[messages.ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo],
    ) -> dict[bytes, TopicState]:
        return {bytes(t.topic_id): TopicState(t.topic_name, frozenset(t.partitions), now_ms) for t in topics}

    deleting = frozenset(bytes(t.topic_id) for t in value.deleting_topics)
    return Initialization(states(value.initializing_topics), states(value.initialized_topics), deleting)


REPLAYS: dict[str, Replay] = {
    "ShareGroupMetadataKey": partial(replay_epoch, ShareGroup),
    "ShareGroupMemberMetadataKey": replay_member,
    "ShareGroupTargetAssignmentMetadataKey": partial(replay_assignment, ShareGroup),
    "ShareGroupTargetAssignmentMemberKey": partial(replay_target, ShareGroup),
    "ShareGroupCurrentMemberAssignmentKey": replay_current,
    "ShareGroupStatePartitionMetadataKey": replay_initialization,
}
