"""DescribeQuorum, versions 0 to 2: the voters of the metadata log, which is this node alone (KIP-595).

1 when voters fetched last (KIP-836); 2 their directories and the controllers' listeners (KIP-853).
"""

from __future__ import annotations

from typing import Any

from ...coordinator.metadata.format import CLUSTER_METADATA
from ...protocol import messages
from ...protocol.errors import Errors, default_message
from ..context import Context

DIRECTORIES_SINCE = 2


def handle(context: Context, request: Any) -> Any:
    r = messages.DescribeQuorumResponse
    if [(topic.topic_name, [p.partition_index for p in topic.partitions]) for topic in request.topics] != [(CLUSTER_METADATA, [0])]:
        return _unknown(request)
    broker = context.broker
    partition = broker.metadata.partition
    now = broker.schedule.now_ms()
    voter = r.ReplicaState(replica_id=context.node_id, log_end_offset=partition.end_offset, last_fetch_timestamp=now, last_caught_up_timestamp=now)
    told = r.PartitionData(
        leader_id=context.node_id, leader_epoch=partition.leader_epoch, high_watermark=partition.high_watermark, current_voters=[voter]
    )
    response = r(topics=[r.TopicData(topic_name=CLUSTER_METADATA, partitions=[told])])
    if context.version >= DIRECTORIES_SINCE:
        voter.replica_directory_id = broker.directories[0].id
        at = broker.config.controller_listener
        response.nodes = [r.Node(node_id=context.node_id, listeners=[r.Listener(name=at.name, host=at.host, port=at.port)])]
    return response


def _unknown(request: Any) -> Any:
    """Anything but the one partition of the metadata log is not here, and it neither when it was asked for together with others."""
    r = messages.DescribeQuorumResponse
    code = int(Errors.UNKNOWN_TOPIC_OR_PARTITION)

    def refused(topic: Any) -> list[Any]:
        text = default_message(code)
        return [r.PartitionData(partition_index=p.partition_index, error_code=code, error_message=text) for p in topic.partitions]

    return r(topics=[r.TopicData(topic_name=topic.topic_name, partitions=refused(topic)) for topic in request.topics])
