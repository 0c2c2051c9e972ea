"""LeaveGroup, whose members leave or fail one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...protocol import messages
from ...protocol.errors import ApiError

if TYPE_CHECKING:
    Identity = messages.LeaveGroupRequest.MemberIdentity


def leave_each(request: messages.LeaveGroupRequest, leave: Callable[[Identity], None]) -> messages.LeaveGroupResponse:
    """Calls `leave` for each member; an ApiError that it raises becomes the member's error code in the reply."""
    r = messages.LeaveGroupResponse
    response = r()
    for one in request.members:
        out = r.MemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id)
        try:
            leave(one)
        except ApiError as error:
            out.error_code = error.code
        response.members.append(out)
    return response
