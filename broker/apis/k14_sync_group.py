"""SyncGroup, versions 0 to 5: a member gets its assignment; the leader sends the assignments of all members.

**Versions**
- 3 static members (KIP-345)
- 4 flexible
- 5 protocol type and name, which are required (KIP-559)
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
PROTOCOL_SINCE = 5
ERRORS = (
    Place(
        "the whole",
        COORDINATOR
        + codes(
            "ILLEGAL_GENERATION INCONSISTENT_GROUP_PROTOCOL INVALID_GROUP_ID UNKNOWN_MEMBER_ID "
            "REBALANCE_IN_PROGRESS GROUP_AUTHORIZATION_FAILED FENCED_INSTANCE_ID"
        ),
    ),
)


def handle(context: Context, request: messages.SyncGroupRequest) -> Later[messages.SyncGroupResponse]:
    if context.version >= PROTOCOL_SINCE and (request.protocol_type is None or request.protocol_name is None):
        raise ApiError(Errors.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        raise ApiError(Errors.INVALID_GROUP_ID)
    return context.broker.groups.exchange(
        request.group_id, "classic-group-sync", lambda shard, answer: routes.sync_group(shard, request, answer)
    )
