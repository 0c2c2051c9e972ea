"""JoinGroup, versions 0 to 9: a member of the classic protocol joins a group, or joins it again.

0 the session time-out is the rebalance time-out too; 4 a new member must come back with the id it is given (KIP-394); 5 static members
(KIP-345); 6 flexible; 7 the protocol's type; 8 a reason (KIP-800); 9 a leader that may not assign (KIP-814).
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import joining
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context
from ..grouping import client_of

REBALANCE_TIMEOUT_SINCE = 1
NULL_NAME_SINCE = 7


async def handle(context: Context, request: Any) -> Any:
    config = context.broker.groups.config
    if context.version < REBALANCE_TIMEOUT_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    if not request.group_id:
        return _reply(context, _error(Errors.INVALID_GROUP_ID, request.member_id))
    if not config("group.min.session.timeout.ms") <= request.session_timeout_ms <= config("group.max.session.timeout.ms"):
        return _reply(context, _error(Errors.INVALID_SESSION_TIMEOUT, request.member_id))
    client = client_of(context)
    try:
        response = await context.broker.groups.exchange(request.group_id, lambda shard, answer: joining.join(shard, client, request, answer))
    except ApiError as error:
        response = _error(error.code, "")
    return _reply(context, response)


def _error(code: int, member_id: str) -> Any:
    return messages.JoinGroupResponse(error_code=int(code), member_id=member_id, protocol_type=None, protocol_name=None)


def _reply(context: Context, response: Any) -> Any:
    if context.version < NULL_NAME_SINCE and response.protocol_name is None:
        response.protocol_name = ""
    return response
