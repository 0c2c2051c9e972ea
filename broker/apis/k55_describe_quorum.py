"""DescribeQuorum, versions 0 to 2: returns the voters and the observers of the metadata log (KIP-595). The first node
alone is a voter, or all nodes are where the controller is at one of them.

**Behaviour**
- While there is no active controller, the reply waits, and says REQUEST_TIMED_OUT after a minute. One that reaches too
  few voters answers until it resigns.

**Versions**
- 1 the times of the last fetches (KIP-836)
- 2 directory ids and listeners of the controllers (KIP-853)
"""

from __future__ import annotations

from ...coordinator.metadata.format import CLUSTER_METADATA
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..controller.quorum import Fetched
from ..error_places import Place, Text, array, codes
from ..error_replies import answers_with_error
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.DESCRIBE, ResourceType.CLUSTER),)
DIRECTORIES_SINCE = 2
PARTITIONS = Place(
    "each partition",
    codes("UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER"),
    (
        array("topics", "topics", topic="topic_name"),
        array("partitions", "partitions", partition="partition_index"),
    ),
    text=Text.OF_CODE,
    of_whole=False,
)
ERRORS = (
    Place(
        "the whole",
        codes(
            "REQUEST_TIMED_OUT CLUSTER_AUTHORIZATION_FAILED BROKER_NOT_AVAILABLE INVALID_REQUEST "
            "UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER"
        ),
        text=Text.OF_CODE,
    ),
    PARTITIONS,
)


async def handle(context: Context, request: messages.DescribeQuorumRequest) -> messages.DescribeQuorumResponse:
    r = messages.DescribeQuorumResponse
    if [(topic.topic_name, [p.partition_index for p in topic.partitions]) for topic in request.topics] != [
        (CLUSTER_METADATA, [0])
    ]:
        unknown = ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        return r(topics=answers_with_error(context.api, context.version, PARTITIONS, request.topics, unknown))
    metadata = context.broker.metadata
    quorum = metadata.quorum
    standing = await metadata.answers()
    told = r.PartitionData(
        leader_id=standing.leader,
        leader_epoch=standing.leader_epoch,
        high_watermark=standing.high_watermark,
        current_voters=[_replica(context, one, standing.fetched(one)) for one in quorum.voters],
        observers=[_replica(context, one, standing.fetched(one)) for one in quorum.observers],
    )
    response = r(topics=[r.TopicData(topic_name=CLUSTER_METADATA, partitions=[told])])
    if context.version >= DIRECTORIES_SINCE:
        at = context.broker.config.controller_listener
        listener = r.Listener(name=at.name, host=at.host, port=at.port)
        response.nodes = [r.Node(node_id=one, listeners=[listener]) for one in quorum.voters]
    return response


def _replica(context: Context, node: int, fetched: Fetched) -> messages.DescribeQuorumResponse.ReplicaState:
    found = messages.DescribeQuorumResponse.ReplicaState(
        replica_id=node,
        log_end_offset=fetched.end_offset,
        last_fetch_timestamp=fetched.time_ms,
        last_caught_up_timestamp=fetched.time_ms,
    )
    if context.version >= DIRECTORIES_SINCE:
        found.replica_directory_id = context.broker.metadata.replica_key(node).directory_id
    return found
