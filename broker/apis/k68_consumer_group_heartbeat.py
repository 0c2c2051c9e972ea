"""ConsumerGroupHeartbeat, versions 0 and 1: a member of a consumer group joins, stays or leaves (KIP-848).

**Behaviour**
- Client-side assignors, which KIP-848 describes, exist neither in Kafka nor here.

**Versions**
- 1 member ids made by the client (KIP-1082), regular expressions
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ...coordinator.group import routes
from ...coordinator.group.consumer.heartbeat import check_request
from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.shard import Result
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, Place, codes
from ..group.room import NoRoom
from ..later import Later
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ._groups import (
    MATCHES,
    WITHOUT_WORDS,
    client_of,
    may_describe_all,
    note_full,
    supports_consumer_groups,
    try_expression,
)

if TYPE_CHECKING:
    from ...coordinator.group.shard import GroupShard

GROUPS = Check(Operation.READ, ResourceType.GROUP, "group_id", Refusal.IN_HANDLER)
TOPICS = Check(Operation.DESCRIBE, ResourceType.TOPIC, "subscribed_topic_names", Refusal.IN_HANDLER)
AUTHORIZATION = (GROUPS, TOPICS, MATCHES)
ERRORS = (
    Place(
        "the whole",
        COORDINATOR
        + codes(
            "INVALID_GROUP_ID UNKNOWN_MEMBER_ID TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED "
            "UNSUPPORTED_VERSION INVALID_REQUEST GROUP_ID_NOT_FOUND GROUP_MAX_SIZE_REACHED FENCED_INSTANCE_ID "
            "FENCED_MEMBER_EPOCH UNRELEASED_INSTANCE_ID UNSUPPORTED_ASSIGNOR INVALID_REGULAR_EXPRESSION"
        ),
    ),
)


def handle(
    context: Context,
    request: messages.ConsumerGroupHeartbeatRequest,
) -> messages.ConsumerGroupHeartbeatResponse | Awaitable[messages.ConsumerGroupHeartbeatResponse]:
    if not supports_consumer_groups(context):
        return messages.ConsumerGroupHeartbeatResponse(error_code=int(Errors.UNSUPPORTED_VERSION))
    if not GROUPS.allows(context, request.group_id):
        return messages.ConsumerGroupHeartbeatResponse(error_code=GROUPS.code, error_message=None)
    if not may_describe_all(context, TOPICS, request.subscribed_topic_names or ()):
        return messages.ConsumerGroupHeartbeatResponse(error_code=TOPICS.code, error_message=None)
    check_request(request, context.version, context.broker.groups.assignors.names)
    return _heartbeat_after_trial(context, request) if request.subscribed_topic_regex else _heartbeat(context, request)


async def _heartbeat_after_trial(
    context: Context, request: messages.ConsumerGroupHeartbeatRequest
) -> messages.ConsumerGroupHeartbeatResponse:
    assert request.subscribed_topic_regex is not None
    await try_expression(context.broker.turn, request.subscribed_topic_regex)
    return await _heartbeat(context, request)


def _heartbeat(
    context: Context, request: messages.ConsumerGroupHeartbeatRequest
) -> Later[messages.ConsumerGroupHeartbeatResponse]:
    client = client_of(context)
    groups = context.broker.groups

    def beat(shard: GroupShard) -> Result[messages.ConsumerGroupHeartbeatResponse]:
        if request.member_epoch == 0:
            groups.room.check_member(shard, request.group_id, request.member_id)
        return routes.consumer_group_heartbeat(shard, client, request)

    return groups.write(request.group_id, "consumer-group-heartbeat", beat)


def failed(
    context: Context, request: messages.ConsumerGroupHeartbeatRequest, error: ApiError
) -> messages.ConsumerGroupHeartbeatResponse:
    context.broker.limits.note(error, context.client_address)
    if not isinstance(error, NoRoom):
        note_full(context, request.group_id, error.code)
    return error.put_into(messages.ConsumerGroupHeartbeatResponse(), with_default=error.code not in WITHOUT_WORDS)
