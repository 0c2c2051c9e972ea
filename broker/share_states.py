"""What the five APIs of the share coordinator have in common: many share-partitions of one group, each answered for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..coordinator.share.state import PartitionKey
from ..protocol.errors import ApiError
from .later import Later


async def answer(
    request: Any,
    call: Callable[[PartitionKey, Any], Later[Any]],
    topic_result: Any,
    partition_result: Callable[[int, Any], Any],
    what: str,
) -> list[Any]:
    """The results of a request. A request without a group, topics or partitions has none, as in Kafka.

    `call` is made for each share-partition with its part of the request; `partition_result` makes the reply's part of what it gave.
    """
    if not request.group_id or not request.topics or any(not topic.partitions for topic in request.topics):
        return []
    waiting = [
        (bytes(topic.topic_id), part.partition, call(PartitionKey(request.group_id, bytes(topic.topic_id), part.partition), part))
        for topic in request.topics
        for part in topic.partitions
    ]
    results: dict[bytes, Any] = {}
    for topic_id, index, later in waiting:
        out = results.setdefault(topic_id, topic_result(topic_id=topic_id))
        try:
            out.partitions.append(partition_result(index, await later))
        except ApiError as error:
            failed = partition_result(index, None)
            failed.error_code, failed.error_message = error.code, error.text
            out.partitions.append(failed)
    return list(results.values())
