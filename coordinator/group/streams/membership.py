"""The member of a streams group that sends a request, and the checks of what it may do."""

from __future__ import annotations

from dataclasses import replace

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...format import CoordinatorRecord
from ..offsets.commit import Check, is_anonymous
from ..state import ShardState
from .group import StreamsGroup
from .member import LEAVE_STATIC_EPOCH, UNREVOKED_TASKS, StreamsMember
from .reconciliation import await_revocation
from .records import current_record, member_tombstones, metadata_record, target_record
from .tasks import NO_TASKS, Tasks, flat

NO_EPOCH = -1


def check_room(shard: ShardState, group: StreamsGroup, member_id: str, instance_id: str | None) -> None:
    """Raises ApiError(GROUP_MAX_SIZE_REACHED)."""
    if instance_id is not None and instance_id in group.static_members:
        return
    limit = shard.env.config("group.streams.max.size")
    if len(group.members) >= limit and member_id not in group.members:
        raise ApiError(
            Errors.GROUP_MAX_SIZE_REACHED, f"The streams group has reached its maximum capacity of {limit} members."
        )


def owned_by(request: messages.StreamsGroupHeartbeatRequest) -> Tasks | None:
    """Returns the tasks that a member says that it has; None if it does not say."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return Tasks(flat(active), flat(standby), flat(warmup))


def find_member(
    group: StreamsGroup,
    request: messages.StreamsGroupHeartbeatRequest,
    owned: Tasks | None,
    records: list[CoordinatorRecord],
) -> tuple[StreamsMember, StreamsMember | None]:
    """Returns the member that joins or stays, and the static member that it replaces. Raises ApiError."""
    joins = request.member_epoch == 0
    if request.instance_id is not None:
        if joins:
            return _joining_static(group, request.member_id, request.instance_id, records)
        member = static_member(group, request.member_id, request.instance_id)
    elif joins and request.member_id not in group.members:
        return StreamsMember(request.member_id), None
    else:
        member = group.member(request.member_id)
    _check_epoch(member, request.member_epoch, owned)
    return member, None


def _joining_static(
    group: StreamsGroup, member_id: str, instance_id: str, records: list[CoordinatorRecord]
) -> tuple[StreamsMember, StreamsMember | None]:
    existing = group.static_member(instance_id)
    if existing is None:
        return group.members.get(member_id) or StreamsMember(member_id), None
    if existing.epoch != LEAVE_STATIC_EPOCH:
        raise ApiError(
            Errors.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {existing.id} member.",
        )
    new = replace(existing, id=member_id, epoch=0, previous_epoch=0)
    records += member_tombstones(group.id, existing.id)
    records.append(metadata_record(group.id, new))
    records.append(target_record(group.id, new.id, group.targets.get(existing.id, NO_TASKS)))
    records.append(current_record(group.id, new))
    return new, existing if existing.id != member_id else None


def static_member(group: StreamsGroup, member_id: str, instance_id: str) -> StreamsMember:
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


def _check_epoch(member: StreamsMember, epoch: int, owned: Tasks | None) -> None:
    """Raises ApiError(FENCED_MEMBER_EPOCH). The previous epoch is valid too if the reply with the present one may have
    been lost.
    """
    if epoch in (0, member.epoch):
        return
    if epoch < member.epoch and epoch == member.previous_epoch and owned is not None:
        has = member.assigned
        if owned.active <= has.active.keys() and owned.standby <= has.standby and owned.warmup <= has.warmup:
            return
    word = "greater" if epoch > member.epoch else "smaller"
    raise ApiError(
        Errors.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {word} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


# offsets


def check_commit(
    shard: ShardState, group: StreamsGroup, version: int, request: messages.OffsetCommitRequest
) -> Check | None:
    """Returns a check for each partition, or None if the member may commit all. Raises ApiError."""
    epoch = request.generation_id_or_member_epoch
    return _check_of(shard, group, group.check_commit(request.member_id, epoch, version), epoch)


def check_commit_in_transaction(
    shard: ShardState, group: StreamsGroup, version: int, request: messages.TxnOffsetCommitRequest
) -> Check | None:
    """Like `check_commit`, for a commit in a transaction, whose sender need not be a member (KIP-447)."""
    epoch = request.generation_id_or_member_epoch
    if is_anonymous(request) and epoch == NO_EPOCH:
        return None
    return _check_of(shard, group, group.check_commit(request.member_id, epoch), epoch)


def _check_of(shard: ShardState, group: StreamsGroup, member: StreamsMember | None, epoch: int) -> Check | None:
    if member is None:
        return None
    image = shard.env.image
    return lambda topic_id, partition: group.check_commit_of(member, epoch, image.topic_name(topic_id), partition)


# loading


def loaded(shard: ShardState, group: StreamsGroup) -> None:
    """The group was read from the log: sets the timers of its members."""
    for member in group.members.values():
        shard.await_session(group, member.id)
        if member.state == UNREVOKED_TASKS:
            await_revocation(shard, group, member)
