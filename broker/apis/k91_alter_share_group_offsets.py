"""AlterShareGroupOffsets, version 0: an empty share group is to go on elsewhere (KIP-932).

The state epoch goes up with it: a leader that still holds the old state is fenced when it writes, and reads the new one.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import share_offsets
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context
from ..share_groups import each, keys_of, note_initialized
from ..share_requests import check_group


async def handle(context: Context, request: Any) -> Any:
    broker = context.broker
    r = messages.AlterShareGroupOffsetsResponse
    try:
        check_group(context, request.group_id)
        unknown = [_unknown(topic) for topic in request.topics if broker.topic(topic.topic_name) is None]
        request.topics = [topic for topic in request.topics if broker.topic(topic.topic_name) is not None]
        response, epoch, offsets = await broker.groups.write(request.group_id, lambda shard: share_offsets.alter(shard, request))
    except ApiError as error:
        return r(error_code=error.code, error_message=error.text)
    keys = keys_of(request.group_id, offsets)
    _, errors = await each(keys, lambda key: broker.sharing.persister.initialize(key, epoch, offsets[key.topic_id][key.partition]))
    if not errors and offsets:
        partitions = {topic: frozenset(of) for topic, of in offsets.items()}
        try:
            await note_initialized(broker, request.group_id, partitions, errors)
        except ApiError as error:
            return r(error_code=error.code, error_message=error.text)
    for topic in response.responses:
        for partition in topic.partitions:
            failed = errors.get((bytes(topic.topic_id), partition.partition_index))
            if failed is not None:
                partition.error_code, partition.error_message = failed.code, failed.text
    response.responses = unknown + response.responses
    return response


def _unknown(topic: Any) -> Any:
    r = messages.AlterShareGroupOffsetsResponse
    error = ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    parts = [
        r.AlterShareGroupOffsetsResponsePartition(partition_index=p.partition_index, error_code=error.code, error_message=error.text)
        for p in topic.partitions
    ]
    return r.AlterShareGroupOffsetsResponseTopic(topic_name=topic.topic_name, partitions=parts)
