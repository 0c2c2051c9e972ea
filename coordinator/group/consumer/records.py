"""The records of consumer groups: how they are made, and how they are replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ....protocol import messages
from ...format import CoordinatorRecord
from ..assignment_work import TargetRecords
from ..environment import Partitions, Target
from ..modern_replay import Replay, replay_assignment, replay_epoch, replay_target, replayed_group
from ..state import ShardState
from .group import ConsumerGroup, Resolved
from .member import ClassicMetadata, Member


def metadata_record(group_id: str, member: Member) -> CoordinatorRecord:
    """The record of what a member says about itself."""
    key = messages.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.id)
    return key, _metadata_value(member)


def current_record(group_id: str, member: Member) -> CoordinatorRecord:
    """The record of a member's current assignment."""
    key = messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id)
    return key, _current_value(member)


def regex_record(group_id: str, expression: str, resolved: Resolved) -> CoordinatorRecord:
    key = messages.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression)
    return key, messages.ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )


def regex_tombstone(group_id: str, expression: str) -> CoordinatorRecord:
    return messages.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression), None


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The records that take a member out of its group."""
    m = messages
    return [
        (m.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        (m.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        (m.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def epoch_record(group_id: str, epoch: int, hash_of_metadata: int) -> CoordinatorRecord:
    m = messages
    return m.ConsumerGroupMetadataKey(group_id=group_id), m.ConsumerGroupMetadataValue(
        epoch=epoch, metadata_hash=hash_of_metadata
    )


def assignment_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    m = messages
    value = m.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return m.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value


def target_record(group_id: str, member_id: str, target: Target) -> CoordinatorRecord:
    v = messages.ConsumerGroupTargetAssignmentMemberValue
    parts = [v.TopicPartition(topic_id=topic, partitions=sorted(of)) for topic, of in target.items()]
    key = messages.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return key, v(topic_partitions=parts)


RECORDS: TargetRecords[Target] = TargetRecords(target_record, assignment_record, {})


def _metadata_value(member: Member) -> messages.ConsumerGroupMemberMetadataValue:
    m = messages.ConsumerGroupMemberMetadataValue
    value = m(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None,
    )
    if member.classic is not None:
        protocols = [m.ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.classic.protocols]
        value.classic_member_metadata = m.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms, supported_protocols=protocols
        )
    return value


def _current_value(member: Member) -> messages.ConsumerGroupCurrentMemberAssignmentValue:
    v = messages.ConsumerGroupCurrentMemberAssignmentValue

    def topics(partitions: Partitions) -> list[messages.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]:
        return [
            v.TopicPartitions(topic_id=topic, partitions=sorted(of), assignment_epochs=[of[p] for p in sorted(of)])
            for topic, of in partitions.items()
        ]

    return v(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=topics(member.assigned),
        partitions_pending_revocation=topics(member.revoking),
    )


# replay


def _with_metadata(member: Member, value: messages.ConsumerGroupMemberMetadataValue) -> Member:
    """Returns the member after a ConsumerGroupMemberMetadataValue."""
    classic = value.classic_member_metadata
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        topic_regex=value.subscribed_topic_regex,
        server_assignor=value.server_assignor,
        classic=None if classic is None else _classic_metadata(classic),
    )


def _classic_metadata(value: messages.ConsumerGroupMemberMetadataValue.ClassicMemberMetadata) -> ClassicMetadata:
    return ClassicMetadata(
        value.session_timeout_ms, tuple((p.name, bytes(p.metadata)) for p in value.supported_protocols)
    )


def _with_epochs(
    found: list[messages.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions],
    default: int,
) -> Partitions:
    """Returns the partitions of a record; the member's own epoch stands in for missing epochs."""
    out: Partitions = {}
    for topic in found:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(default, 0)] * len(topic.partitions)
        out[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return out


def _with_current(member: Member, value: messages.ConsumerGroupCurrentMemberAssignmentValue) -> Member:
    """Returns the member after a ConsumerGroupCurrentMemberAssignmentValue."""
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=value.state,
        assigned=_with_epochs(value.assigned_partitions, value.member_epoch),
        revoking=_with_epochs(value.partitions_pending_revocation, value.member_epoch),
    )


def replay_member(
    shard: ShardState,
    key: messages.ConsumerGroupMemberMetadataKey,
    value: messages.ConsumerGroupMemberMetadataValue | None,
) -> None:
    group = replayed_group(shard, ConsumerGroup, key.group_id, value)
    if group is None:
        return
    if value is None:
        group.remove_member(key.member_id)
        return
    group.set_member(_with_metadata(group.members.get(key.member_id) or Member(key.member_id), value))
    shard.note_topics(key.group_id, value.subscribed_topic_names)


def replay_current(
    shard: ShardState,
    key: messages.ConsumerGroupCurrentMemberAssignmentKey,
    value: messages.ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    group = replayed_group(shard, ConsumerGroup, key.group_id, value)
    if group is None:
        return
    member = group.members.get(key.member_id)
    if value is not None:
        group.set_member(_with_current(member or Member(key.member_id), value))
    elif member is not None:
        group.set_member(replace(member, epoch=-1, previous_epoch=-1, assigned={}, revoking={}))


def replay_gone(shard: ShardState, group_id: str, member_ids: Sequence[str]) -> None:
    """Replays `member_tombstones` of many members."""
    group = replayed_group(shard, ConsumerGroup, group_id, None)
    if group is not None:
        group.remove_members(member_ids)


def replay_partition_metadata(
    shard: ShardState,
    key: messages.ConsumerGroupPartitionMetadataKey,
    value: messages.ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group = replayed_group(shard, ConsumerGroup, key.group_id, value)
    if group is not None:
        group.set_partition_metadata(value is not None)


def replay_regex(
    shard: ShardState,
    key: messages.ConsumerGroupRegularExpressionKey,
    value: messages.ConsumerGroupRegularExpressionValue | None,
) -> None:
    group = replayed_group(shard, ConsumerGroup, key.group_id, value)
    if group is None:
        return
    resolved = None if value is None else Resolved(frozenset(value.topics), value.version, value.timestamp)
    group.set_regex(key.regular_expression, resolved)
    if resolved is not None:
        shard.note_topics(key.group_id, resolved.topics)


REPLAYS: dict[str, Replay] = {
    "ConsumerGroupMetadataKey": partial(replay_epoch, ConsumerGroup),
    "ConsumerGroupPartitionMetadataKey": replay_partition_metadata,
    "ConsumerGroupMemberMetadataKey": replay_member,
    "ConsumerGroupTargetAssignmentMetadataKey": partial(replay_assignment, ConsumerGroup),
    "ConsumerGroupTargetAssignmentMemberKey": partial(replay_target, ConsumerGroup),
    "ConsumerGroupCurrentMemberAssignmentKey": replay_current,
    "ConsumerGroupRegularExpressionKey": replay_regex,
}
