"""AlterReplicaLogDirs, versions 1 and 2: moves replicas to other log directories of their node (KIP-113).

**Behaviour**
- The reply comes when the move has begun; DescribeLogDirs shows how far it is.
- A replica that is asked into the directory in which it is stays there: a move that has begun ends.
- A partition that does not exist yet gets UNKNOWN_TOPIC_OR_PARTITION, and is created in the directory later.
- A cordoned directory gets INVALID_REPLICA_ASSIGNMENT (KIP-1066).
- Of several directories for one partition, the last one counts.
- Topics and partitions are in the order of Kafka's hash tables; a topic without partitions is left out.

**Versions**
- 2 flexible
"""

from __future__ import annotations

from collections.abc import Collection

from ...coordinator.scala_tables import buckets_for, hash_in_trie, partition_hash, place_in_table, trie_order
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ..error_places import ITSELF, Place, array, codes
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import Pace

CLUSTER = Check(Operation.ALTER, ResourceType.CLUSTER, refusal=Refusal.ELEMENT)
AUTHORIZATION = (CLUSTER,)
ERRORS = (
    Place(
        "each partition",
        codes(
            "CLUSTER_AUTHORIZATION_FAILED LOG_DIR_NOT_FOUND KAFKA_STORAGE_ERROR UNKNOWN_TOPIC_OR_PARTITION "
            "REPLICA_NOT_AVAILABLE INVALID_TOPIC_EXCEPTION INVALID_REPLICA_ASSIGNMENT"
        ),
        (
            array("results", "dirs.topics", topic=("topic_name", "name")),
            array("partitions", "partitions", partition=("partition_index", ITSELF)),
        ),
    ),
)
STEP_PARTITIONS = 32  # that may begin to move at a time: each makes a directory


async def handle(
    context: Context, request: messages.AlterReplicaLogDirsRequest
) -> messages.AlterReplicaLogDirsResponse:
    r = messages.AlterReplicaLogDirsResponse
    wanted: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, directory.path))
    CLUSTER.require(context)
    response, pace = r(), Pace(context.broker.turn, STEP_PARTITIONS)
    for name in trie_order({name: hash_in_trie(name) for name, paths in wanted.items() if paths}):
        result = r.AlterReplicaLogDirTopicResult(topic_name=name)
        response.results.append(result)
        for index in _in_order(name, wanted[name]):
            answer = r.AlterReplicaLogDirPartitionResult(partition_index=index)
            result.partitions.append(answer)
            try:
                context.broker.replicas.moves.ask(context.node_id, name, index, wanted[name][index])
            except ApiError as error:
                answer.error_code = error.code
            if pace.is_over():
                await pace.rest()
    return response


def _in_order(topic: str, partitions: Collection[int]) -> list[int]:
    """Returns partitions of a topic in Kafka's order."""
    size = buckets_for(len(partitions))
    return sorted(partitions, key=lambda index: place_in_table(partition_hash(topic, index), size))
