"""Groups that change their kind while they have members (KIP-848).

`group.consumer.migration.policy` says which direction is allowed. A classic group becomes a consumer group with the
first member that sends a ConsumerGroupHeartbeat.
A consumer group becomes classic when the last member that sends one leaves.
"""

from __future__ import annotations

from typing import TypeVar

from ....protocol import messages
from ....protocol.errors import ApiError, Errors, MalformedMessage
from ...format import CoordinatorRecord
from ...shard import Result
from .. import consumer_protocol
from ..classic.group import ClassicGroup, State
from ..classic.member import ClassicMember
from ..classic.rebalance import prepare_rebalance
from ..classic.session import renew_session
from ..consumer.group import ConsumerGroup
from ..consumer.heartbeat import heartbeat_after
from ..consumer.member import ClassicMetadata, Member
from ..consumer.reconciliation import reconcile
from ..consumer.records import assignment_record, current_record, epoch_record, metadata_record, target_record
from ..environment import Client, Target
from ..metadata_hash import metadata_hash
from ..modern import STABLE
from ..state import ShardState, other_kind

R = TypeVar("R")
DISABLED = "DISABLED"
UPGRADES = frozenset(("BIDIRECTIONAL", "UPGRADE"))
DOWNGRADES = frozenset(("BIDIRECTIONAL", "DOWNGRADE"))


def policy_of(shard: ShardState) -> str:
    return str(shard.env.config("group.consumer.migration.policy")).upper()


# from classic to consumer


def heartbeat_of_classic(
    shard: ShardState, group: ClassicGroup, client: Client, request: messages.ConsumerGroupHeartbeatRequest
) -> Result[messages.ConsumerGroupHeartbeatResponse]:
    """The first member of a classic group that uses the consumer protocol joins. Raises ApiError."""
    if request.member_epoch != 0:
        raise other_kind(group.id, ConsumerGroup.kind)
    records: list[CoordinatorRecord] = []
    if group.is_empty:
        records += shard.end_group(group)
        made = ConsumerGroup(group.id, shard.timeline)
        return heartbeat_after(shard, made, client, request, records)
    _check_upgrade(shard, group)
    mark = shard.journal.end()
    try:
        result = heartbeat_after(shard, _upgraded(shard, group, records), client, request, records)
    except ApiError as error:
        shard.journal.back_to(mark)
        result = Result(reply=error.put_into(messages.ConsumerGroupHeartbeatResponse(), with_default=False))
    _let_join_again(group)
    result.on_failed = lambda error: _let_join_again(group)
    return result


def _let_join_again(group: ClassicGroup) -> None:
    """Answers who waits with REBALANCE_IN_PROGRESS. As in Kafka that holds where the group stays a classic one."""
    again = int(Errors.REBALANCE_IN_PROGRESS)
    for member in list(group.members.values()):
        group.answer_join(member, messages.JoinGroupResponse(error_code=again, member_id=member.id, protocol_name=None))
        group.answer_sync(member, messages.SyncGroupResponse(error_code=again, assignment=b""))


