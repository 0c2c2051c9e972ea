"""ElectLeaders, versions 0 to 2: elects the preferred leaders, or any replica that is alive (KIP-183, KIP-460).

**Behaviour**
- Without topics the request means all partitions; those that need no election are left out of the reply.

**Versions**
- 1 unclean elections (KIP-460)
- 2 flexible
"""

from __future__ import annotations

from itertools import islice

from ...coordinator.metadata import brokers
from ...coordinator.metadata.elections import Kind
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..controller.controller import check_time
from ..error_places import CONTROLLER, ITSELF, Place, Text, array, codes
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.ALTER, ResourceType.CLUSTER),)


KINDS = {0: Kind.PREFERRED, 1: Kind.UNCLEAN}
ERROR_SINCE = 1  # top-level error
ERRORS = (
    Place(
        "each partition",
        CONTROLLER
        + codes(
            "UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST "
            "PREFERRED_LEADER_NOT_AVAILABLE ELIGIBLE_LEADERS_NOT_AVAILABLE ELECTION_NOT_NEEDED"
        ),
        (
            array("replica_election_results", "topic_partitions", topic="topic"),
            array("partition_result", "partitions", partition=("partition_id", ITSELF)),
        ),
        text=Text.OWN,
    ),
    Place("the whole", CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST"), since=ERROR_SINCE),
)


async def handle(context: Context, request: messages.ElectLeadersRequest) -> messages.ElectLeadersResponse:
    r = messages.ElectLeadersResponse
    if request.topic_partitions == []:
        return r()
    check_time(request.timeout_ms)
    if request.election_type not in KINDS:
        raise ApiError(Errors.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    wanted = None
    if request.topic_partitions is not None:
        wanted = [(topic.topic, index) for topic in request.topic_partitions for index in topic.partitions]
    metadata, kind = context.broker.metadata, KINDS[request.election_type]
    found = await metadata.forward(lambda: brokers.elect(metadata.controller, kind, wanted), request.timeout_ms)
    if request.topic_partitions is None:
        topics = {name: r.ReplicaElectionResult(topic=name) for name in context.broker.image.topics}
        for name, index, error in found:
            if name not in topics:  # it was created meanwhile, or is not there any more
                topics[name] = r.ReplicaElectionResult(topic=name)
            topics[name].partition_result.append(_result(index, error))
        return r(replica_election_results=list(topics.values()))
    rest = iter(found)  # one for each that is named; a topic that is named twice has two results
    results = [
        r.ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[_result(index, error) for _, index, error in islice(rest, len(topic.partitions))],
        )
        for topic in request.topic_partitions
    ]
    return r(replica_election_results=results)


def _result(index: int, error: ApiError | None) -> messages.ElectLeadersResponse.PartitionResult:
    result = messages.ElectLeadersResponse.PartitionResult(partition_id=index, error_message=None)
    return result if error is None else error.put_into(result)
