"""ShareGroupHeartbeat: a member of a share group joins, is there, or leaves (KIP-932).

As in a consumer group the epoch goes up where subscriptions or topics change, the target is computed anew, and the member takes it over;
it does so in one step, as others may have the same partitions. Partitions are assigned once the share coordinator knows them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..format import CoordinatorRecord
from ..hashing import java_order
from ..shard import Result
from .assignors import AssignorFailed, MemberSpec, Spec, simple
from .environment import Client, Target
from .hashing import metadata_hash
from .heartbeat import SETTLE_MIN_MS, SETTLE_RATE, SETTLE_WINDOW_MS
from .members import LEAVE_EPOCH, STABLE
from .share import NOTHING, Initialization, ShareGroup, ShareMember, TopicState, combined, initialization_record

if TYPE_CHECKING:
    from .shard import GroupShard

NEVER_MS = 2**31 - 1  # how long a metadata hash holds unless a topic changes


class Unset(NamedTuple):
    """Share-partitions that the share coordinator is to initialise: partitions and start offset by topic id."""

    group_id: str
    state_epoch: int
    topics: dict[bytes, tuple[frozenset[int], int]]


def check_request(request: Any) -> None:
    """ApiError(INVALID_REQUEST) for a heartbeat that no group would take."""
    texts = (("MemberId", request.member_id), ("GroupId", request.group_id), ("RackId", request.rack_id))
    for name, text in texts:
        if text is not None and not text.strip():
            raise ApiError(Errors.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == 0:
        if not request.subscribed_topic_names:
            raise ApiError(Errors.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_EPOCH:
        raise ApiError(Errors.INVALID_REQUEST, "MemberEpoch is invalid.")


def heartbeat(shard: GroupShard, client: Client, request: Any) -> Result:
    """Decides a heartbeat; replies with the response, and what is to be initialised or None. ApiError."""
    if request.member_epoch == LEAVE_EPOCH:
        return _leave(shard, request)
    joins = request.member_epoch == 0
    group = share_group(shard, request.group_id, joins)
    limit = shard.env.config("group.share.max.size")
    if len(group.members) >= limit and request.member_id not in group.members:
        raise ApiError(Errors.GROUP_MAX_SIZE_REACHED, f"The share group has reached its maximum capacity of {limit} members.")
    member = ShareMember(request.member_id) if joins and request.member_id not in group.members else group.member(request.member_id)
    _check_epoch(member, request.member_epoch)
    changes: dict[str, Any] = {"client_id": client.id, "client_host": client.host}
    if request.rack_id is not None:
        changes["rack_id"] = request.rack_id
    if request.subscribed_topic_names is not None:
        changes["topic_names"] = frozenset(request.subscribed_topic_names)
    records: list[CoordinatorRecord] = []
    changed = replace(member, **changes)
    epoch, topics, bump = _subscribe(shard, group, member, changed, records)
    target_epoch, target = _assign(shard, group, epoch, changed, records)
    after = _reconcile(shard, group, changed, target_epoch, target, bump, records)
    shard.await_session(group.id, after.id, "share")
    unset = _initialize(shard, group.id, epoch, topics, records)
    return Result(records, (_reply(shard, group, request, member, after, epoch), unset))


def share_group(shard: GroupShard, group_id: str, create: bool) -> ShareGroup:
    """ApiError(GROUP_ID_NOT_FOUND)."""
    group = shard.groups.get(group_id)
    if group is None:
        if not create:
            raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        return ShareGroup(group_id, shard.timeline)
    if not isinstance(group, ShareGroup):
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    return group


def _check_epoch(member: ShareMember, epoch: int) -> None:
    """ApiError(FENCED_MEMBER_EPOCH). A member whose reply with the next epoch was lost may come with the one before."""
    if epoch in (0, member.epoch, member.previous_epoch) and epoch <= member.epoch:
        return
    known = f"({epoch}) than the one known by the group coordinator ({member.epoch})"
    if epoch > member.epoch:
        text = f"The share group member has a greater member epoch {known}. The member must abandon all its partitions and rejoin."
    else:
        text = (
            f"The share group member has a smaller member epoch {known}, and it does not match the previous member epoch "
            f"({member.previous_epoch}). The member must abandon all its partitions and rejoin."
        )
    raise ApiError(Errors.FENCED_MEMBER_EPOCH, text)


def _reply(shard: GroupShard, group: ShareGroup, request: Any, before: ShareMember, after: ShareMember, epoch: int) -> Any:
    r = messages.ShareGroupHeartbeatResponse
    response = r(member_id=after.id, member_epoch=after.epoch, heartbeat_interval_ms=_interval_ms(shard, group, after, epoch))
    if request.member_epoch == 0 or request.subscribed_topic_names is not None or before.assigned != after.assigned:
        parts = [r.TopicPartitions(topic_id=topic, partitions=sorted(of)) for topic, of in after.assigned.items()]
        response.assignment = r.Assignment(topic_partitions=parts)
    return response


def _interval_ms(shard: GroupShard, group: ShareGroup, member: ShareMember, epoch: int) -> int:
    """Kafka's interval; a shorter one while the group settles (`ottla.group.settle`)."""
    usual = int(shard.env.group_config(group.id, "share.heartbeat.interval.ms"))
    if not shard.env.config("ottla.group.settle"):
        return usual
    since_ms = shard.env.monotonic_ms() - shard.moved_at_ms.get(group.id, -SETTLE_WINDOW_MS)
    if member.epoch >= epoch and since_ms >= SETTLE_WINDOW_MS and not shard.initializations.get(group.id, NOTHING).initializing:
        return usual
    return min(usual, max(SETTLE_MIN_MS, len(group.members) // SETTLE_RATE))


# the steps


def _subscribe(
    shard: GroupShard, group: ShareGroup, member: ShareMember, changed: ShareMember, records: list[CoordinatorRecord]
) -> tuple[int, Iterable[str], bool]:
    """The member's metadata; the group's epoch after it, the topics it is subscribed to, and whether the epoch goes up."""
    bump = False
    if member.subscription() != changed.subscription() or changed.id not in group.members:
        key = messages.ShareGroupMemberMetadataKey(group_id=group.id, member_id=changed.id)
        names = sorted(changed.topic_names)
        value = messages.ShareGroupMemberMetadataValue(
            rack_id=changed.rack_id, client_id=changed.client_id, client_host=changed.client_host, subscribed_topic_names=names
        )
        records.append((key, value))
        bump = member.topic_names != changed.topic_names
    if group.assignment_epoch >= group.epoch:
        bump = bump or _has_unassigned(shard, group)
    epoch = group.epoch
    topics: Iterable[str] = group.topics
    deadline, of_epoch = group.refresh_at_ms
    if bump or shard.env.now_ms() >= deadline or epoch < of_epoch:
        topics = group.topics_after(member, changed)
        found = metadata_hash(topics, shard.env.image)
        bump = bump or found != group.metadata_hash
        if bump:
            epoch += 1
            records.append(_epoch_record(group.id, epoch, found))
            shard.counts["share_rebalances"] += 1
            shard.moved_at_ms[group.id] = shard.env.monotonic_ms()
        group.refresh_at_ms = (shard.env.now_ms() + NEVER_MS, epoch)
    return epoch, topics, bump


def _has_unassigned(shard: GroupShard, group: ShareGroup) -> bool:
    """Whether share-partitions have been initialised that nobody has yet."""
    initialized = shard.initializations.get(group.id, NOTHING).initialized
    if group.is_empty or not initialized or not len(group.topics):
        return False
    assigned: dict[bytes, frozenset[int]] = {}
    for target in group.targets.values():
        for topic, of in target.items():
            assigned[topic] = assigned.get(topic, frozenset()) | of
    return any(state.name in group.topics and assigned.get(topic) != state.partitions for topic, state in initialized.items())


def _assign(shard: GroupShard, group: ShareGroup, epoch: int, changed: ShareMember, records: list[CoordinatorRecord]) -> tuple[int, Target]:
    """The epoch of the target assignment and the member's part of it, computed anew where that is due. ApiError."""
    interval_ms = shard.env.group_config(group.id, "share.assignment.interval.ms")
    if group.assignment_epoch >= epoch or not group.may_be_assigned(shard.env.now_ms(), interval_ms):
        return group.assignment_epoch, group.targets.get(changed.id, {})
    members: dict[str, ShareMember] = {**dict(group.members.items()), changed.id: changed}
    image = shard.env.image
    topics = {m.id: frozenset(t for t in map(image.topic_id, m.topic_names) if t is not None) for m in members.values()}
    order = java_order(members)
    specs = {i: MemberSpec(None, members[i].rack_id, topics[i], group.targets.get(i, {})) for i in order}
    initialized = shard.initializations.get(group.id, NOTHING).initialized
    assignable = {topic: state.partitions for topic, state in initialized.items()}
    counts = {topic: image.partition_count(topic) for topic in frozenset().union(*topics.values())}
    try:
        assignment = simple.assign(Spec(specs, counts, homogeneous=len(set(topics.values())) <= 1), assignable)
    except AssignorFailed as error:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR, f"Failed to compute a new target assignment for epoch {epoch}: {error}") from None
    for member_id in order:
        target = assignment.get(member_id, {})
        if group.targets.get(member_id) != target:
            records.append(_target_record(group.id, member_id, target))
    records.append(_assignment_record(group.id, epoch, shard.env.now_ms()))
    return epoch, assignment.get(changed.id, {})


def _reconcile(
    shard: GroupShard,
    group: ShareGroup,
    member: ShareMember,
    target_epoch: int,
    target: Target,
    changed: bool,
    records: list[CoordinatorRecord],
) -> ShareMember:
    if not changed and member.epoch == target_epoch:
        return member
    subscribed = {shard.env.image.topic_id(name) for name in member.topic_names}
    after = replace(member, assigned={topic: of for topic, of in target.items() if topic in subscribed})
    if member.epoch != target_epoch:
        after = replace(after, epoch=target_epoch, previous_epoch=member.epoch)
    if after != member:
        records.append((messages.ShareGroupCurrentMemberAssignmentKey(group_id=group.id, member_id=after.id), _current_value(after)))
    return after


def _initialize(shard: GroupShard, group_id: str, epoch: int, names: Iterable[str], records: list[CoordinatorRecord]) -> Unset | None:
    """Which share-partitions of the group's topics the share coordinator does not know yet. They are noted as being initialised."""
    found = shard.initializations.get(group_id, NOTHING)
    now = shard.env.now_ms()
    retry_ms = shard.env.config("group.share.initialize.retry.interval.ms")
    under_way = {topic: state for topic, state in found.initializing.items() if now - state.since_ms < retry_ms}
    known = combined(found.initialized, under_way)
    image = shard.env.image
    missing: dict[bytes, TopicState] = {}
    for name in names:
        topic_id = image.topic_id(name)
        if topic_id is not None:
            have = known[topic_id].partitions if topic_id in known else frozenset()
            count = image.partition_count(topic_id)
            if len(have) < count:
                missing[topic_id] = TopicState(name, frozenset(range(count)) - have, now)
    if not missing:
        return None
    records.append(initializing_record(shard, group_id, missing))
    seen = found.initialized.keys() | found.initializing.keys()
    return Unset(group_id, epoch, {topic: (state.partitions, 0 if topic in seen else -1) for topic, state in missing.items()})


def initializing_record(shard: GroupShard, group_id: str, topics: dict[bytes, TopicState]) -> CoordinatorRecord:
    found = shard.initializations.get(group_id, NOTHING)
    initializing = combined(found.initializing, topics)
    deleting = found.deleting - initializing.keys()
    return initialization_record(group_id, Initialization(initializing, found.initialized, deleting), shard.env.image)


# leaving and fencing


def _leave(shard: GroupShard, request: Any) -> Result:
    group = shard.existing(request.group_id)
    if not isinstance(group, ShareGroup):
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a share group.")
    reply = messages.ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    result = fence(shard, group, group.member(request.member_id))
    result.reply = (reply, None)
    return result


def fence(shard: GroupShard, group: ShareGroup, member: ShareMember) -> Result:
    """Takes a member out of the group."""
    m = messages
    epoch = group.epoch + 1
    records: list[CoordinatorRecord] = [
        (m.ShareGroupCurrentMemberAssignmentKey(group_id=group.id, member_id=member.id), None),
        (m.ShareGroupTargetAssignmentMemberKey(group_id=group.id, member_id=member.id), None),
        (m.ShareGroupMemberMetadataKey(group_id=group.id, member_id=member.id), None),
        _epoch_record(group.id, epoch, metadata_hash(group.topics_after(member, None), shard.env.image)),
    ]
    if len(group.members) == 1:
        records.append(_assignment_record(group.id, epoch, 0))
    shard.moved_at_ms[group.id] = shard.env.monotonic_ms()
    return Result(records)


# records


def _epoch_record(group_id: str, epoch: int, hash_of_metadata: int) -> CoordinatorRecord:
    m = messages
    return m.ShareGroupMetadataKey(group_id=group_id), m.ShareGroupMetadataValue(epoch=epoch, metadata_hash=hash_of_metadata)


def _assignment_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = messages.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return messages.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value


def _target_record(group_id: str, member_id: str, target: Target) -> CoordinatorRecord:
    v = messages.ShareGroupTargetAssignmentMemberValue
    parts = [v.TopicPartition(topic_id=topic, partitions=sorted(of)) for topic, of in target.items()]
    return messages.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), v(topic_partitions=parts)


def _current_value(member: ShareMember) -> Any:
    v = messages.ShareGroupCurrentMemberAssignmentValue
    parts = [v.TopicPartitions(topic_id=topic, partitions=sorted(of)) for topic, of in member.assigned.items()]
    return v(member_epoch=member.epoch, previous_member_epoch=member.previous_epoch, state=STABLE, assigned_partitions=parts)
