"""ListPartitionReassignments, version 0: returns the reassignments that go on (KIP-455).

**Behaviour**
- Without topics the request means all. Partitions that do not exist, or are not reassigned, are left out of the reply.
"""

from __future__ import annotations

from ...coordinator.metadata.state import Partition
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ..error_places import CONTROLLER, ITSELF, Place, Text, array, codes
from ..net.context import Context
from ..security.authorization import Check
from ..steps import Pace

AUTHORIZATION = (Check(Operation.DESCRIBE, ResourceType.CLUSTER),)
ERRORS = (
    Place("the whole", CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED"), text=Text.OWN),
    Place(
        "each partition",
        (),
        (
            array("topics", "topics", topic="name"),
            array("partitions", "partition_indexes", partition=("partition_index", ITSELF)),
        ),
        code=None,
    ),
)


async def handle(
    context: Context,
    request: messages.ListPartitionReassignmentsRequest,
) -> messages.ListPartitionReassignmentsResponse:
    r, pace = messages.ListPartitionReassignmentsResponse, Pace(context.broker.turn)
    await context.broker.metadata.answers()
    image = context.broker.image
    response = r(error_message=None)
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, index in image.reassigned if request.topics is None else ():
        by_topic.setdefault(topic_id, []).append(index)
    asked = [(topic_id, sorted(indexes)) for topic_id, indexes in by_topic.items()]
    for topic in request.topics or ():
        known = image.topics.get(topic.name)
        if known is not None:
            asked.append((known.id, topic.partition_indexes))
    for topic_id, indexes in asked:
        out = r.OngoingTopicReassignment(name=image.topic_names.get(topic_id, ""))
        for index in indexes:
            found = image.partitions.get((topic_id, index))
            if found is not None and found.is_reassigned:
                out.partitions.append(_view(found))
            if pace.is_over():
                await pace.rest()
        if out.partitions:
            response.topics.append(out)
    return response


def _view(
    partition: Partition,
) -> messages.ListPartitionReassignmentsResponse.OngoingPartitionReassignment:
    return messages.ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
        partition_index=partition.index,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding),
        removing_replicas=list(partition.removing),
    )