def _cannot_upgrade(group: ClassicGroup, reason: str) -> ApiError:
    return ApiError(Errors.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group {group.id} to consumer group {reason}")


def _check_upgrade(shard: ShardState, group: ClassicGroup) -> None:
    """Raises ApiError(GROUP_ID_NOT_FOUND)."""
    if policy_of(shard) not in UPGRADES:
        raise _cannot_upgrade(group, "because online upgrade is disabled.")
    if not group.uses_consumer_protocol:
        raise _cannot_upgrade(group, "because the group does not use the consumer embedded protocol.")
    if len(group.members) > shard.env.config("group.consumer.max.size"):
        raise _cannot_upgrade(group, "because the group size exceeds the consumer group maximum size.")


def _upgraded(shard: ShardState, group: ClassicGroup, records: list[CoordinatorRecord]) -> ConsumerGroup:
    """Returns the classic group as a consumer group. The replay of `records`, to which it adds, puts it in place.
    Raises ApiError: GROUP_ID_NOT_FOUND; UNKNOWN_SERVER_ERROR while a member waits for a rebalance that does not know
    the protocol which the members had agreed on, or where they have not agreed on one yet.
    """
    try:
        made = _consumer_group_of(shard, group)
    except MalformedMessage:
        raise _cannot_upgrade(group, "because the embedded consumer protocol is malformed.") from None
    records += group.tombstones()
    records += _records_of(made)
    for one in made.members.values():
        if one.classic is not None:
            shard.await_session(made, one.id, one.classic.session_timeout_ms)
    return made


def _consumer_group_of(shard: ShardState, group: ClassicGroup) -> ConsumerGroup:
    image = shard.env.image
    made = ConsumerGroup(group.id, shard.timeline)
    made.set_assignment(group.generation, 0)
    for m in group.members.values():
        assigned: Target = {}
        given = group.assignments.get(m.id)
        if given:
            found = consumer_protocol.assignment(given)
            if found.user_data:
                raise _cannot_upgrade(
                    group,
                    "because an unsupported custom assignor is in use. Please refer to the documentation or switch to "
                    "a default assignor before re-attempting the upgrade.",
                )
            for t in found.assigned_partitions:
                topic_id = image.topic_id(t.topic)
                if topic_id is not None:
                    assigned[topic_id] = frozenset(t.partitions)
        if not m.supports(group.protocol):
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        said = consumer_protocol.subscription(m.metadata(group.protocol))
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
    members = list(group.members.values())
    records: list[CoordinatorRecord] = [metadata_record(group.id, one) for one in members]
    records.append(epoch_record(group.id, group.epoch, group.metadata_hash))
    records += [target_record(group.id, one.id, group.targets[one.id]) for one in members]
    records.append(assignment_record(group.id, group.assignment_epoch, group.assignment_timestamp_ms))
    records += [current_record(group.id, one) for one in members]
    return records


# from consumer to classic


def may_downgrade(shard: ShardState, group: ConsumerGroup, gone: set[str]) -> bool:
    """Whether the group becomes classic when these members leave."""
    left = len(group.members) - len(gone)
    if left <= 0 or not group.would_be_classic_without(gone):
        return False
    return policy_of(shard) in DOWNGRADES and left <= shard.env.config("group.max.size")


def downgrade_without(shard: ShardState, group: ConsumerGroup, gone: set[str], reply: R) -> Result[R]:
    """Removes members; the others become a classic group, which rebalances."""
    staying = [m for m in group.members.values() if m.id not in gone]
    targets = {m.id: group.targets.get(m.id, {}) for m in staying}
    records = group.tombstones()
    _put_classic(shard, group, staying, targets, records, rebalance=True)
    return Result(records, reply, replay=False)


def _put_classic(
    shard: ShardState,
    group: ConsumerGroup,
    members: list[Member],
    targets: dict[str, Target],
    records: list[CoordinatorRecord],
    rebalance: bool,
) -> None:
    """Replaces the group by a classic one at once. The records are not replayed: a classic group is changed where the
    change is decided.
    """
    made = ClassicGroup(
        group.id,
        State.STABLE,
        generation=group.epoch,
        protocol_type=consumer_protocol.PROTOCOL_TYPE,
        state_since_ms=shard.env.now_ms(),
        journal=shard.journal,
    )
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
                    consumer_protocol.PROTOCOL_TYPE,
                    m.classic.protocols,
                )
            )
        made.protocol = made.select_protocol()
        made.subscribed = made.compute_subscribed()
        versions = {one.id: consumer_protocol.version_of(one.metadata(made.protocol)) for one in made.members.values()}
        made.assignments = {one: embedded_assignment(shard, targets[one], versions[one]) for one in made.members}
    except MalformedMessage as error:
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Cannot downgrade the classic group {group.id}: {error}.") from None
    records.append(made.record(made.assignments))
    shard.groups.decide(group.id, made)
    for one in made.members.values():
        renew_session(shard, made, one)
    if rebalance:
        prepare_rebalance(shard, made, "it became a classic group")


def embedded_assignment(shard: ShardState, partitions: Target, version: int) -> bytes:
    """Returns an assignment as bytes of the embedded protocol; topics that do not exist are left out."""
    by_topic = {name: sorted(of) for _, name, of in shard.named(partitions)}
    return consumer_protocol.build_assignment(by_topic, version)


def may_downgrade_with(shard: ShardState, group: ConsumerGroup, replaced: Member) -> bool:
    """Whether the group becomes classic when `replaced`, a static member, joins again as a classic member."""
    if not group.would_be_classic_without({replaced.id}):
        return False
    return policy_of(shard) in DOWNGRADES and len(group.members) <= shard.env.config("group.max.size")


def downgrade_with(
    shard: ShardState,
    group: ConsumerGroup,
    existing: Member,
    changed: Member,
    epoch: int,
    subscription_changed: bool,
    owned: set[tuple[bytes, int]],
    records: list[CoordinatorRecord],
) -> Member:
    """The last member that used the consumer protocol joins again with the classic one: the group becomes classic."""
    stale = group.assignment_epoch < epoch
    if not stale:
        target = group.target_of(changed)
        changed = reconcile(shard, group, changed, group.assignment_epoch, target, subscription_changed, owned, records)
    records += group.tombstones(replaced=(existing.id, changed.id))
    members = [m for m in group.members.values() if m.id != existing.id] + [changed]
    targets = {m.id: group.targets.get(existing.id if m is changed else m.id, {}) for m in members}
    _put_classic(shard, group, members, targets, records, rebalance=stale)
    return changed
