"""ShareGroupHeartbeat: a member of a share group joins, stays or leaves (KIP-932).

As in a consumer group the epoch rises when subscriptions or topics change, the target is computed again, and the member
adopts it; it does so in one step, because other members may have the same partitions. Partitions are assigned once the
share coordinator has initialized them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ... import epochs
from ...format import CoordinatorRecord
from ...shard import Result
from .. import target_assignment
from ..assignment_work import Candidate, Work
from ..assignors import simple
from ..environment import Client, Target
from ..metadata_hash import metadata_hash
from ..modern import LEAVE_EPOCH, replaced
from ..modern_pace import heartbeat_interval_ms
from ..state import ShardState
from .group import NOTHING, ShareGroup, ShareMember, TopicState, combined
from .records import (
    RECORDS,
    assignment_record,
    current_record,
    epoch_record,
    initializing_record,
    member_tombstones,
    metadata_record,
)

NEVER_MS = 2**31 - 1  # how long a metadata hash is valid unless a topic changes


class Unset(NamedTuple):
    """Share-partitions that the share coordinator must initialize: partitions and start offset by topic id."""

    group_id: str
    state_epoch: int
    topics: dict[bytes, tuple[frozenset[int], int]]


if TYPE_CHECKING:
    # the response, and the share-partitions to initialize
    Beat = tuple[messages.ShareGroupHeartbeatResponse, Unset | None]


def check_request(request: messages.ShareGroupHeartbeatRequest) -> None:
    """Raises ApiError(INVALID_REQUEST) for a heartbeat that is wrong for every group."""
    texts = (("MemberId", request.member_id), ("GroupId", request.group_id), ("RackId", request.rack_id))
    for name, text in texts:
        if text is not None and not text.strip():
            raise ApiError(Errors.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == 0:
        if not request.subscribed_topic_names:
            raise ApiError(Errors.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_EPOCH:
        raise ApiError(Errors.INVALID_REQUEST, "MemberEpoch is invalid.")


def join_new_group(
    shard: ShardState, group: None, client: Client, request: messages.ShareGroupHeartbeatRequest
) -> Result[Beat]:
    """The first member of a group joins. Raises ApiError."""
    if request.member_epoch == LEAVE_EPOCH:
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    if request.member_epoch != 0:
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Share group {request.group_id} not found.")
    return heartbeat(shard, ShareGroup(request.group_id, shard.timeline), client, request)


def heartbeat(
    shard: ShardState, group: ShareGroup, client: Client, request: messages.ShareGroupHeartbeatRequest
) -> Result[Beat]:
    """A member joins, stays or leaves. Replies with the response, and the share-partitions to initialize or None.
    Raises ApiError.
    """
    if request.member_epoch == LEAVE_EPOCH:
        reply = messages.ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        shard.tell(group, "left", request.member_id)
        return remove(shard, group, group.member(request.member_id)).with_reply((reply, None))
    joins = request.member_epoch == 0
    limit = shard.env.config("group.share.max.size")
    if len(group.members) >= limit and request.member_id not in group.members:
        raise ApiError(
            Errors.GROUP_MAX_SIZE_REACHED, f"The share group has reached its maximum capacity of {limit} members."
        )
    member = (
        ShareMember(request.member_id)
        if joins and request.member_id not in group.members
        else group.member(request.member_id)
    )
    _check_epoch(member, request.member_epoch)
    changes: dict[str, object] = {"client_id": client.id, "client_host": client.host}
    if request.rack_id is not None:
        changes["rack_id"] = request.rack_id
    if request.subscribed_topic_names is not None:
        changes["topic_names"] = frozenset(request.subscribed_topic_names)
    records: list[CoordinatorRecord] = []
    changed = replaced(member, changes)
    epoch, topics, bump, alike = _subscribe(shard, group, member, changed, records)
    target_epoch, target = _assign(shard, group, epoch, changed, alike, records)
    after = _reconcile(shard, group, changed, target_epoch, target, bump, records)
    shard.await_session(group, after.id)
    unset = _initialize(shard, group, epoch, topics, records)
    return Result(records, (_reply(shard, group, request, member, after, epoch), unset))


def _check_epoch(member: ShareMember, epoch: int) -> None:
    """Raises ApiError(FENCED_MEMBER_EPOCH). The previous epoch is valid too:
    the reply with the present one may be lost.
    """
    if epoch in (0, member.epoch, member.previous_epoch) and epoch <= member.epoch:
        return
    known = f"({epoch}) than the one known by the group coordinator ({member.epoch})"
    if epoch > member.epoch:
        text = (
            f"The share group member has a greater member epoch {known}. The member must abandon all its "
            "partitions and rejoin."
        )
    else:
        text = (
            f"The share group member has a smaller member epoch {known}, and it does not match the previous member "
            "epoch "
            f"({member.previous_epoch}). The member must abandon all its partitions and rejoin."
        )
    raise ApiError(Errors.FENCED_MEMBER_EPOCH, text)


def _reply(
    shard: ShardState,
    group: ShareGroup,
    request: messages.ShareGroupHeartbeatRequest,
    before: ShareMember,
    after: ShareMember,
    epoch: int,
) -> messages.ShareGroupHeartbeatResponse:
    r = messages.ShareGroupHeartbeatResponse
    initializes = bool(shard.initializations.get(group.id, NOTHING).initializing)
    response = r(
        member_id=after.id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(shard, group, after.epoch >= epoch and not initializes),
    )
    if request.member_epoch == 0 or request.subscribed_topic_names is not None or before.assigned != after.assigned:
        parts = [r.TopicPartitions(topic_id=topic, partitions=sorted(of)) for topic, of in after.assigned.items()]
        response.assignment = r.Assignment(topic_partitions=parts)
    return response


# the steps


def _subscribe(
    shard: ShardState, group: ShareGroup, member: ShareMember, changed: ShareMember, records: list[CoordinatorRecord]
) -> tuple[int, Iterable[str], bool, bool | None]:
    """Adds the records of a member's metadata and of the group's epoch, if they change. Returns the epoch, the topics
    to which the group is subscribed, whether the epoch is raised, and whether all members are subscribed to the same:
    None if that is as it was, which Kafka does not look at then.
    """
    bump = False
    if member.subscription() != changed.subscription() or changed.id not in group.members:
        records.append(metadata_record(group.id, changed))
        bump = member.topic_names != changed.topic_names
    if group.assignment_epoch >= group.epoch:
        bump = bump or _has_unassigned(shard, group)
    epoch = group.epoch
    topics: Iterable[str] = group.topics
    alike = None
    deadline, of_epoch = group.refresh_at_ms
    if bump or shard.env.now_ms() >= deadline or epoch < of_epoch:
        topics = counts = group.topics_after(member, changed)
        alike = group.are_alike_after(changed, counts)
        found = metadata_hash(topics, shard.env.image)
        bump = bump or found != group.metadata_hash
        if bump:
            epoch = epochs.after(epoch)
            records.append(epoch_record(group.id, epoch, found))
            shard.counts["share_rebalances"] += 1
            shard.moved_at_ms[group.id] = shard.env.monotonic_ms()
        group.refresh_at_ms = (shard.env.now_ms() + NEVER_MS, epoch)
    return epoch, topics, bump, alike


def _has_unassigned(shard: ShardState, group: ShareGroup) -> bool:
    """Whether some initialized share-partitions are assigned to no member."""
    found = shard.initializations.get(group.id, NOTHING)
    if group.is_empty or not found.initialized or not len(group.topics):
        return False
    if group.covered is not None and group.covered[0] == group.assignment_epoch and group.covered[1] is found:
        return False
    assigned: dict[bytes, set[int]] = {}
    for target in group.targets.values():
        for topic, of in target.items():
            assigned.setdefault(topic, set()).update(of)
    if any(
        state.name in group.topics and assigned.get(topic) != set(state.partitions)
        for topic, state in found.initialized.items()
    ):
        return True
    group.covered = group.assignment_epoch, found
    return False


def _assign(
    shard: ShardState,
    group: ShareGroup,
    epoch: int,
    changed: ShareMember,
    alike: bool | None,
    records: list[CoordinatorRecord],
) -> tuple[int, Target]:
    """Returns the epoch of the target assignment and the member's part of it; computes the target again if that is due.
    Raises ApiError.
    """
    if target_assignment.is_due(shard, group, epoch):
        members = group.in_order_with(changed)
        work = _work(shard, group, epoch, members, group.are_alike() if alike is None else alike)
        assignment = target_assignment.assign(shard, group, work, records)
        if assignment is not None:
            return epoch, assignment.get(changed.id, {})
    return group.assignment_epoch, group.targets.get(changed.id, {})


def _work(
    shard: ShardState, group: ShareGroup, epoch: int, members: Iterable[ShareMember], alike: bool
) -> Work[Target]:
    candidates = [Candidate(m.id, None, m.rack_id, m.topic_names, group.targets.get(m.id, {})) for m in members]
    initialized = shard.initializations.get(group.id, NOTHING).initialized
    assignable = {topic: state.partitions for topic, state in initialized.items()}
    return Work(RECORDS, epoch, candidates, lambda spec: simple.steps(spec, assignable), homogeneous=alike)


def work_for(shard: ShardState, group: ShareGroup) -> Work[Target]:
    """Describes the assignment that the group needs now."""
    return _work(shard, group, group.epoch, group.in_order(), group.are_alike())


def _reconcile(
    shard: ShardState,
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
        records.append(current_record(group.id, after))
    return after


def _initialize(
    shard: ShardState,
    group: ShareGroup,
    epoch: int,
    names: Iterable[str],
    records: list[CoordinatorRecord],
) -> Unset | None:
    """Returns the share-partitions of the group's topics that the share coordinator does not know yet, and adds the
    record that they are being initialized.
    """
    found, image = shard.initializations.get(group.id, NOTHING), shard.env.image
    if group.initialized == (epoch, image.version) and group.initialized_as is found:
        return None
    now = shard.env.now_ms()
    retry_ms = shard.env.config("group.share.initialize.retry.interval.ms")
    under_way = {topic: state for topic, state in found.initializing.items() if now - state.since_ms < retry_ms}
    known = combined(found.initialized, under_way)
    missing: dict[bytes, TopicState] = {}
    for name in names:
        topic_id = image.topic_id(name)
        if topic_id is not None:
            have = known[topic_id].partitions if topic_id in known else frozenset()
            count = image.partition_count(topic_id)
            if len(have) < count:
                missing[topic_id] = TopicState(name, frozenset(range(count)) - have, now)
    if not missing:
        if not under_way:
            group.initialized, group.initialized_as = (epoch, image.version), found
        return None
    records.append(initializing_record(shard, group.id, missing))
    seen = found.initialized.keys() | found.initializing.keys()
    return Unset(
        group.id, epoch, {topic: (state.partitions, 0 if topic in seen else -1) for topic, state in missing.items()}
    )


def begin_assignment(shard: ShardState, group: ShareGroup) -> Result:
    """The timer `assign` ended."""
    return target_assignment.begin(shard, group, work_for)


def loaded(shard: ShardState, group: ShareGroup) -> None:
    """The group was read from the log: sets the timers of its members."""
    for member in group.members.values():
        shard.await_session(group, member.id)


# members that leave


def session_ended(shard: ShardState, group: ShareGroup, member_id: str) -> Result:
    """The timer `session` ended."""
    member = group.members.get(member_id)
    if member is None:
        return Result()
    shard.tell(group, "session-ended", member_id, epoch=member.epoch)
    return remove(shard, group, member)


def remove(shard: ShardState, group: ShareGroup, member: ShareMember) -> Result:
    """Takes a member out of the group."""
    epoch = epochs.after(group.epoch)
    found = metadata_hash(group.topics_after(member, None), shard.env.image)
    records = [*member_tombstones(group.id, member.id), epoch_record(group.id, epoch, found)]
    if len(group.members) == 1:
        records.append(assignment_record(group.id, epoch, 0))
    shard.moved_at_ms[group.id] = shard.env.monotonic_ms()
    return Result(records)
