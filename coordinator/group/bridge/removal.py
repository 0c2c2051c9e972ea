"""Members of a consumer group that leave, or whose time is up. The group may become classic without them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ... import epochs
from ...format import CoordinatorRecord
from ...shard import Decided, Decision, Result, begun
from ..consumer.group import ConsumerGroup
from ..consumer.leaving import FEW, MembersGone
from ..consumer.member import LEAVE_STATIC_EPOCH, Member
from ..consumer.membership import static_member
from ..consumer.records import assignment_record, current_record, epoch_record, member_tombstones, regex_tombstone
from ..environment import Client
from ..leave_group import STEP_LEAVING, leave_each
from ..metadata_hash import metadata_hash
from ..state import ShardState
from .conversion import downgrade_without, may_downgrade

if TYPE_CHECKING:
    from ..leave_group import Identity

R = TypeVar("R")


def leave_by_heartbeat(
    shard: ShardState, group: ConsumerGroup, client: Client, request: messages.ConsumerGroupHeartbeatRequest
) -> Result[messages.ConsumerGroupHeartbeatResponse]:
    """A member leaves, a static one perhaps for a short time only. Raises ApiError."""
    reply = messages.ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    shard.tell(group, "left", request.member_id)
    if request.instance_id is None:
        return remove(shard, group, [group.member(request.member_id)], reply)
    member = static_member(group, request.member_id, request.instance_id)
    if request.member_epoch != LEAVE_STATIC_EPOCH:
        return remove(shard, group, [member], reply)
    away = replace(
        member,
        epoch=LEAVE_STATIC_EPOCH,
        revoking={},
        assigned={topic: dict.fromkeys(of, 0) for topic, of in member.assigned.items()},
    )
    return Result([current_record(group.id, away)], reply)


def leave_group(
    shard: ShardState, group: ConsumerGroup, request: messages.LeaveGroupRequest
) -> Decided[messages.LeaveGroupResponse]:
    """Members leave by the classic protocol, very many in steps."""
    return begun(_leave(shard, group, request))


def _leave(
    shard: ShardState, group: ConsumerGroup, request: messages.LeaveGroupRequest
) -> Decision[messages.LeaveGroupResponse]:
    leaving: dict[str, Member] = {}

    def leave(one: Identity) -> None:
        if one.group_instance_id is None:
            member = group.member(one.member_id)
        elif one.member_id:
            member = static_member(group, one.member_id, one.group_instance_id)
        else:
            found = group.static_member(one.group_instance_id)
            if found is None:
                raise ApiError(Errors.UNKNOWN_MEMBER_ID)
            member = found
        leaving[member.id] = member
        shard.tell(group, "left", member.id, epoch=member.epoch)

    response = yield from leave_each(request, leave)
    return remove(shard, group, list(leaving.values()), response)


def session_ended(shard: ShardState, group: ConsumerGroup, member_id: str) -> Result:
    """The timer `session` ended."""
    member = group.members.get(member_id)
    if member is None:
        return Result()
    shard.tell(group, "session-ended", member_id, epoch=member.epoch)
    return remove(shard, group, [member], None)


def classic_member_late(shard: ShardState, group: ConsumerGroup, member_id: str) -> Result:
    """The timer `classic-join` or `classic-sync` ended: a classic member did not send the request."""
    member = group.members.get(member_id)
    if member is None or not member.is_classic:
        return Result()
    shard.tell(group, "late", member_id, "it did not join or sync", member.epoch)
    return remove(shard, group, [member], None)


def revocation_late(shard: ShardState, group: ConsumerGroup, member_id: str, epoch: int) -> Result:
    """The timer `rebalance` ended: a member that is still at the epoch did not revoke its partitions."""
    member = group.members.get(member_id)
    if member is None or member.epoch != epoch:
        return Result()
    shard.tell(group, "late", member_id, "it did not revoke its partitions", epoch)
    return remove(shard, group, [member], None)


def remove(shard: ShardState, group: ConsumerGroup, members: list[Member], reply: R) -> Result[R]:
    """Takes members out of the group. It becomes classic if only classic members stay and that is allowed."""
    if not members:
        return Result(reply=reply)
    gone = dict.fromkeys(m.id for m in members)
    if may_downgrade(shard, group, set(gone)):
        return downgrade_without(shard, group, set(gone), reply)
    records: list[CoordinatorRecord | MembersGone] = (
        [MembersGone(group.id, list(gone)[at : at + STEP_LEAVING]) for at in range(0, len(gone), STEP_LEAVING)]
        if len(gone) > FEW
        else [record for m in members for record in member_tombstones(group.id, m.id)]
    )
    staying = [m for m in group.members.values() if m.id not in gone]
    wanted = {m.topic_regex for m in staying if m.topic_regex}
    for expression in dict.fromkeys(m.topic_regex for m in members if m.topic_regex):
        if expression not in wanted:
            records.append(regex_tombstone(group.id, expression))
    epoch = epochs.after(group.epoch)
    records.append(epoch_record(group.id, epoch, metadata_hash(group.topics_after(members, []), shard.env.image)))
    if not staying:
        records.append(assignment_record(group.id, epoch, 0))
    shard.moved_at_ms[group.id] = shard.env.monotonic_ms()
    return Result(records, reply)
