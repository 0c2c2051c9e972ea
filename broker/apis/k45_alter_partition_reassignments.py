"""AlterPartitionReassignments, versions 0 and 1: moves partitions to other replicas, or cancels that (KIP-455).

**Behaviour**
- The reply comes when the reassignments have begun. They end when all new replicas are in sync.
- null instead of replicas cancels: the partition keeps the replicas that it had.

**Versions**
- 1 whether the number of replicas may change (KIP-860)
"""

from __future__ import annotations

from ...coordinator.metadata import reassignments
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
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


async def handle(
    context: Context,
    request: messages.AlterPartitionReassignmentsRequest,
) -> messages.AlterPartitionReassignmentsResponse:
    r, metadata = messages.AlterPartitionReassignmentsResponse, context.broker.metadata
    if not request.topics:
        await metadata.answers()
        return r()  # Kafka says nothing of the request then
    response = r(allow_replication_factor_change=request.allow_replication_factor_change, error_message=None)
    try:
        check_time(request.timeout_ms)
    except ApiError as error:
        response.error_code = error.code
        altered: list[reassignments.Altered] = [
            (topic.name, [(one.partition_index, error) for one in topic.partitions]) for topic in request.topics
        ]
    else:
        may_change = request.allow_replication_factor_change
        altered = await metadata.forward(
            lambda: reassignments.alter(metadata.controller, request.topics, may_change), request.timeout_ms
        )
    for name, partitions in altered:
        out = r.ReassignableTopicResponse(name=name)
        for index, refused in partitions:
            answer = r.ReassignablePartitionResponse(partition_index=index, error_message=None)
            if refused is not None:
                refused.put_into(answer, with_default=False)
            out.partitions.append(answer)
        response.responses.append(out)
    return response
