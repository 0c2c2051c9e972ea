"""Replay of the records that all modern groups have alike: the epoch, and the target assignment with its epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .modern import AnyModernGroup
from .state import ShardState

if TYPE_CHECKING:
    from ...protocol import messages as m

    EpochKey = m.ConsumerGroupMetadataKey | m.ShareGroupMetadataKey
    EpochValue = m.ConsumerGroupMetadataValue | m.ShareGroupMetadataValue
    AssignmentKey = m.ConsumerGroupTargetAssignmentMetadataKey | m.ShareGroupTargetAssignmentMetadataKey
    AssignmentValue = m.ConsumerGroupTargetAssignmentMetadataValue | m.ShareGroupTargetAssignmentMetadataValue
    TargetKey = m.ConsumerGroupTargetAssignmentMemberKey | m.ShareGroupTargetAssignmentMemberKey
    TargetValue = m.ConsumerGroupTargetAssignmentMemberValue | m.ShareGroupTargetAssignmentMemberValue

Replay = Callable[..., None]
"""Applies a record, given by the shard's state, its key and its value. The value None is a tombstone."""
G = TypeVar("G", bound=AnyModernGroup)


def replayed_group(shard: ShardState, kind: type[G], group_id: str, value: object) -> G | None:
    """Returns the group of a record, which must be of this kind;
    None for the tombstone of a group that does not exist.
    """
    if value is None:
        group = shard.groups.get(group_id)
        return group if isinstance(group, kind) else None
    return shard.made(kind, group_id)


def replay_epoch(kind: type[G], shard: ShardState, key: EpochKey, value: EpochValue | None) -> None:
    group = replayed_group(shard, kind, key.group_id, value)
    if group is None:
        return
    if value is None:
        shard.groups.pop(key.group_id)
    else:
        group.set_epoch(value.epoch, value.metadata_hash)


def replay_assignment(kind: type[G], shard: ShardState, key: AssignmentKey, value: AssignmentValue | None) -> None:
    group = replayed_group(shard, kind, key.group_id, value)
    if group is not None:
        group.set_assignment(*((-1, 0) if value is None else (value.assignment_epoch, value.assignment_timestamp)))


def replay_target(kind: type[G], shard: ShardState, key: TargetKey, value: TargetValue | None) -> None:
    group = replayed_group(shard, kind, key.group_id, value)
    if group is None:
        return
    if value is None:
        group.targets.pop(key.member_id)
    else:
        group.targets[key.member_id] = {
            t.topic_id: frozenset(t.partitions) for t in value.topic_partitions if t.partitions
        }
