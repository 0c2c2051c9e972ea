"""LeaveGroup, whose members leave or fail one by one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from ...protocol import messages
from ...protocol.errors import ApiError

if TYPE_CHECKING:
    Identity = messages.LeaveGroupRequest.MemberIdentity


STEP_LEAVING = 256  # members that leave in one step


def leave_each(
    request: messages.LeaveGroupRequest, leave: Callable[[Identity], None]
) -> Generator[None, None, messages.LeaveGroupResponse]:
    """Calls `leave` for each member; an ApiError that it raises becomes the member's error code in the reply. Yields
    between steps.
    """
    r = messages.LeaveGroupResponse
    response = r()
    for number, one in enumerate(request.members):
        if number and number % STEP_LEAVING == 0:
            yield
        out = r.MemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id)
        try:
            leave(one)
        except ApiError as error:
            out.error_code = error.code
        response.members.append(out)
    return response
