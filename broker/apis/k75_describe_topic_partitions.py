"""DescribeTopicPartitions, version 0: topics and their partitions a page at a time (KIP-966)."""

from __future__ import annotations

from typing import Any

from ...coordinator.metadata import topics as topic_rules
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context
from ..partition_info import topic_operations


def handle(context: Context, request: Any) -> Any:
    r = messages.DescribeTopicPartitionsResponse
    image, broker = context.broker.image, context.broker
    limit = max(1, min(request.response_partition_limit, broker.config["max.request.partition.size.limit"]))
    names = sorted({t.name for t in request.topics}) if request.topics else sorted(image.topics)
    first_index = 0
    if request.cursor is not None:
        if request.cursor.partition_index < 0:
            refused = [r.DescribeTopicPartitionsResponseTopic(error_code=Errors.INVALID_REQUEST, name=t.name) for t in request.topics]
            return r(topics=refused)
        names = [n for n in names if n >= request.cursor.topic_name]
        first_index = request.cursor.partition_index if names and names[0] == request.cursor.topic_name else 0
    response = r()
    for name in names:
        if limit <= 0:
            response.next_cursor = r.Cursor(topic_name=name, partition_index=first_index)
            break
        topic = image.topics.get(name)
        if topic is None:
            absent = r.DescribeTopicPartitionsResponseTopic(error_code=_absent(name), name=name)
            absent.topic_authorized_operations = topic_operations()
            response.topics.append(absent)
            continue
        out = r.DescribeTopicPartitionsResponseTopic(name=name, topic_id=topic.id, is_internal=broker.is_internal(name))
        out.topic_authorized_operations = topic_operations()
        count = image.partition_counts[topic.id]
        for index in range(first_index, min(count, first_index + limit)):
            out.partitions.append(_partition(image.partitions[topic.id, index]))
        limit -= len(out.partitions)
        response.topics.append(out)
        if first_index + len(out.partitions) < count:
            response.next_cursor = r.Cursor(topic_name=name, partition_index=first_index + len(out.partitions))
            break
        first_index = 0
    return response


def _absent(name: str) -> int:
    try:
        topic_rules.check_name(name)
    except ApiError as error:
        return error.code
    return int(Errors.UNKNOWN_TOPIC_OR_PARTITION)


def _partition(state: Any) -> Any:
    return messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition(
        error_code=Errors.LEADER_NOT_AVAILABLE if state.leader < 0 else 0,
        partition_index=state.index,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.elr),
        last_known_elr=list(state.last_known_elr),
    )
