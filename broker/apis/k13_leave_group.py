"""LeaveGroup, versions 0 to 5: members leave a group.

3 several members, by instance id too (KIP-345); 4 flexible; 5 a reason (KIP-800).
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import joining
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context

SEVERAL_SINCE = 3


async def handle(context: Context, request: Any) -> Any:
    r = messages.LeaveGroupResponse
    if context.version < SEVERAL_SINCE:
        request.members = [messages.LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    if not request.group_id:
        return r(error_code=int(Errors.INVALID_GROUP_ID))
    try:
        response = await context.broker.groups.write(request.group_id, lambda shard: joining.leave(shard, request))
    except ApiError as error:
        if error.code != Errors.UNKNOWN_MEMBER_ID:
            return r(error_code=error.code)
        members = [r.MemberResponse(member_id=m.member_id, group_instance_id=m.group_instance_id, error_code=error.code) for m in request.members]
        response = r(members=members)
    if context.version < SEVERAL_SINCE and response.members:
        response = r(error_code=response.error_code or response.members[0].error_code)
    return response
