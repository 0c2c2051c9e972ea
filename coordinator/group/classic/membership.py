"""The members of a classic group stay by Heartbeat and commits, and leave by LeaveGroup or when their session ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...shard import Decided, Decision, Result, begun
from ..group import Group
from ..leave_group import leave_each
from ..offsets.commit import is_anonymous
from ..state import ShardState
from .group import ClassicGroup, State
from .rebalance import complete_if_all_joined, complete_join, prepare_rebalance, rebalance_or_complete
from .replies import join_error, sync_error
from .session import end_session, renew_session

if TYPE_CHECKING:
    from ..leave_group import Identity


def heartbeat(
    shard: ShardState, group: ClassicGroup, request: messages.HeartbeatRequest
) -> Result[messages.HeartbeatResponse]:
    """Keeps a member in the group; returns REBALANCE_IN_PROGRESS if it must join again. Raises ApiError."""
    if group.state is State.DEAD:
        raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise ApiError(Errors.ILLEGAL_GENERATION)
    renew_session(shard, group, member)
    rebalancing = group.state is State.PREPARING_REBALANCE
    return Result(reply=messages.HeartbeatResponse(error_code=int(Errors.REBALANCE_IN_PROGRESS) if rebalancing else 0))


def refuse(
    shard: ShardState, group: Group | None, request: messages.HeartbeatRequest | messages.LeaveGroupRequest
) -> NoReturn:
    """Raises ApiError(UNKNOWN_MEMBER_ID): the group does not exist or is of another kind."""
    raise ApiError(Errors.UNKNOWN_MEMBER_ID)


def session_ended(shard: ShardState, group: ClassicGroup, member_id: str) -> Result:
    """The timer `heartbeat` ended: takes out a member, or an id with which no member joined."""
    if group.state is State.DEAD:
        return Result()
    if member_id in group.pending:
        group.remove(member_id)
        shard.tell(group, "session-ended", member_id)
        return complete_join(shard, group) if _all_have_joined(group) else Result()
    member = group.members.get(member_id)
    if member is None or group.has_satisfied_heartbeat(member_id):
        return Result()
    group.answer_join(member, join_error("", Errors.UNKNOWN_MEMBER_ID))
    group.remove(member_id)
    shard.tell(group, "session-ended", member_id, epoch=group.generation)
    if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
        return rebalance_or_complete(shard, group, f"the session of {member_id} ended")
    return complete_join(shard, group) if _all_have_joined(group) else Result()


def _all_have_joined(group: ClassicGroup) -> bool:
    return group.state is State.PREPARING_REBALANCE and group.have_all_joined()


# LeaveGroup


def leave(
    shard: ShardState, group: ClassicGroup, request: messages.LeaveGroupRequest
) -> Decided[messages.LeaveGroupResponse]:
    """Removes members, very many in steps."""
    if group.state is State.DEAD:
        return Result(reply=messages.LeaveGroupResponse(error_code=int(Errors.COORDINATOR_NOT_AVAILABLE)))
    return begun(_leave(shard, group, request))


def _leave(
    shard: ShardState, group: ClassicGroup, request: messages.LeaveGroupRequest
) -> Decision[messages.LeaveGroupResponse]:
    gone: dict[str, None] = {}  # they leave together: who looks at the group meanwhile sees all of them
    response = yield from leave_each(request, lambda one: _leave_one(shard, group, gone, one))
    group.remove(*gone)
    result = Result()
    if any(m.error_code == 0 for m in response.members):
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            result = rebalance_or_complete(shard, group, "members left")
        elif group.state is State.PREPARING_REBALANCE:
            result = complete_if_all_joined(shard, group)
    return result.with_reply(response)


def _leave_one(shard: ShardState, group: ClassicGroup, gone: dict[str, None], one: Identity) -> None:
    member_id, instance_id = one.member_id, one.group_instance_id
    if member_id in group.pending and member_id not in gone:
        gone[member_id] = None
        end_session(shard, group, member_id)
        return
    known = member_id if instance_id is None else group.static_members.get(instance_id)
    if known in gone or (not member_id and not known):
        raise ApiError(Errors.UNKNOWN_MEMBER_ID)
    if member_id:
        group.check_member(member_id, instance_id)
    else:
        assert known is not None
        member_id = known
    gone[member_id] = None
    end_session(shard, group, member_id)
    shard.tell(group, "left", member_id, epoch=group.generation)
    if member_id in group.joins:
        group.answer_join(group.members[member_id], join_error("", Errors.UNKNOWN_MEMBER_ID))


# offsets


def check_commit(shard: ShardState, group: ClassicGroup, version: int, request: messages.OffsetCommitRequest) -> None:
    """A commit also renews the member's session. Raises ApiError."""
    group.check_commit(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch)
    if group.state in (State.STABLE, State.PREPARING_REBALANCE):
        renew_session(shard, group, group.members[request.member_id])


def check_commit_in_transaction(
    shard: ShardState, group: ClassicGroup, version: int, request: messages.TxnOffsetCommitRequest
) -> None:
    """Like `check_commit`, for a commit in a transaction, whose sender need not be a member (KIP-447)."""
    if not is_anonymous(request) or group.state is State.DEAD:
        group.check_commit(
            request.member_id, request.group_instance_id, request.generation_id_or_member_epoch, in_transaction=True
        )


# loading and unloading


def loaded(shard: ShardState, group: ClassicGroup) -> None:
    """The group was read from the log."""
    for member in group.members.values():
        renew_session(shard, group, member)
    if len(group.members) > shard.env.config("group.max.size"):
        prepare_rebalance(shard, group, "it is larger than group.max.size")


def unloaded(shard: ShardState, group: ClassicGroup) -> None:
    """The shard is unloaded: members that wait for a reply must look for another coordinator."""
    for member in list(group.members.values()):
        group.answer_join(member, join_error(member.id, Errors.NOT_COORDINATOR))
        group.answer_sync(member, sync_error(Errors.NOT_COORDINATOR))
    group.become(State.DEAD, shard.env.now_ms())
