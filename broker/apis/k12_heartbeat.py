"""Heartbeat, versions 0 to 4: a member of the classic protocol is there, and asks whether a rebalance is under way.

3 static members; 4 flexible. While its coordinator loads a member is told that all is well, as in Kafka.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import joining
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context


async def handle(context: Context, request: Any) -> Any:
    if not request.group_id:
        return messages.HeartbeatResponse(error_code=int(Errors.INVALID_GROUP_ID))
    try:
        return await context.broker.groups.write(request.group_id, lambda shard: joining.heartbeat(shard, request))
    except ApiError as error:
        loading = error.code == Errors.COORDINATOR_LOAD_IN_PROGRESS
        return messages.HeartbeatResponse(error_code=0 if loading else error.code)
