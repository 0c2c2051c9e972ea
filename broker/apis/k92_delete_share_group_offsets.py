"""DeleteShareGroupOffsets, version 0: an empty share group forgets topics (KIP-932)."""

from __future__ import annotations

from typing import Any

from ...coordinator.group import share_offsets
from ...protocol import messages
from ...protocol.errors import ApiError
from ..context import Context
from ..share_groups import delete_states
from ..share_requests import check_group


async def handle(context: Context, request: Any) -> Any:
    broker = context.broker
    r = messages.DeleteShareGroupOffsetsResponse
    try:
        check_group(context, request.group_id)
        refused, wanted = await broker.groups.write(request.group_id, lambda shard: share_offsets.begin_delete(shard, request))
        errors = await delete_states(broker, request.group_id, wanted)
        names = {topic: broker.groups.image.topic_name(topic) or "" for topic in wanted}
        failed = {topic: error for (topic, _), error in errors.items()}
        done = {topic: name for topic, name in names.items() if topic not in failed}
        results = []
        if done:
            results = await broker.groups.write(request.group_id, lambda shard: share_offsets.complete_delete(shard, request.group_id, done))
    except ApiError as error:
        return r(error_code=error.code, error_message=error.text)
    for topic, why in failed.items():
        out = r.DeleteShareGroupOffsetsResponseTopic(topic_name=names[topic], topic_id=topic, error_code=why.code, error_message=why.text)
        refused.append(out)
    return r(responses=results + refused)
