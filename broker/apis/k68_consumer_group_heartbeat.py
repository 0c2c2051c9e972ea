"""ConsumerGroupHeartbeat, versions 0 and 1: a member of a consumer group joins, is there, or leaves (KIP-848).

1 members make their own ids; regular expressions. The client-side assignors of the KIP never came into Kafka, and are not here either.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import heartbeat
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context
from ..grouping import client_of, supports_consumer_groups


async def handle(context: Context, request: Any) -> Any:
    groups = context.broker.groups
    client = client_of(context)
    try:
        if not supports_consumer_groups(context):
            raise ApiError(Errors.UNSUPPORTED_VERSION)
        heartbeat.check_request(request, context.version, groups.assignors.names)
        return await groups.write(request.group_id, lambda shard: heartbeat.heartbeat(shard, client, request))
    except ApiError as error:
        return messages.ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.text)
