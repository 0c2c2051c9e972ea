"""Between the protocols: classic members in consumer groups, and groups that change their kind while they live (KIP-848).

`group.consumer.migration.policy` says which way is open. A classic group becomes a consumer group with the first member that sends a
ConsumerGroupHeartbeat; a consumer group becomes classic when the last member that does so goes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors, MalformedMessage
from ..format import CoordinatorRecord
from ..shard import Result
from . import classic, joining
from . import heartbeat as beat
from .classic import Answer, ClassicGroup, ClassicMember, State
from .consumer import PROTOCOL_TYPE, ConsumerGroup
from .environment import Client, Target
from .hashing import metadata_hash
from .members import STABLE, UNRELEASED_PARTITIONS, UNREVOKED_PARTITIONS, ClassicMetadata, Member, current_value, metadata_value
from .naming import kafka_uuid

if TYPE_CHECKING:
    from .shard import GroupShard

UPGRADES = frozenset(("BIDIRECTIONAL", "UPGRADE"))
DOWNGRADES = frozenset(("BIDIRECTIONAL", "DOWNGRADE"))


def _policy(shard: GroupShard) -> str:
    return str(shard.env.config("group.consumer.migration.policy")).upper()


# from classic to consumer


def upgrade(shard: GroupShard, group: ClassicGroup, records: list[CoordinatorRecord]) -> ConsumerGroup:
    """The classic group as a consumer group, not yet in place: replaying `records` puts it there. ApiError(GROUP_ID_NOT_FOUND)."""
    reason = None
    if _policy(shard) not in UPGRADES:
        reason = "because online upgrade is disabled."
    elif not group.uses_consumer_protocol:
        reason = "because the group does not use the consumer embedded protocol."
    elif len(group.members) > shard.env.config("group.consumer.max.size"):
        reason = "because the group size exceeds the consumer group maximum size."
    if reason is not None:
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group {group.id} to consumer group {reason}")
    for member in list(group.members.values()):
        again = int(Errors.REBALANCE_IN_PROGRESS)
        group.answer_join(member, messages.JoinGroupResponse(error_code=again, member_id=member.id, protocol_name=None))
        group.answer_sync(member, messages.SyncGroupResponse(error_code=again, assignment=b""))
    try:
        made = _consumer_group_of(shard, group)
    except MalformedMessage:
        raise ApiError(
            Errors.GROUP_ID_NOT_FOUND,
            f"Cannot upgrade classic group {group.id} to consumer group because the embedded consumer protocol is malformed.",
        ) from None
    records.append(group.tombstone())
    records += _records_of(made)
    for member in made.members.values():
        if member.classic is not None:
            shard.await_session(group.id, member.id, timeout_ms=member.classic.session_timeout_ms)
    return made


def _consumer_group_of(shard: GroupShard, group: ClassicGroup) -> ConsumerGroup:
    image = shard.env.image
    made = ConsumerGroup(group.id, shard.timeline)
    made.set_assignment(group.generation, 0)
    for m in group.members.values():
        assigned: Target = {}
        if m.assignment:
            found = classic.assignment(m.assignment)
            if found.user_data:
                raise ApiError(
                    Errors.GROUP_ID_NOT_FOUND,
                    f"Cannot upgrade classic group {group.id} to consumer group because an unsupported custom assignor is in use. "
                    "Please refer to the documentation or switch to a default assignor before re-attempting the upgrade.",
                )
            for t in found.assigned_partitions:
                topic_id = image.topic_id(t.topic)
                if topic_id is not None:
                    assigned[topic_id] = frozenset(t.partitions)
        said = classic.subscription(m.metadata(group.protocol))
        made.targets[m.id] = assigned
        made.set_member(
            Member(
                m.id,
                group.generation,
                group.generation,
                STABLE,
                m.instance_id,
                said.rack_id or None,
                m.rebalance_timeout_ms,
                m.client_id,
                m.client_host,
                frozenset(said.topics),
                "",
                None,
                ClassicMetadata(m.session_timeout_ms, m.protocols),
                {topic: dict.fromkeys(of, group.generation) for topic, of in assigned.items()},
            )
        )
    made.set_epoch(group.generation, metadata_hash(made.topics, image))
    return made


def _records_of(group: ConsumerGroup) -> list[CoordinatorRecord]:
    m = messages
    members = list(group.members.values())
    records: list[CoordinatorRecord] = [
        (m.ConsumerGroupMemberMetadataKey(group_id=group.id, member_id=one.id), metadata_value(one)) for one in members
    ]
    records.append(beat.epoch_record(group.id, group.epoch, group.metadata_hash))
    records += [beat.target_record(group.id, one.id, group.targets[one.id]) for one in members]
    records.append(beat.assignment_record(group.id, group.assignment_epoch, group.assignment_timestamp_ms))
    records += [(m.ConsumerGroupCurrentMemberAssignmentKey(group_id=group.id, member_id=one.id), current_value(one)) for one in members]
    return records


# from consumer to classic


def may_downgrade(shard: GroupShard, group: ConsumerGroup, gone: set[str]) -> bool:
    """Whether the group becomes classic once some members are gone."""
    left = len(group.members) - len(gone)
    if left <= 0 or not group.would_be_classic_without(gone):
        return False
    return _policy(shard) in DOWNGRADES and left <= shard.env.config("group.max.size")


def downgrade_without(shard: GroupShard, group: ConsumerGroup, gone: set[str], reply: Any) -> Result:
    """The group goes on as a classic one without some members, and rebalances."""
    staying = [m for m in group.members.values() if m.id not in gone]
    targets = {m.id: group.targets.get(m.id, {}) for m in staying}
    records = group.tombstones()
    _put_classic(shard, group, staying, targets, records, rebalance=True)
    return Result(records, reply, replay=False)


def _put_classic(
    shard: GroupShard, group: ConsumerGroup, members: list[Member], targets: dict[str, Target], records: list[CoordinatorRecord], rebalance: bool
) -> None:
    """Makes the group classic in place. What it writes is not replayed: classic groups are changed where it is decided."""
    made = ClassicGroup(group.id, State.STABLE, generation=group.epoch, protocol_type=PROTOCOL_TYPE, state_since_ms=shard.env.now_ms())
    try:
        for m in members:
            assert m.classic is not None
            made.add(
                ClassicMember(
                    m.id,
                    m.instance_id,
                    m.client_id,
                    m.client_host,
                    m.rebalance_timeout_ms,
                    m.classic.session_timeout_ms,
                    PROTOCOL_TYPE,
                    m.classic.protocols,
                )
            )
        made.protocol = made.select_protocol()
        made.subscribed = made.compute_subscribed()
        for one in made.members.values():
            version = classic.embedded_version(one.metadata(made.protocol))
            one.assignment = _embedded_assignment(shard, targets[one.id], version)
    except MalformedMessage as error:
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Cannot downgrade the classic group {group.id}: {error}.") from None
    records.append(made.record(made.assignments()))
    shard.groups[group.id] = made
    for one in made.members.values():
        joining.renew_session(shard, made, one)
    if rebalance:
        joining.prepare_rebalance(shard, made)


def _embedded_assignment(shard: GroupShard, partitions: Target, version: int) -> bytes:
    by_topic = {}
    for topic_id, of in partitions.items():
        name = shard.env.image.topic_name(topic_id)
        if name is not None:
            by_topic[name] = sorted(of)
    return classic.build_assignment(by_topic, version)


# classic members of consumer groups


def join(shard: GroupShard, group: ConsumerGroup, client: Client, request: Any, answer: Answer) -> Result:
    """A member joins a consumer group by the classic protocol. ApiError."""
    if _policy(shard) == "DISABLED":
        raise ApiError(Errors.INCONSISTENT_GROUP_PROTOCOL)
    is_unknown = not request.member_id
    member_id = request.member_id or kafka_uuid(shard.env.new_id())
    instance_id = request.group_instance_id
    protocols = joining.protocols_of(request)
    beat.check_room(shard, group, member_id, instance_id)
    if not group.supports_classic(request.protocol_type, {name for name, _ in protocols}):
        raise ApiError(Errors.INCONSISTENT_GROUP_PROTOCOL)
    if is_unknown and instance_id is None and client.version >= joining.KNOWN_MEMBER_ID_SINCE:
        error = int(Errors.MEMBER_ID_REQUIRED)
        answer(messages.JoinGroupResponse(error_code=error, member_id=member_id, protocol_type=None, protocol_name=None))
        return Result()
    try:
        said = classic.subscription(protocols[0][1])
    except MalformedMessage:
        raise ApiError(Errors.INCONSISTENT_GROUP_PROTOCOL) from None
    records: list[CoordinatorRecord] = []
    existing = group.static_member(instance_id)
    if instance_id is None:
        member = beat.find_member(group, member_id, create=True)
    else:
        member = beat.find_static(group, member_id, instance_id, is_unknown, records, classic=True)
    downgrade = existing is not None and not existing.is_classic and may_downgrade_with(shard, group, existing)
    changed = _as_classic(member, client, request, said, protocols)
    epoch, subscription_changed = beat.subscribe(shard, group, member, changed, records, classic=True)
    owned = _owned(shard, said)
    if downgrade:
        assert existing is not None
        changed = _downgrade_with(shard, group, existing, changed, epoch, subscription_changed, owned, records)
    else:
        target_epoch, target = beat.assign(shard, group, epoch, member, changed, records)
        changed = beat.reconcile(shard, group, changed, target_epoch, target, subscription_changed, owned, records)
    response = messages.JoinGroupResponse(
        member_id=changed.id, generation_id=changed.epoch, protocol_type=PROTOCOL_TYPE, protocol_name=protocols[0][0]
    )

    def appended(error: ApiError | None) -> None:
        if error is not None:
            return
        shard.cancel(("classic-join", group.id, changed.id))
        if not downgrade:
            shard.await_session(group.id, changed.id, timeout_ms=request.session_timeout_ms)
            shard.fence_later(("classic-sync", group.id, changed.id), request.rebalance_timeout_ms)
        answer(response)

    return Result(records, on_appended=appended, replay=not downgrade)


def may_downgrade_with(shard: GroupShard, group: ConsumerGroup, replaced: Member) -> bool:
    if not group.would_be_classic_without({replaced.id}):
        return False
    return _policy(shard) in DOWNGRADES and len(group.members) <= shard.env.config("group.max.size")


def _as_classic(member: Member, client: Client, request: Any, said: Any, protocols: Any) -> Member:
    return replace(
        member,
        instance_id=request.group_instance_id if request.group_instance_id is not None else member.instance_id,
        rack_id=said.rack_id or member.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms if request.rebalance_timeout_ms != -1 else member.rebalance_timeout_ms,
        topic_names=frozenset(said.topics),
        topic_regex="",
        client_id=client.id,
        client_host=client.host,
        classic=ClassicMetadata(request.session_timeout_ms, protocols),
    )


def _owned(shard: GroupShard, said: Any) -> set[tuple[bytes, int]]:
    owned = set()
    for t in said.owned_partitions:
        topic_id = shard.env.image.topic_id(t.topic)
        if topic_id is not None:
            owned |= {(topic_id, p) for p in t.partitions}
    return owned


def _downgrade_with(
    shard: GroupShard,
    group: ConsumerGroup,
    existing: Member,
    changed: Member,
    epoch: int,
    subscription_changed: bool,
    owned: set[tuple[bytes, int]],
    records: list[CoordinatorRecord],
) -> Member:
    """The last member that spoke the consumer protocol is back as a classic one: the group becomes classic with it."""
    stale = group.assignment_epoch < epoch
    if not stale:
        target = group.target_of(changed)
        changed = beat.reconcile(shard, group, changed, group.assignment_epoch, target, subscription_changed, owned, records)
    records += group.tombstones(replaced=(existing.id, changed.id))
    members = [m for m in group.members.values() if m.id != existing.id] + [changed]
    targets = {m.id: group.targets.get(existing.id if m is changed else m.id, {}) for m in members}
    _put_classic(shard, group, members, targets, records, rebalance=stale)
    return changed


def _find(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
    """The classic member of a consumer group that a request comes from. ApiError."""
    if instance_id is None:
        member = group.member(member_id)
    else:
        found = group.static_member(instance_id)
        if found is None:
            raise ApiError(Errors.UNKNOWN_MEMBER_ID)
        beat.check_fenced(found, member_id, instance_id)
        member = found
    if not member.is_classic:
        raise ApiError(Errors.UNKNOWN_MEMBER_ID)
    return member


def _check_generation(member: Member, generation: int) -> None:
    if member.epoch != generation:
        raise ApiError(Errors.ILLEGAL_GENERATION)


def sync(shard: GroupShard, group: ConsumerGroup, request: Any, answer: Answer) -> Result:
    """A classic member of a consumer group asks for its assignment. ApiError."""
    member = _find(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    assert member.classic is not None
    protocol, metadata = member.classic.protocols[0]
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, protocol):
        raise ApiError(Errors.INCONSISTENT_GROUP_PROTOCOL)
    if group.assignment_epoch > member.epoch and member.state != UNREVOKED_PARTITIONS:
        shard.fence_later(("classic-join", group.id, member.id), member.rebalance_timeout_ms, keep=True)
        raise ApiError(Errors.REBALANCE_IN_PROGRESS)
    partitions = {topic: frozenset(of) for topic, of in member.assigned.items()}
    assignment = _embedded_assignment(shard, partitions, classic.embedded_version(metadata))
    session_timeout_ms = member.classic.session_timeout_ms

    def appended(error: ApiError | None) -> None:
        if error is None:
            shard.cancel(("classic-sync", group.id, member.id))
            shard.await_session(group.id, member.id, timeout_ms=session_timeout_ms)
            r = messages.SyncGroupResponse
            answer(r(protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment))

    return Result(on_appended=appended)


def heartbeat(shard: GroupShard, group: ConsumerGroup, request: Any) -> Result:
    """A classic member of a consumer group is there; it is told to join again where its assignment is to change. ApiError."""
    member = _find(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    assert member.classic is not None
    shard.await_session(group.id, member.id, timeout_ms=member.classic.session_timeout_ms)
    behind = member.epoch < group.assignment_epoch or member.state == UNREVOKED_PARTITIONS
    if behind or (member.state == UNRELEASED_PARTITIONS and not group.waits_for_others(member)):
        shard.fence_later(("classic-join", group.id, member.id), member.rebalance_timeout_ms, keep=True)
        return Result(reply=messages.HeartbeatResponse(error_code=int(Errors.REBALANCE_IN_PROGRESS)))
    return Result(reply=messages.HeartbeatResponse())


def leave(shard: GroupShard, group: ConsumerGroup, request: Any) -> Result:
    """Members leave a consumer group by the classic protocol."""
    r = messages.LeaveGroupResponse
    response = r()
    leaving: dict[str, Member] = {}
    for one in request.members:
        out = r.MemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id)
        try:
            if one.group_instance_id is None:
                member = group.member(one.member_id)
            else:
                found = group.static_member(one.group_instance_id)
                if found is None:
                    raise ApiError(Errors.UNKNOWN_MEMBER_ID)
                if one.member_id:
                    beat.check_fenced(found, one.member_id, one.group_instance_id)
                member = found
            leaving[member.id] = member
        except ApiError as error:
            out.error_code = error.code
        response.members.append(out)
    return beat.fence(shard, group, list(leaving.values()), response)
