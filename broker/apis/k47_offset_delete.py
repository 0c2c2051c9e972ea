"""OffsetDelete, version 0: single offsets of a group go, of topics that it is not subscribed to (KIP-496)."""

from __future__ import annotations

from typing import Any

from ...coordinator.group import offsets
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context


async def handle(context: Context, request: Any) -> Any:
    r = messages.OffsetDeleteResponse
    image = context.broker.image
    if not request.group_id:
        return r(error_code=int(Errors.INVALID_GROUP_ID))
    asked, absent, known = request.topics, [], []
    for topic in asked:
        there = image.topics.get(topic.name)
        count = image.partition_counts.get(there.id, 0) if there is not None else 0
        gone = [p for p in topic.partitions if not 0 <= p.partition_index < count]
        topic.partitions = [p for p in topic.partitions if 0 <= p.partition_index < count]
        absent.append((topic.name, gone))
        if topic.partitions:
            known.append(topic)
    request.topics = known
    if asked and not known:
        found = r()
    else:
        try:
            found = await context.broker.groups.write(request.group_id, lambda shard: offsets.delete(shard, request))
        except ApiError as error:
            return r(error_code=error.code)
    answers = {t.name: t for t in found.topics}
    unknown = int(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    for name, gone in absent:
        if gone and name not in answers:
            found.topics.append(answers.setdefault(name, r.OffsetDeleteResponseTopic(name=name)))
        for p in gone:
            answers[name].partitions.append(r.OffsetDeleteResponsePartition(partition_index=p.partition_index, error_code=unknown))
    return found
