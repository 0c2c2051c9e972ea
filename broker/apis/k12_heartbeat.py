"""Heartbeat, versions 0 to 4: keeps a member of the classic protocol alive,
and reports whether a rebalance is in progress.

**Behaviour**
- While the coordinator loads, heartbeats succeed, as in Kafka.

**Versions**
- 3 static members (KIP-345)
- 4 flexible
"""

from __future__ import annotations

from ...coordinator.group import routes
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, Place, codes
from ..later import Later
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.READ, ResourceType.GROUP, "group_id"),)
ERRORS = (
    Place(
        "the whole",
        COORDINATOR
        + codes(
            "ILLEGAL_GENERATION INVALID_GROUP_ID UNKNOWN_MEMBER_ID REBALANCE_IN_PROGRESS "
            "GROUP_AUTHORIZATION_FAILED FENCED_INSTANCE_ID"
        ),
    ),
)


def handle(context: Context, request: messages.HeartbeatRequest) -> Later[messages.HeartbeatResponse]:
    if not request.group_id:
        raise ApiError(Errors.INVALID_GROUP_ID)
    return context.broker.groups.write(
        request.group_id, "classic-group-heartbeat", lambda shard: routes.heartbeat(shard, request)
    )


def failed(context: Context, request: messages.HeartbeatRequest, error: ApiError) -> messages.HeartbeatResponse:
    return messages.HeartbeatResponse(error_code=0 if error.code == Errors.COORDINATOR_LOAD_IN_PROGRESS else error.code)
