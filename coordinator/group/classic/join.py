"""JoinGroup of the classic protocol. A JoinGroup waits until all members have joined
or the rebalance time-out is over.

`answer` sends the reply, when the records of the batch are appended. It may be kept and called later.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...format import CoordinatorRecord
from ...shard import Decided, Result, begun
from ..environment import Client
from ..group import Group
from ..ids import uuid_text
from ..state import ShardState
from .group import ClassicGroup, State
from .member import ClassicMember, Protocols
from .rebalance import complete_if_all_joined, prepare_rebalance, rebalance_or_complete
from .recording import recorded
from .replies import join_error, joined
from .session import await_heartbeat, renew_session

if TYPE_CHECKING:
    from .member import JoinAnswer

KNOWN_MEMBER_ID_SINCE = 4  # JoinGroup
PENDING_BYTES = 300  # of memory for each member id that is given out, besides its text
PENDING_BYTES_MAX = 4 << 20  # for all of a shard
SKIP_ASSIGNMENT_SINCE = 9
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60_000  # a member may wait for a rebalance longer than its session lasts


def protocols_of(request: messages.JoinGroupRequest) -> Protocols:
    """Protocols by name, in order; of one that is named twice the first counts."""
    found: dict[str, bytes] = {}
    for p in request.protocols:
        found.setdefault(p.name, bytes(p.metadata))
    return tuple(found.items())


def _named_once(request: messages.JoinGroupRequest) -> Protocols:
    """The protocols that a group can choose: Kafka counts one that a member names twice as that of two members."""
    counts = Counter(p.name for p in request.protocols)
    return tuple((p.name, bytes(p.metadata)) for p in request.protocols if counts[p.name] == 1)


def _check_choice(protocols: Protocols) -> None:
    """Raises ApiError(UNKNOWN_SERVER_ERROR): a member names all its protocols twice. Kafka fails where the group
    chooses one, and the group is of no use until the member's session ends; here it stays as it was.
    """
    if not protocols:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)


def join(
    shard: ShardState, group: ClassicGroup, client: Client, request: messages.JoinGroupRequest, answer: JoinAnswer
) -> Decided[None]:
    """A member joins, for the first time or again."""
    member_id = request.member_id
    protocols = _named_once(request)
    if not _is_room(shard, group, member_id):
        group.remove(member_id)
        answer(join_error("", Errors.GROUP_MAX_SIZE_REACHED))
    elif group.state is State.DEAD:
        answer(join_error(member_id, Errors.COORDINATOR_NOT_AVAILABLE))
    elif not group.supports(request.protocol_type, (p.name for p in request.protocols)):
        answer(join_error(member_id, Errors.INCONSISTENT_GROUP_PROTOCOL))
    elif member_id:
        return _join_existing(shard, group, client, request, protocols, answer)
    else:
        return _join_new(shard, group, client, request, protocols, answer)
    return Result()


def join_new_group(
    shard: ShardState, group: None, client: Client, request: messages.JoinGroupRequest, answer: JoinAnswer
) -> Result:
    """The first member joins a group that does not exist."""
    if request.member_id:
        answer(join_error(request.member_id, Errors.UNKNOWN_MEMBER_ID))
        return Result()
    return join_created(shard, client, request, answer, [])


def join_created(
    shard: ShardState,
    client: Client,
    request: messages.JoinGroupRequest,
    answer: JoinAnswer,
    records: list[CoordinatorRecord],
) -> Result:
    """Creates the group and lets the member join. `records` end the group of another kind that had the id."""
    group = shard.put_simple(request.group_id)
    result = join(shard, group, client, request, answer)
    assert isinstance(result, Result), "the group has no member yet, which a long write could be about"
    result.records = [*records, *(result.records or [group.empty_record()])]
    result.replay = False
    return result


def refuse_join(
    shard: ShardState, group: Group, client: Client, request: messages.JoinGroupRequest, answer: JoinAnswer
) -> Result:
    """A group of another kind does not take members of the classic protocol."""
    answer(join_error("", Errors.INCONSISTENT_GROUP_PROTOCOL))
    return Result()


def join_other(
    shard: ShardState, group: Group, client: Client, request: messages.JoinGroupRequest, answer: JoinAnswer
) -> Result:
    """A group of another kind takes members of the classic protocol if it has no members: it becomes a classic one."""
    if not group.is_empty:
        return refuse_join(shard, group, client, request, answer)
    shard.groups.decide(group.id, None)
    return join_created(shard, client, request, answer, group.tombstones())


def _is_room(shard: ShardState, group: ClassicGroup, member_id: str) -> bool:
    limit = shard.env.config("group.max.size")
    if group.state in (State.EMPTY, State.DEAD):
        return True
    if group.state is State.PREPARING_REBALANCE:
        return member_id in group.joins or len(group.joins) < limit
    return member_id in group.members or len(group.members) < limit


def _join_new(
    shard: ShardState,
    group: ClassicGroup,
    client: Client,
    request: messages.JoinGroupRequest,
    protocols: Protocols,
    answer: JoinAnswer,
) -> Decided[None]:
    instance_id = request.group_instance_id
    member_id = f"{client.id if instance_id is None else instance_id}-{uuid_text(shard.env.new_id())}"
    if instance_id is not None:
        existing = group.static_members.get(instance_id)
        if existing is not None:
            return _replace_static(shard, group, client, request, protocols, existing, member_id, answer)
        return _add(shard, group, client, request, protocols, member_id, answer)
    if client.version < KNOWN_MEMBER_ID_SINCE:
        return _add(shard, group, client, request, protocols, member_id, answer)
    group.pending[member_id] = None
    _bound_pending(shard, group.id, member_id)
    group.last_join_ms = shard.env.monotonic_ms()
    await_heartbeat(shard, group, member_id, request.session_timeout_ms)
    shard.tell(group, "id-given", member_id)
    answer(join_error(member_id, Errors.MEMBER_ID_REQUIRED))
    return Result()


def _bound_pending(shard: ShardState, group_id: str, member_id: str) -> None:
    """Notes a member id that was given out. Kafka keeps each until its session ends. Here the oldest are dropped when
    all of them take too much memory.
    """
    given_out = shard.given_out
    given_out.ids[group_id, member_id] = None
    given_out.size_bytes += len(member_id) + PENDING_BYTES
    while given_out.size_bytes > PENDING_BYTES_MAX:
        of, oldest = next(iter(given_out.ids))
        del given_out.ids[of, oldest]
        shard.counts["member_ids_forgotten"] += 1
        given_out.size_bytes -= len(oldest) + PENDING_BYTES
        group = shard.groups.get(of)
        if isinstance(group, ClassicGroup) and oldest in group.pending:
            group.remove(oldest)
            shard.cancel(("heartbeat", of, oldest))


def _join_existing(
    shard: ShardState,
    group: ClassicGroup,
    client: Client,
    request: messages.JoinGroupRequest,
    protocols: Protocols,
    answer: JoinAnswer,
) -> Result:
    member_id = request.member_id
    if member_id in group.pending:
        if request.group_instance_id is not None:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        return _add(shard, group, client, request, protocols, member_id, answer)
    try:
        member = group.check_member(member_id, request.group_instance_id)
    except ApiError as error:
        answer(join_error(member_id, error.code))
        return Result()
    if group.state is State.EMPTY:
        answer(join_error(member_id, Errors.UNKNOWN_MEMBER_ID))
        return Result()
    unchanged = member.protocols == protocols
    if group.state is State.COMPLETING_REBALANCE and unchanged:
        answer(joined(group, member))
        return Result()
    if group.state is State.STABLE and unchanged and group.leader != member_id:
        answer(joined(group, member))
        return Result()
    _check_choice(protocols)
    group.update(member, protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
    group.park_join(member, answer)
    shard.tell(group, "joined", member_id, epoch=group.generation)
    return rebalance_or_complete(shard, group, f"{member_id} joined again")


def _add(
    shard: ShardState,
    group: ClassicGroup,
    client: Client,
    request: messages.JoinGroupRequest,
    protocols: Protocols,
    member_id: str,
    answer: JoinAnswer,
) -> Result:
    _check_choice(protocols)
    member = ClassicMember(
        member_id,
        request.group_instance_id,
        client.id,
        client.host,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        request.protocol_type,
        protocols,
    )
    if group.state is State.PREPARING_REBALANCE and group.previous is State.EMPTY:
        group.new_member_added = True
    group.add(member)
    group.newcomers[member_id] = None
    group.last_join_ms = shard.env.monotonic_ms()
    group.park_join(member, answer)
    await_heartbeat(shard, group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
    shard.tell(group, "joined", member_id, epoch=group.generation)
    return rebalance_or_complete(shard, group, f"{member_id} is new")


def _replace_static(
    shard: ShardState,
    group: ClassicGroup,
    client: Client,
    request: messages.JoinGroupRequest,
    protocols: Protocols,
    old_id: str,
    new_id: str,
    answer: JoinAnswer,
) -> Decided[None]:
    """A static member joins again with a new id. A stable group whose protocol stays the same does not rebalance."""
    _check_choice(protocols)
    leader_before, instance_id = group.leader, request.group_instance_id
    assert instance_id is not None  # by which the caller found the member
    member = group.replace_static(instance_id, old_id, new_id)
    renew_session(shard, group, member)
    group.update(member, protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
    group.park_join(member, answer)
    shard.tell(group, "replaced", new_id, instance_id)
    if group.state is State.COMPLETING_REBALANCE:
        return prepare_rebalance(shard, group, f"the static member {instance_id} came back")
    if group.state is not State.STABLE:
        return complete_if_all_joined(shard, group)
    if group.select_protocol() != group.protocol:
        return rebalance_or_complete(shard, group, f"the static member {instance_id} has other protocols")

    def committed(error: ApiError | None) -> None:
        if error is None:
            _welcome_back(group, member, client.version, leader_before)
        else:
            group.answer_join(
                member,
                joined(group, member, error_code=error.code, member_id="", leader=leader_before or "", members=[]),
            )

    return begun(recorded(group, group.assignments, committed))


def _welcome_back(group: ClassicGroup, member: ClassicMember, version: int, leader_before: str | None) -> None:
    """A leader that rejoins need not compute an assignment; before version 9 its reply names another leader."""
    if version >= SKIP_ASSIGNMENT_SINCE:
        group.answer_join(member, joined(group, member, skip_assignment=group.leader == member.id))
    else:
        group.answer_join(member, joined(group, member, leader=leader_before or "", members=[]))
