"""ConsumerGroupHeartbeat: one member, one step (KIP-848; the three steps of seed 002).

1. The member is made or changed, and the group's epoch goes up where that asks for another assignment.
2. The target assignment is computed anew where it is behind the group's epoch.
3. The member is taken towards its target.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..format import CoordinatorRecord
from ..hashing import java_order
from ..shard import Result
from . import migration, regex
from .assignors import AssignorFailed, MemberSpec, Spec
from .classic import ClassicGroup
from .consumer import ConsumerGroup, Count, Resolved
from .environment import Client, Target
from .hashing import metadata_hash
from .members import LEAVE_EPOCH, LEAVE_STATIC_EPOCH, UNREVOKED_PARTITIONS, Member, Reconciliation, current_value, metadata_value
from .naming import kafka_uuid

if TYPE_CHECKING:
    from .shard import GroupShard

REGEX_REFRESH_MIN_MS = 10_000
METADATA_REFRESH_MS = 3_600_000  # the hash is computed anew this often even if no topic changed
MEMBER_ID_REQUIRED_SINCE = 1
SETTLE_MIN_MS = 100
SETTLE_RATE = 2  # members per millisecond that may beat while a group settles
SETTLE_WINDOW_MS = 1000


def check_request(request: Any, version: int, assignors: list[str]) -> None:
    """ApiError(INVALID_REQUEST or UNSUPPORTED_ASSIGNOR) for a heartbeat that no group would take."""

    def refuse_if(wrong: bool, message: str) -> None:
        if wrong:
            raise ApiError(Errors.INVALID_REQUEST, message)

    def is_blank(text: str | None) -> bool:
        return text is not None and not text.strip()

    epoch = request.member_epoch
    if version >= MEMBER_ID_REQUIRED_SINCE or epoch > 0 or epoch == LEAVE_EPOCH:
        refuse_if(is_blank(request.member_id), "MemberId can't be empty.")
    refuse_if(is_blank(request.group_id), "GroupId can't be empty.")
    refuse_if(is_blank(request.instance_id), "InstanceId can't be empty.")
    refuse_if(is_blank(request.rack_id), "RackId can't be empty.")
    if epoch == 0:
        refuse_if(request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request.")
        refuse_if(request.topic_partitions is None or bool(request.topic_partitions), "TopicPartitions must be empty when (re-)joining.")
        nothing = request.subscribed_topic_names is None and request.subscribed_topic_regex is None
        refuse_if(nothing, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch == LEAVE_STATIC_EPOCH:
        refuse_if(request.instance_id is None, "InstanceId can't be null.")
    else:
        refuse_if(epoch < LEAVE_STATIC_EPOCH, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        text = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(java_order(assignors))}."
        raise ApiError(Errors.UNSUPPORTED_ASSIGNOR, text)


def heartbeat(shard: GroupShard, client: Client, request: Any) -> Result:
    """Decides a heartbeat. ApiError."""
    if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
        return _leave(shard, request)
    return _Step(shard, client, request).decide()


class _Step:
    """One heartbeat of a member that stays."""

    def __init__(self, shard: GroupShard, client: Client, request: Any) -> None:
        self.shard = shard
        self.client = client
        self.request = request
        self.records: list[CoordinatorRecord] = []

    def decide(self) -> Result:
        shard, request = self.shard, self.request
        joins = request.member_epoch == 0
        group = _group(shard, request.group_id, joins, self.records)
        check_room(shard, group, request.member_id, request.instance_id)
        member_id = request.member_id or kafka_uuid(shard.env.new_id())
        owned = None
        if request.topic_partitions is not None:
            owned = {(t.topic_id, p) for t in request.topic_partitions for p in t.partitions}
        if request.instance_id is None:
            member = find_member(group, member_id, joins)
            check_epoch(member, request.member_epoch, owned)
        else:
            member = find_static(group, member_id, request.instance_id, joins, self.records, classic=False)
            if not joins:
                check_epoch(member, request.member_epoch, owned)
        changed = self._updated(member)
        after = advance(shard, group, member, changed, owned, self.records)
        shard.await_session(group.id, member_id)
        return Result(self.records, self._reply(group, member, after))

    def _updated(self, member: Member) -> Member:
        request = self.request
        changes: dict[str, Any] = {"client_id": self.client.id, "client_host": self.client.host, "classic": None}
        if request.instance_id is not None:
            changes["instance_id"] = request.instance_id
        if request.rack_id is not None:
            changes["rack_id"] = request.rack_id
        if request.rebalance_timeout_ms != -1:
            changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
        if request.server_assignor is not None:
            changes["server_assignor"] = request.server_assignor
        if request.subscribed_topic_names is not None:
            changes["topic_names"] = frozenset(request.subscribed_topic_names)
        if request.subscribed_topic_regex is not None:
            changes["topic_regex"] = request.subscribed_topic_regex
        return replace(member, **changes)

    def _reply(self, group: ConsumerGroup, before: Member, after: Member) -> Any:
        request = self.request
        r = messages.ConsumerGroupHeartbeatResponse
        response = r(member_id=after.id, member_epoch=after.epoch, heartbeat_interval_ms=heartbeat_interval_ms(self.shard, group, after))
        names_topics = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        is_full = request.rebalance_timeout_ms != -1 and names_topics and request.topic_partitions is not None
        if request.member_epoch == 0 or is_full or before.assigned != after.assigned:
            parts = [r.TopicPartitions(topic_id=topic, partitions=sorted(of)) for topic, of in after.assigned.items()]
            response.assignment = r.Assignment(topic_partitions=parts)
        return response


def heartbeat_interval_ms(shard: GroupShard, group: ConsumerGroup, member: Member) -> int:
    """Kafka's interval; a shorter one while the group settles, as nobody who works locally wants to wait (`ottla.group.settle`)."""
    usual = int(shard.env.group_config(group.id, "consumer.heartbeat.interval.ms"))
    if not shard.env.config("ottla.group.settle"):
        return usual
    since_ms = shard.env.monotonic_ms() - shard.moved_at_ms.get(group.id, -SETTLE_WINDOW_MS)
    if member.state == 0 and member.epoch >= group.assignment_epoch and since_ms >= SETTLE_WINDOW_MS:
        return usual
    return min(usual, max(SETTLE_MIN_MS, len(group.members) // SETTLE_RATE))


# groups and members


def _group(shard: GroupShard, group_id: str, create: bool, records: list[CoordinatorRecord]) -> ConsumerGroup:
    """The group that a heartbeat is for: found, made, or made of a classic one. ApiError(GROUP_ID_NOT_FOUND)."""
    group = shard.groups.get(group_id)
    if group is None:
        if not create:
            raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        return ConsumerGroup(group_id, shard.timeline)
    if isinstance(group, ConsumerGroup):
        return group
    if create and isinstance(group, ClassicGroup):
        if group.is_empty:
            records += shard.end_group(group)
            return ConsumerGroup(group_id, shard.timeline)
        return migration.upgrade(shard, group, records)
    raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def check_room(shard: GroupShard, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """ApiError(GROUP_MAX_SIZE_REACHED)."""
    limit = shard.env.config("group.consumer.max.size")
    if instance_id is not None and instance_id in group.static_members:
        return
    if len(group.members) >= limit and member_id not in group.members:
        raise ApiError(Errors.GROUP_MAX_SIZE_REACHED, f"The consumer group has reached its maximum capacity of {limit} members.")


def find_member(group: ConsumerGroup, member_id: str, create: bool) -> Member:
    if create and member_id not in group.members:
        return Member(member_id)
    return group.member(member_id)


def find_static(group: ConsumerGroup, member_id: str, instance_id: str, create: bool, records: list[CoordinatorRecord], classic: bool) -> Member:
    """The member with an instance id. One that joins takes the place of the one that left, or of a classic one. ApiError."""
    existing = group.static_member(instance_id)
    if not create:
        if existing is None:
            raise ApiError(Errors.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        check_fenced(existing, member_id, instance_id)
        return existing
    if existing is None:
        return find_member(group, member_id, create=True)
    if not classic and not existing.is_classic and existing.epoch != LEAVE_STATIC_EPOCH:
        raise ApiError(
            Errors.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {existing.id} member.",
        )
    new = replace(existing, id=member_id, epoch=0, previous_epoch=0)
    m = messages
    records += removal(group.id, existing.id)
    records.append((m.ConsumerGroupMemberMetadataKey(group_id=group.id, member_id=new.id), metadata_value(new)))
    records.append(target_record(group.id, new.id, group.targets.get(existing.id, {})))
    records.append((m.ConsumerGroupCurrentMemberAssignmentKey(group_id=group.id, member_id=new.id), current_value(new)))
    return new


def check_fenced(member: Member, member_id: str, instance_id: str) -> None:
    if member.id != member_id:
        raise ApiError(Errors.FENCED_INSTANCE_ID, f"Static member {member_id} with instance id {instance_id} was fenced by member {member.id}.")


def check_epoch(member: Member, epoch: int, owned: set[tuple[bytes, int]] | None) -> None:
    """A member whose reply with the next epoch was lost may come with the one before. ApiError(FENCED_MEMBER_EPOCH)."""
    if epoch in (0, member.epoch):
        return
    if epoch < member.epoch and epoch == member.previous_epoch and owned is not None:
        if all(partition in member.assigned.get(topic, ()) for topic, partition in owned):
            return
    word = "greater" if epoch > member.epoch else "smaller"
    raise ApiError(
        Errors.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {word} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


# the three steps


def advance(
    shard: GroupShard,
    group: ConsumerGroup,
    member: Member,
    changed: Member,
    owned: set[tuple[bytes, int]] | None,
    records: list[CoordinatorRecord],
) -> Member:
    """Writes a member's change, bumps the epoch and assigns where that is due, and reconciles the member."""
    epoch, subscription_changed = subscribe(shard, group, member, changed, records)
    target_epoch, target = assign(shard, group, epoch, member, changed, records)
    return reconcile(shard, group, changed, target_epoch, target, subscription_changed, owned, records)


def subscribe(
    shard: GroupShard, group: ConsumerGroup, member: Member, changed: Member, records: list[CoordinatorRecord], *, classic: bool = False
) -> tuple[int, bool]:
    """The member's metadata, and the group's epoch after it; whether the member's subscription changed."""
    names_changed = False
    if member.subscription() != changed.subscription():
        records.append((messages.ConsumerGroupMemberMetadataKey(group_id=group.id, member_id=changed.id), metadata_value(changed)))
        names_changed = member.topic_names != changed.topic_names
    regex_changed, resolved = _update_regexes(shard, group, member, changed, records)
    bump = names_changed or (regex_changed if classic else resolved or _assignor_changes(shard, group, member, changed))
    epoch = group.epoch
    if bump or _refresh_is_due(shard, group):
        epoch = _update_metadata(shard, group, member, changed, bump, records)
    return epoch, names_changed or regex_changed


def _assignor_changes(shard: GroupShard, group: ConsumerGroup, member: Member, changed: Member) -> bool:
    if member.server_assignor == changed.server_assignor:
        return False
    default = shard.assignors.default
    return group.preferred_assignor(default) != group.preferred_assignor(default, member, changed)


def _with(group: ConsumerGroup, changed: Member) -> list[Member]:
    """The members as they will be: `changed` in its own place or in that of the static member it follows."""
    replaced = group.static_members.get(changed.instance_id) if changed.instance_id is not None else None
    return [m for m in group.members.values() if m.id not in (changed.id, replaced)] + [changed]


def _refresh_is_due(shard: GroupShard, group: ConsumerGroup) -> bool:
    deadline, epoch = group.refresh_at_ms
    return shard.env.now_ms() >= deadline or group.epoch < epoch


def _update_metadata(shard: GroupShard, group: ConsumerGroup, member: Member, changed: Member, bump: bool, records: list[CoordinatorRecord]) -> int:
    found = metadata_hash(group.topics_after([member], [changed]), shard.env.image)
    epoch = group.epoch
    if bump or found != group.metadata_hash:
        epoch += 1
        records.append(epoch_record(group.id, epoch, found))
        shard.counts["consumer_rebalances"] += 1
        shard.moved_at_ms[group.id] = shard.env.monotonic_ms()
    group.refresh_at_ms = (shard.env.now_ms() + METADATA_REFRESH_MS, epoch)
    if group.has_partition_metadata:
        records.append((messages.ConsumerGroupPartitionMetadataKey(group_id=group.id), None))
    return epoch


def assign(
    shard: GroupShard, group: ConsumerGroup, epoch: int, member: Member, changed: Member, records: list[CoordinatorRecord]
) -> tuple[int, Target]:
    """The epoch of the target assignment and the member's part of it, computed anew where that is due. ApiError."""
    interval_ms = shard.env.group_config(group.id, "consumer.assignment.interval.ms")
    if group.assignment_epoch >= epoch or not group.may_be_assigned(shard.env.now_ms(), interval_ms):
        return group.assignment_epoch, group.target_of(changed)
    members = {m.id: m for m in _with(group, changed)}
    order = java_order(members)
    assignor = shard.assignors.by_name(group.preferred_assignor(shard.assignors.default, member, changed))
    image = shard.env.image
    topics = {m.id: _topic_ids(shard, group, m) for m in members.values()}
    specs = {i: MemberSpec(members[i].instance_id, members[i].rack_id, topics[i], group.target_of(members[i])) for i in order}
    counts = {topic: image.partition_count(topic) for topic in frozenset().union(*topics.values())}
    spec = Spec(specs, counts, homogeneous=len(set(topics.values())) <= 1)
    try:
        assignment = assignor(spec)
    except AssignorFailed as error:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR, f"Failed to compute a new target assignment for epoch {epoch}: {error}") from None
    for member_id in order:
        target = assignment.get(member_id, {})
        if group.targets.get(member_id) != target:
            records.append(target_record(group.id, member_id, target))
    records.append(assignment_record(group.id, epoch, shard.env.now_ms()))
    return epoch, assignment.get(changed.id, {})


def _topic_ids(shard: GroupShard, group: ConsumerGroup, member: Member) -> frozenset[bytes]:
    image = shard.env.image
    found = (image.topic_id(name) for name in group.subscription_of(member))
    return frozenset(topic for topic in found if topic is not None)


def reconcile(
    shard: GroupShard,
    group: ConsumerGroup,
    member: Member,
    target_epoch: int,
    target: Target,
    subscription_changed: bool,
    owned: set[tuple[bytes, int]] | None,
    records: list[CoordinatorRecord],
) -> Member:
    if not subscription_changed and member.is_reconciled_to(target_epoch):
        return member
    subscribed = set(_topic_ids(shard, group, member))
    after = Reconciliation(member, target_epoch, target, group.owner_epoch, subscribed, subscription_changed, owned).next()
    if after.current() == member.current():
        return after
    records.append((messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group.id, member_id=after.id), current_value(after)))
    if not after.is_classic:
        if after.state == UNREVOKED_PARTITIONS:
            shard.await_revocation(group.id, after)
        else:
            shard.cancel(("rebalance", group.id, after.id))
    return after


# regular expressions


def _update_regexes(shard: GroupShard, group: ConsumerGroup, member: Member, changed: Member, records: list[CoordinatorRecord]) -> tuple[bool, bool]:
    """Whether the member's expression changed, and whether what it matches is known already. ApiError for an invalid one."""
    old, new = member.topic_regex, changed.topic_regex
    updated = resolved = refresh = False
    counts = dict(group.regex_counts.items())
    if old != new:
        updated = True
        if old and counts.get(old, 0) == 1:
            records.append((messages.ConsumerGroupRegularExpressionKey(group_id=group.id, regular_expression=old), None))
        if new:
            if not counts.get(new):
                regex.check(new)
                refresh = True
            elif new in group.regexes:
                resolved = True
        elif old:
            resolved = True
    if refresh or counts:
        _maybe_resolve(shard, group, old, new, counts, refresh)
    return updated, resolved


def _maybe_resolve(shard: GroupShard, group: ConsumerGroup, old: str | None, new: str | None, counts: dict[str, int], refresh: bool) -> None:
    """Begins to match the group's expressions against the topics where that is due, off the loop."""
    now = shard.env.now_ms()
    found = next(iter(group.regexes.values()), None)
    last, version = (found.timestamp_ms, found.version) if found else (-(1 << 62), 0)
    if group.id in shard.resolving or now <= last + REGEX_REFRESH_MIN_MS:
        return
    wanted = dict(counts)
    if old and old != new:
        wanted[old] = wanted.get(old, 1) - 1
    if new and old != new:
        wanted[new] = wanted.get(new, 0) + 1
    names = [r for r, count in wanted.items() if count > 0]
    refresh = refresh or len(names) != len(group.regexes) or version < shard.env.image.version_with_new_topics
    refresh = refresh or now > last + shard.env.config("group.consumer.regex.refresh.interval.ms")
    if not refresh or not names:
        return
    shard.resolving.add(group.id)
    image = shard.env.image
    work = regex.resolver(names, image.topic_names(), image.version, now)
    shard.env.background(work, lambda result, error: shard.resolved(group.id, result, error))


def regexes_resolved(shard: GroupShard, group_id: str, found: dict[str, Resolved]) -> Result:
    """What the expressions match is known now: the group's epoch goes up where that changes its topics."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return Result()
    records: list[CoordinatorRecord] = []
    counts = group.regex_counts
    topics: dict[str, Count] = dict(group.topics.items())
    bump = False
    for expression, new in found.items():
        if not counts.get(expression):
            continue
        before = group.regexes.get(expression)
        old_topics = before.topics if before else frozenset()
        if old_topics != new.topics:
            bump = True
            for name in old_topics - new.topics:
                topics[name] = Count(topics[name].by_name, topics[name].by_regex - 1)
            for name in new.topics - old_topics:
                count = topics.get(name, Count())
                topics[name] = Count(count.by_name, count.by_regex + 1)
        value = messages.ConsumerGroupRegularExpressionValue(topics=sorted(new.topics), version=new.version, timestamp=new.timestamp_ms)
        records.append((messages.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression), value))
    hash_now = metadata_hash((name for name, count in topics.items() if count != (0, 0)), shard.env.image)
    if bump or hash_now != group.metadata_hash:
        records.append(epoch_record(group_id, group.epoch + 1, hash_now))
        shard.counts["consumer_rebalances"] += 1
        shard.moved_at_ms[group_id] = shard.env.monotonic_ms()
        group.refresh_at_ms = (shard.env.now_ms() + METADATA_REFRESH_MS, group.epoch + 1)
    return Result(records)


# leaving and fencing


def _leave(shard: GroupShard, request: Any) -> Result:
    group = shard.groups.get(request.group_id)
    if group is None:
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a consumer group.")
    reply = messages.ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.instance_id is None:
        return fence(shard, group, [group.member(request.member_id)], reply)
    member = group.static_member(request.instance_id)
    if member is None:
        raise ApiError(Errors.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
    check_fenced(member, request.member_id, request.instance_id)
    if request.member_epoch != LEAVE_STATIC_EPOCH:
        return fence(shard, group, [member], reply)
    away = replace(
        member,
        epoch=LEAVE_STATIC_EPOCH,
        revoking={},
        assigned={topic: dict.fromkeys(of, 0) for topic, of in member.assigned.items()},
    )
    key = messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group.id, member_id=member.id)
    return Result([(key, current_value(away))], reply)


def fence(shard: GroupShard, group: ConsumerGroup, members: list[Member], reply: Any) -> Result:
    """Takes members out of the group, which becomes classic where only classic members stay and that is allowed."""
    if not members:
        return Result(reply=reply)
    gone = {m.id for m in members}
    if migration.may_downgrade(shard, group, gone):
        return migration.downgrade_without(shard, group, gone, reply)
    records = [record for m in members for record in removal(group.id, m.id)]
    staying = [m for m in group.members.values() if m.id not in gone]
    wanted = {m.topic_regex for m in staying if m.topic_regex}
    for expression in dict.fromkeys(m.topic_regex for m in members if m.topic_regex):
        if expression not in wanted:
            records.append((messages.ConsumerGroupRegularExpressionKey(group_id=group.id, regular_expression=expression), None))
    epoch = group.epoch + 1
    records.append(epoch_record(group.id, epoch, metadata_hash(group.topics_after(members, []), shard.env.image)))
    if not staying:
        records.append(assignment_record(group.id, epoch, 0))
    shard.moved_at_ms[group.id] = shard.env.monotonic_ms()
    return Result(records, reply)


# records


def removal(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    m = messages
    return [
        (m.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        (m.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        (m.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def epoch_record(group_id: str, epoch: int, hash_of_metadata: int) -> CoordinatorRecord:
    m = messages
    return m.ConsumerGroupMetadataKey(group_id=group_id), m.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=hash_of_metadata)


def assignment_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    m = messages
    value = m.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return m.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value


def target_record(group_id: str, member_id: str, target: Target) -> CoordinatorRecord:
    v = messages.ConsumerGroupTargetAssignmentMemberValue
    parts = [v.TopicPartition(topic_id=topic, partitions=sorted(of)) for topic, of in target.items()]
    key = messages.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return key, v(topic_partitions=parts)
