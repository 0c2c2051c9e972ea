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
    partition_result: Any,
    fill: Callable[[Any, Any], None] = lambda out, given: None,
) -> list[Any]:
    """The results of a request. A request without a group, topics or partitions has none, as in Kafka.

    `call` is made for each share-partition with its part of the request; `fill` puts what it gave into the reply's part.
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
        out = partition_result(partition=index)
        try:
            fill(out, await later)
        except ApiError as error:
            out.error_code, out.error_message = error.code, error.text
        results.setdefault(topic_id, topic_result(topic_id=topic_id)).partitions.append(out)
    return list(results.values())
