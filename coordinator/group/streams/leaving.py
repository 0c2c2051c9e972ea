"""Members of a streams group that leave, or whose time is up."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from ....protocol import messages
from ... import epochs
from ...shard import Result
from ..environment import Client
from ..modern import LEAVE_EPOCH
from ..state import ShardState
from .beat import Beat
from .group import StreamsGroup
from .member import LEAVE_STATIC_EPOCH, StreamsMember
from .membership import static_member
from .records import assignment_record, current_record, group_record, member_tombstones
from .tasks import NOTHING_HELD

R = TypeVar("R")
LEAVES = (LEAVE_EPOCH, LEAVE_STATIC_EPOCH)


def leave(
    shard: ShardState, group: StreamsGroup, client: Client, request: messages.StreamsGroupHeartbeatRequest
) -> Result[Beat]:
    """A member leaves, a static one perhaps for a short time only. Raises ApiError."""
    member_id, epoch = request.member_id, request.member_epoch
    beat = Beat(messages.StreamsGroupHeartbeatResponse(member_id=member_id, member_epoch=epoch))
    if request.shutdown_application:
        group.heard.shut_down(member_id)  # Kafka does not ask before whether this is a member
    if request.instance_id is None:
        member = group.member(member_id)
    else:
        member = static_member(group, member_id, request.instance_id)
    shard.tell(group, "left", member_id)
    if request.instance_id is None or epoch != LEAVE_STATIC_EPOCH:
        return remove(shard, group, member, beat)
    assigned = member.assigned._replace(active=dict.fromkeys(member.assigned.active, 0))
    away = replace(member, epoch=LEAVE_STATIC_EPOCH, revoking=NOTHING_HELD, assigned=assigned)
    return Result([current_record(group.id, away)], beat)


def session_ended(shard: ShardState, group: StreamsGroup, member_id: str) -> Result:
    """The timer `session` ended."""
    member = group.members.get(member_id)
    if member is None:
        return Result()
    shard.tell(group, "session-ended", member_id, epoch=member.epoch)
    return remove(shard, group, member, None)


def revocation_late(shard: ShardState, group: StreamsGroup, member_id: str, epoch: int) -> Result:
    """The timer `rebalance` ended: a member that is still at the epoch did not give up its tasks."""
    member = group.members.get(member_id)
    if member is None or member.epoch != epoch:
        return Result()
    shard.tell(group, "late", member_id, "it did not give up its tasks", epoch)
    return remove(shard, group, member, None)


def remove(shard: ShardState, group: StreamsGroup, member: StreamsMember, reply: R) -> Result[R]:
    """Takes a member out of the group."""
    epoch = epochs.after(group.epoch)
    records = member_tombstones(group.id, member.id)
    records.append(group_record(group, epoch, group.metadata_hash, group.validated_epoch, group.assignment_configs))
    if len(group.members) == 1:
        records.append(assignment_record(group.id, epoch, 0))
    shard.moved_at_ms[group.id] = shard.env.monotonic_ms()
    for timer in ("session", "rebalance"):
        shard.cancel((timer, group.id, member.id))
    return Result(records, reply)
