"""JoinGroup, versions 0 to 9: a member of the classic protocol joins a group, or joins it again.

**Versions**
- 0 the session timeout is also the rebalance timeout (until KIP-62)
- 4 a new member joins again with the id that it gets (KIP-394)
- 5 static members (KIP-345)
- 6 flexible
- 7 protocol type (KIP-559)
- 8 reason (KIP-800)
- 9 a leader that skips the assignment (KIP-814)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...coordinator.group import routes
from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.shard import Decided
from ...protocol import messages
from ...protocol.errors import Errors
from ..error_places import COORDINATOR, Place, codes
from ..later import Later, large_reply
from ..net.context import Context
from ..security.authorization import Check
from ._groups import client_of, note_full

if TYPE_CHECKING:
    from ...coordinator.group.classic.member import JoinAnswer
    from ...coordinator.group.environment import Client
    from ...coordinator.group.shard import GroupShard

AUTHORIZATION = (Check(Operation.READ, ResourceType.GROUP, "group_id"),)
REBALANCE_TIMEOUT_SINCE = 1
NULL_NAME_SINCE = 7
ERRORS = (
    Place(
        "the whole",
        COORDINATOR
        + codes(
            "INCONSISTENT_GROUP_PROTOCOL INVALID_GROUP_ID UNKNOWN_MEMBER_ID INVALID_SESSION_TIMEOUT "
            "REBALANCE_IN_PROGRESS GROUP_AUTHORIZATION_FAILED MEMBER_ID_REQUIRED GROUP_MAX_SIZE_REACHED "
            "FENCED_INSTANCE_ID"
        ),
        others=(("protocol_name", None),),
    ),
)


def handle(
    context: Context, request: messages.JoinGroupRequest
) -> messages.JoinGroupResponse | Later[messages.JoinGroupResponse]:
    groups = context.broker.groups
    config = groups.config
    if context.version < REBALANCE_TIMEOUT_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    if not request.group_id:
        return _reply(context, _error(Errors.INVALID_GROUP_ID, request.member_id))
    if (
        not config("group.min.session.timeout.ms")
        <= request.session_timeout_ms
        <= config("group.max.session.timeout.ms")
    ):
        return _reply(context, _error(Errors.INVALID_SESSION_TIMEOUT, request.member_id))
    return large_reply(_joined(context, request, client_of(context)))  # that of a leader lists the members


async def _joined(context: Context, request: messages.JoinGroupRequest, client: Client) -> messages.JoinGroupResponse:
    """Joins, after the description of the empty streams group is deleted whose place the group takes."""
    groups, group_id = context.broker.groups, request.group_id

    def join(shard: GroupShard, answer: JoinAnswer) -> Decided[None]:
        groups.room.check_member(shard, group_id, request.member_id)
        return routes.join_group(shard, client, request, answer)

    descriptions = groups.descriptions
    precedes = descriptions is not None and descriptions.precedes(groups, group_id)
    if descriptions is not None and precedes and not await descriptions.delete_before(groups, group_id):
        return _reply(context, _error(Errors.REBALANCE_IN_PROGRESS, request.member_id))
    joined = groups.exchange(group_id, "classic-group-join", join)
    if descriptions is not None and precedes:
        descriptions.note_deleted(groups, group_id)
    response = await joined
    note_full(context, group_id, response.error_code)
    return _reply(context, response)


def _error(code: int, member_id: str) -> messages.JoinGroupResponse:
    return messages.JoinGroupResponse(error_code=int(code), member_id=member_id, protocol_type=None, protocol_name=None)


def _reply(context: Context, response: messages.JoinGroupResponse) -> messages.JoinGroupResponse:
    if context.version < NULL_NAME_SINCE and response.protocol_name is None:
        response.protocol_name = ""
    return response
