"""AlterPartitionReassignments, versions 0 and 1: refuses replicas other than this only node (KIP-455).

**Behaviour**
- A reassignment to the present replicas succeeds.

**Versions**
- 1 whether the number of replicas may change (KIP-860)
"""

from __future__ import annotations

from ...coordinator.metadata.topics import check_assignment
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..controller.controller import check_time
from ..error_places import CONTROLLER, Place, Text, array, codes
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.ALTER, ResourceType.CLUSTER),)
ERRORS = (
    Place("the whole", CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST"), text=Text.OWN),
    Place(
        "each partition",
        CONTROLLER
        + codes(
            "UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION CLUSTER_AUTHORIZATION_FAILED "
            "INVALID_REPLICATION_FACTOR INVALID_REPLICA_ASSIGNMENT NO_REASSIGNMENT_IN_PROGRESS"
        ),
        (
            array("responses", "topics", topic="name"),
            array("partitions", "partitions", partition="partition_index"),
        ),
        text=Text.OWN,
    ),
)


def handle(
    context: Context,
    request: messages.AlterPartitionReassignmentsRequest,
) -> messages.AlterPartitionReassignmentsResponse:
    r = messages.AlterPartitionReassignmentsResponse
    response = r(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None if request.topics else "",
    )
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
                error.put_into(answer, with_default=False)
            out.partitions.append(answer)
        response.responses.append(out)
    return response


def _check(
    context: Context,
    name: str,
    wanted: messages.AlterPartitionReassignmentsRequest.ReassignablePartition,
) -> None:
    """Raises ApiError; also if a cancellation finds no reassignment."""
    broker = context.broker
    topic = broker.topic(name)
    if topic is None:
        raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= wanted.partition_index < broker.image.partition_counts[topic.id]:
        raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{wanted.partition_index}.")
    if wanted.replicas is None:
        raise ApiError(Errors.NO_REASSIGNMENT_IN_PROGRESS)
    check_assignment(broker.metadata.controller, wanted.replicas, None)
