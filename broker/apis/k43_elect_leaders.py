"""ElectLeaders, versions 0 to 2: elects the preferred leaders, or any replica that is alive (KIP-183, KIP-460).

**Behaviour**
- Without topics the request means all partitions; those that need no election are left out of the reply.

**Versions**
- 1 unclean elections (KIP-460)
- 2 flexible
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from ...coordinator.metadata import brokers
from ...coordinator.metadata.brokers import Elected
from ...coordinator.metadata.controller import limited
from ...coordinator.metadata.elections import Kind
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..controller.controller import check_time
from ..error_places import CONTROLLER, ITSELF, Place, Text, array, codes
from ..net.answers import answer_each
from ..net.context import Context
from ..security.authorization import Check
from ..steps import STEP_ELEMENTS

AUTHORIZATION = (Check(Operation.ALTER, ResourceType.CLUSTER),)


KINDS = {0: Kind.PREFERRED, 1: Kind.UNCLEAN}
ERROR_SINCE = 1  # top-level error
RESULTS = "replica_election_results"
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
        await context.broker.metadata.answers()
        return r()
    check_time(request.timeout_ms)
    if request.election_type not in KINDS:
        raise ApiError(Errors.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    wanted = None
    if request.topic_partitions is not None:
        wanted = [(topic.topic, index) for topic in request.topic_partitions for index in topic.partitions]
    metadata, turn, kind = context.broker.metadata, context.broker.turn, KINDS[request.election_type]
    found = await metadata.forward(
        lambda: limited(brokers.elect(metadata.controller, kind, wanted)), request.timeout_ms
    )
    if len(found) > STEP_ELEMENTS:
        await turn.next()
    if request.topic_partitions is None:
        topics: dict[str, list[Elected]] = {name: [] for name in context.broker.image.topics}
        for one in found:  # a topic may be created meanwhile, or be gone
            topics.setdefault(one[0], []).append(one)
        elected = topics.items()
        return r(replica_election_results=await answer_each(context, RESULTS, elected, _of_topic))
    rest = iter(found)  # one for each that is named; a topic that is named twice has two results
    named = ((topic.topic, islice(rest, len(topic.partitions))) for topic in request.topic_partitions)
    return r(replica_election_results=await answer_each(context, RESULTS, named, _of_topic))


def _of_topic(
    elected: tuple[str, Iterable[Elected]],
) -> messages.ElectLeadersResponse.ReplicaElectionResult:
    name, found = elected
    results = [_result(index, error) for _, index, error in found]
    return messages.ElectLeadersResponse.ReplicaElectionResult(topic=name, partition_result=results)


def _result(index: int, error: ApiError | None) -> messages.ElectLeadersResponse.PartitionResult:
    result = messages.ElectLeadersResponse.PartitionResult(partition_id=index, error_message=None)
    return result if error is None else error.put_into(result)
