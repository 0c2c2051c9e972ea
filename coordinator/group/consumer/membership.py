"""The member of a consumer group that sends a request, and the checks of what it may do."""

from __future__ import annotations

from dataclasses import replace

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...format import CoordinatorRecord
from ..offsets.commit import Check, is_anonymous
from ..state import ShardState
from .group import ConsumerGroup
from .member import LEAVE_STATIC_EPOCH, UNREVOKED_PARTITIONS, Member
from .reconciliation import await_revocation
from .records import current_record, member_tombstones, metadata_record, target_record

NO_EPOCH = -1


def check_room(shard: ShardState, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """Raises ApiError(GROUP_MAX_SIZE_REACHED)."""
    limit = shard.env.config("group.consumer.max.size")
    if instance_id is not None and instance_id in group.static_members:
        return
    if len(group.members) >= limit and member_id not in group.members:
        raise ApiError(
            Errors.GROUP_MAX_SIZE_REACHED, f"The consumer group has reached its maximum capacity of {limit} members."
        )


def find_member(group: ConsumerGroup, member_id: str, create: bool) -> Member:
    if create and member_id not in group.members:
        return Member(member_id)
    return group.member(member_id)


def find_static(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str,
    create: bool,
    records: list[CoordinatorRecord],
    classic: bool,
) -> Member:
    """Returns the member with an instance id. A member that joins (`create`) replaces the static member that left, or
    a classic one. Raises ApiError.
    """
    if not create:
        return static_member(group, member_id, instance_id)
    existing = group.static_member(instance_id)
    if existing is None:
        return find_member(group, member_id, create=True)
    if not classic and not existing.is_classic and existing.epoch != LEAVE_STATIC_EPOCH:
        raise ApiError(
            Errors.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {existing.id} member.",
        )
    new = replace(existing, id=member_id, epoch=0, previous_epoch=0)
    records += member_tombstones(group.id, existing.id)
    records.append(metadata_record(group.id, new))
    records.append(target_record(group.id, new.id, group.targets.get(existing.id, {})))
    records.append(current_record(group.id, new))
    return new


def static_member(group: ConsumerGroup, member_id: str, instance_id: str) -> Member:
    """Returns the static member that has these ids. Raises ApiError(UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID)."""
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(Errors.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.id != member_id:
        raise ApiError(
            Errors.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.id}.",
        )
    return member


def check_epoch(member: Member, epoch: int, owned: set[tuple[bytes, int]] | None) -> None:
    """Raises ApiError(FENCED_MEMBER_EPOCH). The previous epoch is valid too if the reply with the present one may have
    been lost.
    """
    if epoch in (0, member.epoch):
        return
    if epoch < member.epoch and epoch == member.previous_epoch and owned is not None:
        if all(partition in member.assigned.get(topic, ()) for topic, partition in owned):
            return
    word = "greater" if epoch > member.epoch else "smaller"
    raise ApiError(
        Errors.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {word} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


# offsets


def check_commit(
    shard: ShardState, group: ConsumerGroup, version: int, request: messages.OffsetCommitRequest
) -> Check | None:
    """Returns a check for each partition, or None if the member may commit all. Raises ApiError."""
    epoch = request.generation_id_or_member_epoch
    member = group.check_commit(request.member_id, epoch, version)
    return None if member is None else _check_of(group, member, epoch)


def check_commit_in_transaction(
    shard: ShardState, group: ConsumerGroup, version: int, request: messages.TxnOffsetCommitRequest
) -> Check | None:
    """Like `check_commit`, for a commit in a transaction, whose sender need not be a member (KIP-447)."""
    epoch = request.generation_id_or_member_epoch
    if is_anonymous(request) and epoch == NO_EPOCH:
        return None
    member = group.check_commit(request.member_id, epoch)
    return None if member is None else _check_of(group, member, epoch)


def _check_of(group: ConsumerGroup, member: Member, epoch: int) -> Check:
    return lambda topic_id, partition: group.check_commit_of(member, epoch, topic_id, partition)


# loading


def loaded(shard: ShardState, group: ConsumerGroup) -> None:
    """The group was read from the log: sets the timers of its members."""
    for member in group.members.values():
        shard.await_session(group, member.id)
        if member.state == UNREVOKED_PARTITIONS:
            await_revocation(shard, group, member)
