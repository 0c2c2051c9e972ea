"""ElectLeaders, versions 0 to 2: returns ELECTION_NOT_NEEDED or an error, because every partition has one replica.

**Behaviour**
- Without topics the request means all partitions; those that need no election are left out of the reply.

**Versions**
- 1 unclean elections (KIP-460)
- 2 flexible
"""

from __future__ import annotations

from collections.abc import Iterable

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors, default_message
from ..controller.controller import check_time
from ..error_places import CONTROLLER, ITSELF, Place, Text, array, codes
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.ALTER, ResourceType.CLUSTER),)


PREFERRED, UNCLEAN = 0, 1
ERROR_SINCE = 1  # top-level error
NOBODY = {PREFERRED: Errors.PREFERRED_LEADER_NOT_AVAILABLE, UNCLEAN: Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE}
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


def handle(context: Context, request: messages.ElectLeadersRequest) -> messages.ElectLeadersResponse:
    r = messages.ElectLeadersResponse
    if request.topic_partitions == []:
        return r()
    check_time(request.timeout_ms)
    if request.election_type not in NOBODY:
        raise ApiError(Errors.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    if request.topic_partitions is not None:
        asked = [(topic.topic, topic.partitions) for topic in request.topic_partitions]
        return r(
            replica_election_results=[
                _elect(context, name, partitions, request.election_type) for name, partitions in asked
            ]
        )
    image = context.broker.image
    every = [
        _elect(context, name, range(image.partition_counts[topic.id]), request.election_type)
        for name, topic in image.topics.items()
    ]
    for topic in every:
        topic.partition_result = [one for one in topic.partition_result if one.error_code != Errors.ELECTION_NOT_NEEDED]
    return r(replica_election_results=every)


def _elect(
    context: Context,
    name: str,
    indexes: Iterable[int],
    kind: int,
) -> messages.ElectLeadersResponse.ReplicaElectionResult:
    r, results = messages.ElectLeadersResponse, []
    for index in indexes:
        partition = context.broker.partitions.by_name.get((name, index))
        if partition is None:
            code = Errors.UNKNOWN_TOPIC_OR_PARTITION
            text: str | None = (
                f"No such partition as {name}-{index}"
                if name in context.broker.image.topics
                else f"No such topic as {name}"
            )
        else:
            code = NOBODY[kind] if partition.offline else Errors.ELECTION_NOT_NEEDED
            text = default_message(code)
        results.append(r.PartitionResult(partition_id=index, error_code=int(code), error_message=text))
    return r.ReplicaElectionResult(topic=name, partition_result=results)
