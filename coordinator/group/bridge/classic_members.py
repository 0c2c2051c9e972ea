"""Members of consumer groups that use the classic protocol (KIP-848): JoinGroup, SyncGroup and Heartbeat."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ....protocol import messages
from ....protocol.errors import ApiError, Errors, MalformedMessage
from ...format import CoordinatorRecord
from ...shard import Result
from .. import consumer_protocol
from ..classic.join import KNOWN_MEMBER_ID_SINCE, join_created, protocols_of
from ..classic.member import Protocols
from ..classic.replies import join_error, sync_error
from ..classic.sync import refuse_sync
from ..consumer.assignment import assign
from ..consumer.group import ConsumerGroup
from ..consumer.member import UNRELEASED_PARTITIONS, UNREVOKED_PARTITIONS, ClassicMetadata, Member
from ..consumer.membership import check_room, find_member, find_static, static_member
from ..consumer.reconciliation import reconcile
from ..consumer.subscription import subscribe
from ..environment import Client
from ..ids import kafka_uuid
from ..state import ShardState
from .conversion import DISABLED, downgrade_with, embedded_assignment, may_downgrade_with, policy_of

if TYPE_CHECKING:
    from ..classic.member import JoinAnswer, SyncAnswer


def join(
    shard: ShardState,
    group: ConsumerGroup,
    client: Client,
    request: messages.JoinGroupRequest,
    answer: JoinAnswer,
) -> Result:
    """A member of the classic protocol joins; a group without members becomes a classic one. Raises ApiError."""
    if group.is_empty:
        shard.groups.decide(group.id, None)
        return join_created(shard, client, request, answer, group.tombstones())
    if policy_of(shard) == DISABLED:
        raise ApiError(Errors.INCONSISTENT_GROUP_PROTOCOL)
    member_id = request.member_id or kafka_uuid(shard.env.new_id())
    instance_id = request.group_instance_id
    protocols = protocols_of(request)
    check_room(shard, group, member_id, instance_id)
    if not group.supports_classic(request.protocol_type, {name for name, _ in protocols}):
        raise ApiError(Errors.INCONSISTENT_GROUP_PROTOCOL)
    if not request.member_id and instance_id is None and client.version >= KNOWN_MEMBER_ID_SINCE:
        answer(join_error(member_id, Errors.MEMBER_ID_REQUIRED))
        return Result()
    return _join(shard, group, client, request, answer, member_id, protocols)


def _join(
    shard: ShardState,
    group: ConsumerGroup,
    client: Client,
    request: messages.JoinGroupRequest,
    answer: JoinAnswer,
    member_id: str,
    protocols: Protocols,
) -> Result:
    """The member is added or changed as by a ConsumerGroupHeartbeat, or the group becomes classic with it."""
    try:
        said = consumer_protocol.subscription(protocols[0][1])
    except MalformedMessage:
        raise ApiError(Errors.INCONSISTENT_GROUP_PROTOCOL) from None
    records: list[CoordinatorRecord] = []
    instance_id = request.group_instance_id
    existing = group.static_member(instance_id)
    if instance_id is None:
        member = find_member(group, member_id, create=True)
    else:
        member = find_static(group, member_id, instance_id, not request.member_id, records, classic=True)
    downgrade = existing is not None and not existing.is_classic and may_downgrade_with(shard, group, existing)
    changed = _as_classic(member, client, request, said, protocols)
    subscribed = subscribe(shard, client, group, member, changed, records, classic=True)
    owned = _owned(shard, said)
    if downgrade:
        assert existing is not None
        changed = downgrade_with(
            shard, group, existing, changed, subscribed.epoch, subscribed.has_changed, owned, records
        )
    else:
        target_epoch, target = assign(shard, group, subscribed, member, changed, records)
        changed = reconcile(shard, group, changed, target_epoch, target, subscribed.has_changed, owned, records)
    response = messages.JoinGroupResponse(
        member_id=changed.id,
        generation_id=changed.epoch,
        protocol_type=consumer_protocol.PROTOCOL_TYPE,
        protocol_name=protocols[0][0],
    )

    def committed(error: ApiError | None) -> None:
        if error is not None:
            return
        shard.cancel(("classic-join", group.id, changed.id))
        if not downgrade:
            shard.await_session(group, changed.id, request.session_timeout_ms)
            shard.schedule(("classic-sync", group.id, changed.id), request.rebalance_timeout_ms)
        answer(response)

    return Result(records, on_committed=committed, replay=not downgrade)


def _as_classic(
    member: Member,
    client: Client,
    request: messages.JoinGroupRequest,
    said: messages.ConsumerProtocolSubscription,
    protocols: Protocols,
) -> Member:
    return replace(
        member,
        instance_id=request.group_instance_id if request.group_instance_id is not None else member.instance_id,
        rack_id=said.rack_id or member.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms
        if request.rebalance_timeout_ms != -1
        else member.rebalance_timeout_ms,
        topic_names=frozenset(said.topics),
        topic_regex="",
        client_id=client.id,
        client_host=client.host,
        classic=ClassicMetadata(request.session_timeout_ms, protocols),
    )


def _owned(shard: ShardState, said: messages.ConsumerProtocolSubscription) -> set[tuple[bytes, int]]:
    owned = set()
    for t in said.owned_partitions:
        topic_id = shard.env.image.topic_id(t.topic)
        if topic_id is not None:
            owned |= {(topic_id, p) for p in t.partitions}
    return owned


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> Member:
    """Returns the classic member that sent a request. Raises ApiError."""
    member = group.member(member_id) if instance_id is None else static_member(group, member_id, instance_id)
    if not member.is_classic:
        raise ApiError(Errors.UNKNOWN_MEMBER_ID)
    if member.epoch != generation:
        raise ApiError(Errors.ILLEGAL_GENERATION)
    return member


def _await_join(shard: ShardState, group: ConsumerGroup, member: Member) -> None:
    """A member must join again in time, counted from the first request to do so."""
    key = ("classic-join", group.id, member.id)
    if key not in shard.timers:
        shard.schedule(key, member.rebalance_timeout_ms)


def sync(shard: ShardState, group: ConsumerGroup, request: messages.SyncGroupRequest, answer: SyncAnswer) -> Result:
    """A classic member of a consumer group asks for its assignment. Raises ApiError."""
    if group.is_empty:
        return refuse_sync(shard, group, request, answer)
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    assert member.classic is not None
    protocol, metadata = member.classic.protocols[0]
    if request.protocol_type not in (None, consumer_protocol.PROTOCOL_TYPE) or request.protocol_name not in (
        None,
        protocol,
    ):
        raise ApiError(Errors.INCONSISTENT_GROUP_PROTOCOL)
    if group.assignment_epoch > member.epoch and member.state != UNREVOKED_PARTITIONS:
        _await_join(shard, group, member)
        answer(sync_error(Errors.REBALANCE_IN_PROGRESS))
        return Result()
    partitions = {topic: frozenset(of) for topic, of in member.assigned.items()}
    assignment = embedded_assignment(shard, partitions, consumer_protocol.version_of(metadata))
    session_timeout_ms = member.classic.session_timeout_ms

    def committed(error: ApiError | None) -> None:
        if error is None:
            shard.cancel(("classic-sync", group.id, member.id))
            shard.await_session(group, member.id, session_timeout_ms)
            r = messages.SyncGroupResponse
            answer(r(protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment))

    return Result(on_committed=committed)


def heartbeat(
    shard: ShardState,
    group: ConsumerGroup,
    request: messages.HeartbeatRequest,
) -> Result[messages.HeartbeatResponse]:
    """Handles the heartbeat of a classic member of a consumer group: returns REBALANCE_IN_PROGRESS if its assignment
    must change. Raises ApiError.
    """
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    assert member.classic is not None
    shard.await_session(group, member.id, member.classic.session_timeout_ms)
    has_old_target = member.epoch < group.assignment_epoch or member.state == UNREVOKED_PARTITIONS
    if has_old_target or (member.state == UNRELEASED_PARTITIONS and not group.waits_for_others(member)):
        _await_join(shard, group, member)
        return Result(reply=messages.HeartbeatResponse(error_code=int(Errors.REBALANCE_IN_PROGRESS)))
    return Result(reply=messages.HeartbeatResponse())
