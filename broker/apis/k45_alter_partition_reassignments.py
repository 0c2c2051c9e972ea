"""AlterPartitionReassignments, versions 0 to 1: a partition's replicas are this node, and cannot become others (KIP-455).

1 whether the number of replicas may change (KIP-860). Asked for the replicas that it has, a partition has them.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.metadata.topics import check_assignment
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context
from ..metadata import check_time


def handle(context: Context, request: Any) -> Any:
    r = messages.AlterPartitionReassignmentsResponse
    response = r(allow_replication_factor_change=request.allow_replication_factor_change, error_message=None if request.topics else "")
    if request.timeout_ms <= 0 and request.topics:
        response.error_code = int(Errors.REQUEST_TIMED_OUT)
    for topic in request.topics:
        out = r.ReassignableTopicResponse(name=topic.name)
        for wanted in topic.partitions:
            answer = r.ReassignablePartitionResponse(partition_index=wanted.partition_index, error_message=None)
            try:
                check_time(request.timeout_ms)
                _check(context, topic.name, wanted)
            except ApiError as error:
                answer.error_code, answer.error_message = error.code, error.message
            out.partitions.append(answer)
        response.responses.append(out)
    return response


def _check(context: Context, name: str, wanted: Any) -> None:
    """ApiError, also where there is no reassignment that could be cancelled."""
    broker = context.broker
    topic = broker.topic(name)
    if topic is None:
        raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= wanted.partition_index < broker.image.partition_counts[topic.id]:
        raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{wanted.partition_index}.")
    if wanted.replicas is None:
        raise ApiError(Errors.NO_REASSIGNMENT_IN_PROGRESS)
    check_assignment(broker.metadata.controller, wanted.replicas, None)
