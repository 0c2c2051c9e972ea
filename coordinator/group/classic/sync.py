"""SyncGroup of the classic protocol. A SyncGroup waits until the leader's assignment is in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...shard import Decided, Result, begun
from ..group import Group
from ..state import ShardState
from . import settling
from .group import ClassicGroup, State
from .rebalance import fail_syncs, prepare_rebalance
from .recording import recorded
from .replies import answer_each, sync_error, synced, synced_each
from .session import renew_session, renew_sessions

if TYPE_CHECKING:
    from .member import SyncAnswer


def sync(
    shard: ShardState, group: ClassicGroup, request: messages.SyncGroupRequest, answer: SyncAnswer
) -> Decided[None]:
    """A member asks for its assignment; the leader brings the assignments of all."""
    if group.is_empty:
        return refuse_sync(shard, group, request, answer)
    error = _check_sync(group, request)
    if error is None and group.state is State.PREPARING_REBALANCE:
        error = int(Errors.REBALANCE_IN_PROGRESS)
    if error is not None:
        answer(sync_error(error))
        return Result()
    member = group.members[request.member_id]
    if member.id in group.pending_sync:
        group.pending_sync.pop(member.id)
        shard.tell(group, "synced", member.id, epoch=group.generation)
    if not group.pending_sync:
        shard.cancel(("sync", group.id))
    if group.state is State.STABLE:
        answer(synced(group, member))
        renew_session(shard, group, member)
        return Result()
    group.syncs[member.id] = answer
    return _store(shard, group, request) if group.leader == member.id else Result()


def refuse_sync(
    shard: ShardState, group: Group | None, request: messages.SyncGroupRequest, answer: SyncAnswer
) -> Result:
    """A group that does not exist, has no members or is of another kind has no assignment for the member."""
    answer(sync_error(Errors.UNKNOWN_MEMBER_ID))
    return Result()


def _check_sync(group: ClassicGroup, request: messages.SyncGroupRequest) -> int | None:
    if group.state is State.DEAD:
        return int(Errors.COORDINATOR_NOT_AVAILABLE)
    try:
        group.check_member(request.member_id, request.group_instance_id)
    except ApiError as error:
        return error.code
    if request.generation_id != group.generation:
        return int(Errors.ILLEGAL_GENERATION)
    for asked, chosen in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol)):
        if asked is not None and chosen is not None and asked != chosen:
            return int(Errors.INCONSISTENT_GROUP_PROTOCOL)
    return None


def _store(shard: ShardState, group: ClassicGroup, request: messages.SyncGroupRequest) -> Decided[None]:
    """Writes the leader's assignment. The members get it when it is committed."""
    given = {a.member_id: bytes(a.assignment) for a in request.assignments}
    attempt_ms = settling.attempt_ms(shard.env, group, given)
    if attempt_ms is not None:
        shard.schedule(("attempt", group.id), attempt_ms, group.generation)
        return Result()
    assignments = {member_id: given.get(member_id, b"") for member_id in group.members}

    def is_current() -> bool:
        """Whether no other rebalance has started, which a member does that joins."""
        return group.state is State.COMPLETING_REBALANCE and group.generation == request.generation_id

    def failed(error: ApiError) -> None:
        if is_current():
            fail_syncs(shard, group, error.code)
            prepare_rebalance(shard, group, "its assignment could not be written")

    def committed(error: ApiError | None) -> None:
        if error is not None:
            return failed(error)
        if not is_current():
            return
        group.assignments = assignments
        waiting = group.take_syncs()
        answer_each(shard, synced_each(group, waiting))
        renew_sessions(shard, group, (m for m in group.members.values() if m.id in waiting))
        group.become(State.STABLE, shard.env.now_ms())
        shard.counts["classic_rebalances"] += 1

    return begun(recorded(group, assignments, on_committed=committed, on_failed=failed))
