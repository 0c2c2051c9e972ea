"""DescribeQuorum, versions 0 to 2: returns the voters of the metadata log: the first node alone, or all nodes where the
controller is at one of them (KIP-595).

**Versions**
- 1 the times of the last fetches (KIP-836)
- 2 directory ids and listeners of the controllers (KIP-853)
"""

from __future__ import annotations

from ...coordinator.metadata.format import CLUSTER_METADATA
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
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
            "CLUSTER_AUTHORIZATION_FAILED BROKER_NOT_AVAILABLE INVALID_REQUEST UNKNOWN_TOPIC_OR_PARTITION "
            "NOT_LEADER_OR_FOLLOWER"
        ),
        text=Text.OF_CODE,
    ),
    PARTITIONS,
)


def handle(context: Context, request: messages.DescribeQuorumRequest) -> messages.DescribeQuorumResponse:
    r = messages.DescribeQuorumResponse
    if [(topic.topic_name, [p.partition_index for p in topic.partitions]) for topic in request.topics] != [
        (CLUSTER_METADATA, [0])
    ]:
        unknown = ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        return r(topics=answers_with_error(context.api, context.version, PARTITIONS, request.topics, unknown))
    broker = context.broker
    partition = broker.metadata.partition
    now, quorum = broker.schedule.now_ms(), broker.metadata.quorum
    voters = {
        one: r.ReplicaState(
            replica_id=one,
            log_end_offset=partition.end_offset,
            last_fetch_timestamp=now,
            last_caught_up_timestamp=now,
        )
        for one in quorum.voters
    }
    told = r.PartitionData(
        leader_id=quorum.leader,
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
        current_voters=list(voters.values()),
    )
    response = r(topics=[r.TopicData(topic_name=CLUSTER_METADATA, partitions=[told])])
    if context.version >= DIRECTORIES_SINCE:
        at = broker.config.controller_listener
        for one, voter in voters.items():
            voter.replica_directory_id = broker.log_directories.all[0].node_ids[one]
        listener = r.Listener(name=at.name, host=at.host, port=at.port)
        response.nodes = [r.Node(node_id=one, listeners=[listener]) for one in voters]
    return response
