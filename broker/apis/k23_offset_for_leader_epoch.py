"""OffsetForLeaderEpoch, versions 2 to 4: returns the end offset of a leader epoch (KIP-101, KIP-320).

**Versions**
- 3 replica id
- 4 flexible
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ..error_places import Place, array, codes
from ..error_replies import answers_with_error
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import Pace
from ._partition_answers import answered

REPLICAS = Check(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, refusal=Refusal.ELEMENT)
TOPICS = Check(Operation.DESCRIBE, ResourceType.TOPIC, "topics.topic", Refusal.ELEMENT)
AUTHORIZATION = (REPLICAS, TOPICS)
PARTITIONS = Place(
    "each partition",
    codes(
        "UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER REPLICA_NOT_AVAILABLE TOPIC_AUTHORIZATION_FAILED "
        "KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH"
    ),
    (
        array("topics", "topics", topic="topic"),
        array("partitions", "partitions", partition="partition"),
    ),
)
ERRORS = (PARTITIONS,)


async def narrowed(
    context: Context, request: messages.OffsetForLeaderEpochRequest
) -> Callable[[messages.OffsetForLeaderEpochResponse], messages.OffsetForLeaderEpochResponse] | None:
    if REPLICAS.allows(context):
        return None
    request.topics, refused = await TOPICS.parted(context, request.topics, attrgetter("topic"))

    def complete(response: messages.OffsetForLeaderEpochResponse) -> messages.OffsetForLeaderEpochResponse:
        response.topics += answers_with_error(context.api, context.version, PARTITIONS, refused, ApiError(TOPICS.code))
        return response

    return complete if refused else None


async def handle(
    context: Context,
    request: messages.OffsetForLeaderEpochRequest,
) -> messages.OffsetForLeaderEpochResponse:
    r = messages.OffsetForLeaderEpochResponse
    response, pace = r(), Pace(context.broker.turn)
    for topic in request.topics:
        asked = ((wanted, r.EpochEndOffset(partition=wanted.partition)) for wanted in topic.partitions)
        answers = await answered(pace, asked, partial(_find_end, context, topic.topic))
        response.topics.append(r.OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return response


def _find_end(
    context: Context,
    topic: str,
    wanted: messages.OffsetForLeaderEpochRequest.OffsetForLeaderPartition,
    answer: messages.OffsetForLeaderEpochResponse.EpochEndOffset,
) -> None:
    """ApiError."""
    partitions = context.broker.partitions
    partition = partitions.get(topic, wanted.partition)
    reach = partitions.check_read(partition, wanted.current_leader_epoch, may_follow=False)
    log = partition.open_log()
    end, latest = log.end_offset, None
    if reach is not None:  # of a leader that is cut off
        end, (_, latest) = reach.end, partitions.known_leader(partition)
    answer.leader_epoch, answer.end_offset = log.epochs.end_offset_for(wanted.leader_epoch, end, latest)
