"""The classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic groups, and their timers.

A JoinGroup waits until all members have joined or the rebalance time-out is over; a SyncGroup until the leader's assignment is in
the log. Replies go through `answer`; what is returned are the records to append, which do not go through replay: the group object is
changed here, where it is decided (see `classic`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...protocol import messages
from ...protocol.errors import ApiError, ErrorCode, Errors
from ..shard import Result
from . import migration
from .classic import Answer, ClassicGroup, ClassicMember, Protocols, State
from .consumer import ConsumerGroup
from .environment import Client
from .naming import uuid_text

if TYPE_CHECKING:
    from .shard import GroupShard

KNOWN_MEMBER_ID_SINCE = 4  # JoinGroup
GATHER_STEP_MS = 2
GATHER_QUIET_MS = 15
GATHER_MAX_MS = 200
SKIP_ASSIGNMENT_SINCE = 9
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60_000  # a member may wait for a rebalance longer than its session lasts


def protocols_of(request: Any) -> Protocols:
    """Protocols by name, in order; of one that is named twice the first counts, as in Kafka's collection."""
    found: dict[str, bytes] = {}
    for p in request.protocols:
        found.setdefault(p.name, bytes(p.metadata))
    return tuple(found.items())


def _join_error(member_id: str, code: ErrorCode | int) -> Any:
    return messages.JoinGroupResponse(error_code=int(code), member_id=member_id, protocol_type=None, protocol_name=None)


# JoinGroup


def join(shard: GroupShard, client: Client, request: Any, answer: Answer) -> Result:
    """A member joins, for the first time or again."""
    group = shard.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup) and not group.is_empty:
        return migration.join(shard, group, client, request, answer)
    if group is None or isinstance(group, ClassicGroup | ConsumerGroup):
        return _join_classic(shard, client, request, answer)
    answer(_join_error("", Errors.INCONSISTENT_GROUP_PROTOCOL))
    return Result()


def _join_classic(shard: GroupShard, client: Client, request: Any, answer: Answer) -> Result:
    member_id = request.member_id
    records = []
    before = shard.groups.get(request.group_id)
    if isinstance(before, ConsumerGroup):
        records = before.tombstones()
        shard.groups.pop(request.group_id)
    elif before is None and member_id:
        answer(_join_error(member_id, Errors.UNKNOWN_MEMBER_ID))
        return Result()
    is_new = not isinstance(before, ClassicGroup)
    group = shard.classic_group(request.group_id, create=True)
    result = Result()
    if not _is_room(shard, group, member_id):
        group.remove(member_id)
        answer(_join_error("", Errors.GROUP_MAX_SIZE_REACHED))
    elif not member_id:
        result = _join_new(shard, group, client, request, answer)
    else:
        result = _join_existing(shard, group, client, request, answer)
    if not is_new or result.records:
        return result

    def appended(error: ApiError | None) -> None:
        if error is not None:
            answer(_join_error("", error.code))

    return Result([*records, group.empty_record()], on_appended=appended, replay=False)


def _is_room(shard: GroupShard, group: ClassicGroup, member_id: str) -> bool:
    limit = shard.env.config("group.max.size")
    if group.state in (State.EMPTY, State.DEAD):
        return True
    if group.state is State.PREPARING_REBALANCE:
        member = group.members.get(member_id)
        return (member is not None and member.join is not None) or group.awaiting_join < limit
    return member_id in group.members or len(group.members) < limit


