"""SyncGroup, versions 0 to 5: a member asks for its assignment, and the leader brings everyone's.

3 static members; 4 flexible; 5 the protocol's type and name, which must be given (KIP-559).
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import joining
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context
from ..grouping import client_of

PROTOCOL_SINCE = 5


async def handle(context: Context, request: Any) -> Any:
    if context.version >= PROTOCOL_SINCE and (request.protocol_type is None or request.protocol_name is None):
        return _error(Errors.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        return _error(Errors.INVALID_GROUP_ID)
    client = client_of(context)
    try:
        return await context.broker.groups.exchange(request.group_id, lambda shard, answer: joining.sync(shard, client, request, answer))
    except ApiError as error:
        return _error(error.code)


def _error(code: int) -> Any:
    return messages.SyncGroupResponse(error_code=int(code), protocol_type=None, protocol_name=None, assignment=b"")
