"""ConsumerGroupHeartbeat: one member, one step (KIP-848).

1. The member is added or changed; the group's epoch is raised if that requires another assignment.
2. The target assignment is computed again if its epoch is lower than the group's epoch.
3. The member advances towards its target.

Members that leave are in `bridge.removal`, since the group may become a classic one without them.
"""

from __future__ import annotations

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...format import CoordinatorRecord
from ...hashing import java_order
from ...shard import Result
from ..environment import Client
from ..ids import kafka_uuid
from ..modern import LEAVE_EPOCH, STABLE, replaced
from ..modern_pace import heartbeat_interval_ms
from ..state import ShardState
from .assignment import assign
from .group import ConsumerGroup
from .member import LEAVE_STATIC_EPOCH, Member
from .membership import check_epoch, check_room, find_member, find_static
from .reconciliation import reconcile
from .subscription import subscribe

MEMBER_ID_REQUIRED_SINCE = 1


def check_request(request: messages.ConsumerGroupHeartbeatRequest, version: int, assignors: list[str]) -> None:
    """Raises ApiError(INVALID_REQUEST or UNSUPPORTED_ASSIGNOR) for a heartbeat that is wrong for every group."""

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
        refuse_if(
            request.topic_partitions is None or bool(request.topic_partitions),
            "TopicPartitions must be empty when (re-)joining.",
        )
        nothing = request.subscribed_topic_names is None and request.subscribed_topic_regex is None
        refuse_if(nothing, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch == LEAVE_STATIC_EPOCH:
        refuse_if(request.instance_id is None, "InstanceId can't be null.")
    else:
        refuse_if(epoch < LEAVE_STATIC_EPOCH, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        text = (
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
            f"{', '.join(java_order(assignors))}."
        )
        raise ApiError(Errors.UNSUPPORTED_ASSIGNOR, text)


def join_new_group(
    shard: ShardState, group: None, client: Client, request: messages.ConsumerGroupHeartbeatRequest
) -> Result[messages.ConsumerGroupHeartbeatResponse]:
    """The first member of a group joins. Raises ApiError."""
    if request.member_epoch != 0:
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
    return heartbeat(shard, ConsumerGroup(request.group_id, shard.timeline), client, request)


def leave_no_group(
    shard: ShardState, group: None, client: Client, request: messages.ConsumerGroupHeartbeatRequest
) -> Result[messages.ConsumerGroupHeartbeatResponse]:
    """A member leaves a group that does not exist. Raises ApiError(GROUP_ID_NOT_FOUND)."""
    raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")


def heartbeat(
    shard: ShardState, group: ConsumerGroup, client: Client, request: messages.ConsumerGroupHeartbeatRequest
) -> Result[messages.ConsumerGroupHeartbeatResponse]:
    """A member joins or stays. Raises ApiError."""
    return heartbeat_after(shard, group, client, request, [])


def heartbeat_after(
    shard: ShardState,
    group: ConsumerGroup,
    client: Client,
    request: messages.ConsumerGroupHeartbeatRequest,
    records: list[CoordinatorRecord],
) -> Result[messages.ConsumerGroupHeartbeatResponse]:
    """Like `heartbeat`, for a group that `records` create. They come first in the result."""
    joins = request.member_epoch == 0
    check_room(shard, group, request.member_id, request.instance_id)
    member_id = request.member_id or kafka_uuid(shard.env.new_id())
    owned = None
    if request.topic_partitions is not None:
        owned = {(t.topic_id, p) for t in request.topic_partitions for p in t.partitions}
    if request.instance_id is None:
        member = find_member(group, member_id, joins)
        check_epoch(member, request.member_epoch, owned)
    else:
        member = find_static(group, member_id, request.instance_id, joins, records, classic=False)
        if not joins:
            check_epoch(member, request.member_epoch, owned)
    changed = _updated(member, client, request)
    subscribed = subscribe(shard, client, group, member, changed, records)
    target_epoch, target = assign(shard, group, subscribed, member, changed, records)
    after = reconcile(shard, group, changed, target_epoch, target, subscribed.has_changed, owned, records)
    shard.await_session(group, member_id)
    return Result(records, _reply(shard, group, request, member, after))


def _updated(member: Member, client: Client, request: messages.ConsumerGroupHeartbeatRequest) -> Member:
    """Returns the member with what the request says about it; the same object if that is nothing new."""
    changes: dict[str, object] = {"client_id": client.id, "client_host": client.host, "classic": None}
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
    return replaced(member, changes)


def _reply(
    shard: ShardState,
    group: ConsumerGroup,
    request: messages.ConsumerGroupHeartbeatRequest,
    before: Member,
    after: Member,
) -> messages.ConsumerGroupHeartbeatResponse:
    r = messages.ConsumerGroupHeartbeatResponse
    is_settled = after.state == STABLE and after.epoch >= group.assignment_epoch
    response = r(
        member_id=after.id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(shard, group, is_settled),
    )
    names_topics = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    is_full = request.rebalance_timeout_ms != -1 and names_topics and request.topic_partitions is not None
    if request.member_epoch == 0 or is_full or (before is not after and before.assigned != after.assigned):
        parts = [r.TopicPartitions(topic_id=topic, partitions=sorted(of)) for topic, of in after.assigned.items()]
        response.assignment = r.Assignment(topic_partitions=parts)
    return response