def _join_new(shard: GroupShard, group: ClassicGroup, client: Client, request: Any, answer: Answer) -> Result:
    if group.state is State.DEAD:
        answer(_join_error("", Errors.COORDINATOR_NOT_AVAILABLE))
        return Result()
    protocols = protocols_of(request)
    if not group.supports(request.protocol_type, (name for name, _ in protocols)):
        answer(_join_error("", Errors.INCONSISTENT_GROUP_PROTOCOL))
        return Result()
    instance_id = request.group_instance_id
    member_id = f"{client.id if instance_id is None else instance_id}-{uuid_text(shard.env.new_id())}"
    if instance_id is not None:
        existing = group.static_members.get(instance_id)
        if existing is not None:
            return _replace_static(shard, group, client, request, existing, member_id, answer)
        return _add(shard, group, client, request, member_id, answer)
    if client.version < KNOWN_MEMBER_ID_SINCE:
        return _add(shard, group, client, request, member_id, answer)
    group.pending[member_id] = None
    group.last_join_ms = shard.env.monotonic_ms()
    _await_heartbeat(shard, group, member_id, request.session_timeout_ms)
    answer(_join_error(member_id, Errors.MEMBER_ID_REQUIRED))
    return Result()


def _join_existing(shard: GroupShard, group: ClassicGroup, client: Client, request: Any, answer: Answer) -> Result:
    member_id = request.member_id
    protocols = protocols_of(request)
    if group.state is State.DEAD:
        answer(_join_error(member_id, Errors.COORDINATOR_NOT_AVAILABLE))
        return Result()
    if not group.supports(request.protocol_type, (name for name, _ in protocols)):
        answer(_join_error(member_id, Errors.INCONSISTENT_GROUP_PROTOCOL))
        return Result()
    if member_id in group.pending:
        if request.group_instance_id is not None:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        return _add(shard, group, client, request, member_id, answer)
    try:
        member = group.check_member(member_id, request.group_instance_id)
    except ApiError as error:
        answer(_join_error(member_id, error.code))
        return Result()
    if group.state is State.EMPTY:
        answer(_join_error(member_id, Errors.UNKNOWN_MEMBER_ID))
        return Result()
    unchanged = member.protocols == protocols
    if group.state is State.COMPLETING_REBALANCE and unchanged:
        answer(joined(group, member))
        return Result()
    if group.state is State.STABLE and unchanged and group.leader != member_id:
        answer(joined(group, member))
        return Result()
    group.update(member, protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
    group.park_join(member, answer)
    return rebalance_or_complete(shard, group)


def joined(group: ClassicGroup, member: ClassicMember, **changes: Any) -> Any:
    """A JoinGroup reply of the present generation; the leader is told who the members are."""
    r = messages.JoinGroupResponse
    response = r(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member.id,
    )
    if group.leader == member.id:
        response.members = [
            r.JoinGroupResponseMember(member_id=m.id, group_instance_id=m.instance_id, metadata=m.metadata(group.protocol))
            for m in group.members.values()
        ]
    for name, value in changes.items():
        setattr(response, name, value)
    return response


def _add(shard: GroupShard, group: ClassicGroup, client: Client, request: Any, member_id: str, answer: Answer) -> Result:
    member = ClassicMember(
        member_id,
        request.group_instance_id,
        client.id,
        client.host,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        request.protocol_type,
        protocols_of(request),
        is_new=True,
    )
    if group.state is State.PREPARING_REBALANCE and group.previous is State.EMPTY:
        group.new_member_added = True
    group.add(member)
    group.last_join_ms = shard.env.monotonic_ms()
    group.park_join(member, answer)
    _await_heartbeat(shard, group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
    return rebalance_or_complete(shard, group)


def _replace_static(shard: GroupShard, group: ClassicGroup, client: Client, request: Any, old_id: str, new_id: str, answer: Answer) -> Result:
    """A static member is back under a new id. A stable group whose protocol stays the same goes on as it is."""
    leader_before = group.leader
    member = group.replace_static(request.group_instance_id, old_id, new_id)
    _await_heartbeat(shard, group, new_id, member.session_timeout_ms)
    before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    group.update(member, protocols_of(request), request.rebalance_timeout_ms, request.session_timeout_ms)
    group.park_join(member, answer)
    if group.state is State.COMPLETING_REBALANCE:
        return prepare_rebalance(shard, group)
    if group.state is not State.STABLE:
        return _complete_if_all_joined(shard, group)
    if group.select_protocol() != group.protocol:
        return rebalance_or_complete(shard, group)

    def appended(error: ApiError | None) -> None:
        if error is None:
            _welcome_back(group, member, client.version, leader_before)
            return
        group.update(member, *before)
        group.park_join(member, None)
        if new_id in group.members:
            old = group.replace_static(request.group_instance_id, new_id, old_id)
            _await_heartbeat(shard, group, old_id, old.session_timeout_ms)
        answer(joined(group, member, error_code=error.code, member_id="", leader=leader_before or "", members=[]))

    return Result([group.record(group.assignments())], on_appended=appended, replay=False)


def _welcome_back(group: ClassicGroup, member: ClassicMember, version: int, leader_before: str | None) -> None:
    """A leader that is back may not compute an assignment; before version 9 it is told that another leads."""
    if version >= SKIP_ASSIGNMENT_SINCE:
        group.answer_join(member, joined(group, member, skip_assignment=group.leader == member.id))
    else:
        group.answer_join(member, joined(group, member, leader=leader_before or "", members=[]))


# rebalances


def rebalance_or_complete(shard: GroupShard, group: ClassicGroup) -> Result:
    """Begins a rebalance, or ends the one that is under way if nobody is missing any more."""
    return prepare_rebalance(shard, group) if group.can_rebalance() else _complete_if_all_joined(shard, group)


def prepare_rebalance(shard: GroupShard, group: ClassicGroup) -> Result:
    if group.state is State.COMPLETING_REBALANCE:
        _fail_syncs(shard, group, int(Errors.REBALANCE_IN_PROGRESS))
    group.pending_sync.clear()
    shard.cancel(("sync", group.id))
    is_first = group.state is State.EMPTY
    if is_first:
        delay = shard.env.config("group.initial.rebalance.delay.ms")
        left = max(group.rebalance_timeout_ms() - delay, 0)
        shard.schedule(("join", group.id), delay, lambda: _complete_first(shard, group.id, delay, left), retry=False)
    group.become(State.PREPARING_REBALANCE, shard.env.now_ms())
    shard.counts["generations"] += 1
    if is_first:
        return Result()
    if group.have_all_joined():
        return complete_join(shard, group)
    shard.schedule(("join", group.id), group.rebalance_timeout_ms(), lambda: _complete_by_id(shard, group.id), retry=False)
    return Result()


def _complete_if_all_joined(shard: GroupShard, group: ClassicGroup) -> Result:
    if group.state is not State.PREPARING_REBALANCE or group.previous is State.EMPTY or not group.have_all_joined():
        return Result()
    return complete_join(shard, group)


def _complete_first(shard: GroupShard, group_id: str, delay_ms: int, left_ms: int, gathering_since_ms: int | None = None) -> Result:
    """The first rebalance of a group waits as long as new members keep coming, at most their rebalance time-out."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return Result()
    now = shard.env.monotonic_ms()
    since = now if gathering_since_ms is None else gathering_since_ms
    if delay_ms == 0 and left_ms > 0 and _is_gathering(shard, group, now - since):
        shard.schedule(("join", group_id), GATHER_STEP_MS, lambda: _complete_first(shard, group_id, 0, left_ms, since), retry=False)
        return Result()
    if not group.new_member_added or left_ms == 0:
        return complete_join(shard, group)
    group.new_member_added = False
    following = min(shard.env.config("group.initial.rebalance.delay.ms"), left_ms)
    after = max(left_ms - delay_ms, 0)
    shard.schedule(("join", group_id), following, lambda: _complete_first(shard, group_id, following, after), retry=False)
    return Result()


def _is_gathering(shard: GroupShard, group: ClassicGroup, waited_ms: int) -> bool:
    """Without a delay, members that come within a few milliseconds are one rebalance (`ottla.group.settle`)."""
    if waited_ms >= GATHER_MAX_MS or not shard.env.config("ottla.group.settle"):
        return False
    return shard.env.monotonic_ms() - group.last_join_ms < GATHER_QUIET_MS


def _complete_by_id(shard: GroupShard, group_id: str) -> Result:
    group = shard.groups.get(group_id)
    return complete_join(shard, group) if isinstance(group, ClassicGroup) else Result()


def complete_join(shard: GroupShard, group: ClassicGroup) -> Result:
    """The next generation begins with those who have joined; static members may be late."""
    shard.cancel(("join", group.id))
    for member in [m for m in group.members.values() if m.join is None and m.instance_id is None]:
        group.remove(member.id)
        shard.cancel(("heartbeat", group.id, member.id))
    if group.state is State.DEAD:
        return Result()
    if group.members and not group.elect_joined_leader():
        shard.schedule(("join", group.id), group.rebalance_timeout_ms(), lambda: _complete_by_id(shard, group.id), retry=False)
        return Result()
    group.next_generation(shard.env.now_ms())
    if group.state is State.EMPTY:
        return Result([group.record({})], replay=False)
    for member in list(group.members.values()):
        group.answer_join(member, joined(group, member))
        _await_heartbeat(shard, group, member.id, member.session_timeout_ms)
        member.is_new = False
        group.pending_sync[member.id] = None
    generation = group.generation
    shard.schedule(("sync", group.id), group.rebalance_timeout_ms(), lambda: _expire_sync(shard, group.id, generation), retry=False)
    return Result()


def _expire_sync(shard: GroupShard, group_id: str, generation: int) -> Result:
    """Members that joined and did not sync are taken out."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ClassicGroup) or group.generation != generation or not group.pending_sync:
        return Result()
    if group.state not in (State.COMPLETING_REBALANCE, State.STABLE):
        return Result()
    for member_id in list(group.pending_sync):
        group.remove(member_id)
        shard.cancel(("heartbeat", group_id, member_id))
    return prepare_rebalance(shard, group)


# SyncGroup


def sync(shard: GroupShard, client: Client, request: Any, answer: Answer) -> Result:
    """A member asks for its assignment; the leader brings everyone's."""
    group = shard.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup) and not group.is_empty:
        return migration.sync(shard, group, request, answer)
    if not isinstance(group, ClassicGroup) or group.is_empty:
        answer(_sync_error(Errors.UNKNOWN_MEMBER_ID))
        return Result()
    error = _check_sync(group, request)
    if error is None and group.state is State.PREPARING_REBALANCE:
        error = int(Errors.REBALANCE_IN_PROGRESS)
    if error is not None:
        answer(_sync_error(error))
        return Result()
    member = group.members[request.member_id]
    group.pending_sync.pop(member.id, None)
    if not group.pending_sync:
        shard.cancel(("sync", group.id))
    if group.state is State.STABLE:
        answer(_synced(group, member))
        _await_heartbeat(shard, group, member.id, member.session_timeout_ms)
        return Result()
    member.sync = answer
    return _store(shard, group, request) if group.leader == member.id else Result()


def _check_sync(group: ClassicGroup, request: Any) -> int | None:
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


def _store(shard: GroupShard, group: ClassicGroup, request: Any) -> Result:
    """The leader's assignment goes to the log, and from there to the members."""
    given = {a.member_id: bytes(a.assignment) for a in request.assignments}
    assignments = {member_id: given.get(member_id, b"") for member_id in group.members}

    def appended(error: ApiError | None) -> None:
        if group.state is not State.COMPLETING_REBALANCE or group.generation != request.generation_id:
            return  # somebody joined meanwhile, and everything is under way again
        if error is not None:
            _fail_syncs(shard, group, error.code)
            rebalance_or_complete(shard, group)
            return
        for member in group.members.values():
            member.assignment = assignments.get(member.id, b"")
        for member in list(group.members.values()):
            if group.answer_sync(member, _synced(group, member)):
                _await_heartbeat(shard, group, member.id, member.session_timeout_ms)
        group.become(State.STABLE, shard.env.now_ms())
        shard.counts["classic_rebalances"] += 1

    return Result([group.record(assignments)], on_appended=appended, replay=False)


def _synced(group: ClassicGroup, member: ClassicMember) -> Any:
    return messages.SyncGroupResponse(protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment)


def _sync_error(code: ErrorCode | int) -> Any:
    return messages.SyncGroupResponse(error_code=int(code), protocol_type=None, protocol_name=None, assignment=b"")


def _fail_syncs(shard: GroupShard, group: ClassicGroup, code: int) -> None:
    for member in list(group.members.values()):
        member.assignment = b""
        if group.answer_sync(member, _sync_error(code)):
            _await_heartbeat(shard, group, member.id, member.session_timeout_ms)


# Heartbeat


def heartbeat(shard: GroupShard, request: Any) -> Result:
    """A member is there. ApiError; UNKNOWN_MEMBER_ID also for a group that is not."""
    group = shard.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        return migration.heartbeat(shard, group, request)
    if not isinstance(group, ClassicGroup):
        raise ApiError(Errors.UNKNOWN_MEMBER_ID)
    if group.state is State.DEAD:
        raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise ApiError(Errors.ILLEGAL_GENERATION)
    renew_session(shard, group, member)
    rebalancing = group.state is State.PREPARING_REBALANCE
    return Result(reply=messages.HeartbeatResponse(error_code=int(Errors.REBALANCE_IN_PROGRESS) if rebalancing else 0))


def renew_session(shard: GroupShard, group: ClassicGroup, member: ClassicMember) -> None:
    _await_heartbeat(shard, group, member.id, member.session_timeout_ms)


def _await_heartbeat(shard: GroupShard, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
    shard.schedule(("heartbeat", group.id, member_id), timeout_ms, _expiry(shard, group.id, member_id), retry=False)


def _expiry(shard: GroupShard, group_id: str, member_id: str) -> Callable[[], Result]:
    def expire() -> Result:
        group = shard.groups.get(group_id)
        if not isinstance(group, ClassicGroup) or group.state is State.DEAD:
            return Result()
        if member_id in group.pending:
            group.remove(member_id)
            return complete_join(shard, group) if _all_are_there(group) else Result()
        member = group.members.get(member_id)
        if member is None or member.has_satisfied_heartbeat():
            return Result()
        group.answer_join(member, _join_error("", Errors.UNKNOWN_MEMBER_ID))
        group.remove(member_id)
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            return rebalance_or_complete(shard, group)
        return complete_join(shard, group) if _all_are_there(group) else Result()

    return expire


def _all_are_there(group: ClassicGroup) -> bool:
    return group.state is State.PREPARING_REBALANCE and group.have_all_joined()


# LeaveGroup


def leave(shard: GroupShard, request: Any) -> Result:
    """Members go. ApiError(UNKNOWN_MEMBER_ID) for a group that is not there."""
    group = shard.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        return migration.leave(shard, group, request)
    if not isinstance(group, ClassicGroup):
        raise ApiError(Errors.UNKNOWN_MEMBER_ID)
    if group.state is State.DEAD:
        return Result(reply=messages.LeaveGroupResponse(error_code=int(Errors.COORDINATOR_NOT_AVAILABLE)))
    r = messages.LeaveGroupResponse
    response = r()
    for one in request.members:
        out = r.MemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id)
        try:
            _leave_one(shard, group, one)
        except ApiError as error:
            out.error_code = error.code
        response.members.append(out)
    result = Result()
    if any(m.error_code == 0 for m in response.members):
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            result = rebalance_or_complete(shard, group)
        elif group.state is State.PREPARING_REBALANCE:
            result = _complete_if_all_joined(shard, group)
    result.reply = response
    return result


def _leave_one(shard: GroupShard, group: ClassicGroup, one: Any) -> None:
    member_id = one.member_id
    if not member_id:
        known = group.static_members.get(one.group_instance_id)
        if known is None:
            raise ApiError(Errors.UNKNOWN_MEMBER_ID)
        member_id = known
    elif member_id in group.pending:
        group.remove(member_id)
        shard.cancel(("heartbeat", group.id, member_id))
        return
    else:
        group.check_member(member_id, one.group_instance_id)
    shard.cancel(("heartbeat", group.id, member_id))
    member = group.members[member_id]
    group.answer_join(member, _join_error("", Errors.UNKNOWN_MEMBER_ID))
    group.remove(member_id)
