"""ShareGroupHeartbeat, version 1: a member of a share group joins, is there, or leaves (KIP-932).

A heartbeat that finds share-partitions without a state has the share coordinator make them, behind the reply: they are assigned afterwards.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import share_heartbeat
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context
from ..grouping import client_of
from ..share_groups import initialize
from ..share_requests import MEMBER_ID_CHARS_MAX


async def handle(context: Context, request: Any) -> Any:
    client, broker = client_of(context), context.broker
    if broker.sharing.version < 1:
        return messages.ShareGroupHeartbeatResponse(error_code=int(Errors.UNSUPPORTED_VERSION))
    if not request.member_id or len(request.member_id) > MEMBER_ID_CHARS_MAX:
        return messages.ShareGroupHeartbeatResponse(error_code=int(Errors.INVALID_REQUEST))
    try:
        share_heartbeat.check_request(request)
        response, unset = await broker.groups.write(request.group_id, lambda shard: share_heartbeat.heartbeat(shard, client, request))
    except ApiError as error:
        return messages.ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.text)
    if unset is not None:
        broker.background(initialize(broker, unset))
    return response
