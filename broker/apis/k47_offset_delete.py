"""OffsetDelete, version 0: single offsets of a group go, of topics that it is not subscribed to (KIP-496)."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context


async def handle(context: Context, request: Any) -> Any:
    from ...coordinator.group import offsets

    r = messages.OffsetDeleteResponse
    image = context.broker.image
    if not request.group_id:
        return r(error_code=int(Errors.INVALID_GROUP_ID))
    asked = request.topics
    request.topics = [t for t in asked if t.name in image.topics]
    try:
        found = await context.broker.groups.write(request.group_id, lambda shard: offsets.delete(shard, request))
    except ApiError as error:
        return r(error_code=error.code)
    for topic in asked:
        if topic.name not in image.topics:
            unknown = int(Errors.UNKNOWN_TOPIC_OR_PARTITION)
            parts = [r.OffsetDeleteResponsePartition(partition_index=p.partition_index, error_code=unknown) for p in topic.partitions]
            found.topics.append(r.OffsetDeleteResponseTopic(name=topic.name, partitions=parts))
    return found
