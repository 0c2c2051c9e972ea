"""LeaveGroup, versions 0 to 5: members leave a group.

**Versions**
- 3 several members, also by instance id (KIP-345)
- 4 flexible
- 5 reason (KIP-800)
"""

from __future__ import annotations

from ...coordinator.group import routes
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, Place, array, codes
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.READ, ResourceType.GROUP, "group_id"),)
SEVERAL_SINCE = 3
ERRORS = (
    Place(
        "the whole",
        COORDINATOR + codes("INVALID_GROUP_ID UNKNOWN_MEMBER_ID GROUP_AUTHORIZATION_FAILED FENCED_INSTANCE_ID"),
    ),
    Place(
        "each member",
        codes("UNKNOWN_MEMBER_ID FENCED_INSTANCE_ID"),
        (array("members", "members", member="member_id", instance="group_instance_id"),),
        since=SEVERAL_SINCE,
        of_whole=False,
    ),
)


async def handle(context: Context, request: messages.LeaveGroupRequest) -> messages.LeaveGroupResponse:
    r = messages.LeaveGroupResponse
    if context.version < SEVERAL_SINCE:
        request.members = [messages.LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    if not request.group_id:
        return r(error_code=int(Errors.INVALID_GROUP_ID))
    try:
        response = await context.broker.groups.write(
            request.group_id, "classic-group-leave", lambda shard: routes.leave_group(shard, request)
        )
    except ApiError as error:
        if error.code != Errors.UNKNOWN_MEMBER_ID:
            return r(error_code=error.code)
        members = [
            r.MemberResponse(member_id=m.member_id, group_instance_id=m.group_instance_id, error_code=error.code)
            for m in request.members
        ]
        response = r(members=members)
    if context.version < SEVERAL_SINCE and response.members:
        response = r(error_code=response.error_code or response.members[0].error_code)
    return response
