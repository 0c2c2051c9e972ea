"""DeleteRecords, versions 0 to 2: advances the log start offset of partitions to an offset
or to the high watermark (KIP-107).

**Versions**
- 2 flexible
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import Place, array, codes
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import Pace
from ._partition_answers import answered

TOPICS = Check(Operation.DELETE, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
AUTHORIZATION = (TOPICS,)
TO_HIGH_WATERMARK = -1
PARTITIONS = Place(
    "each partition",
    codes(
        "OFFSET_OUT_OF_RANGE UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT "
        "REPLICA_NOT_AVAILABLE INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED POLICY_VIOLATION "
        "KAFKA_STORAGE_ERROR"
    ),
    (
        array("topics", "topics", topic="name"),
        array("partitions", "partitions", partition="partition_index"),
    ),
    others=(("low_watermark", -1),),
)
ERRORS = (PARTITIONS,)


async def narrowed(
    context: Context, request: messages.DeleteRecordsRequest
) -> Callable[[messages.DeleteRecordsResponse], messages.DeleteRecordsResponse] | None:
    request.topics, refused = await TOPICS.parted(context, request.topics)
    r = messages.DeleteRecordsResponse

    def complete(response: messages.DeleteRecordsResponse) -> messages.DeleteRecordsResponse:
        for topic in refused:
            parts = [
                r.DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=TOPICS.code)
                for index in dict.fromkeys(p.partition_index for p in topic.partitions)
            ]
            response.topics.append(r.DeleteRecordsTopicResult(name=topic.name, partitions=parts))
        return response

    return complete if refused else None


async def handle(context: Context, request: messages.DeleteRecordsRequest) -> messages.DeleteRecordsResponse:
    r = messages.DeleteRecordsResponse
    response, pace = r(), Pace(context.broker.turn)
    topics: dict[str, dict[int, int]] = {}  # the last offset counts if a partition is named twice
    for topic in request.topics:
        topics.setdefault(topic.name, {}).update((p.partition_index, p.offset) for p in topic.partitions)
        if pace.is_over(1 + len(topic.partitions)):
            await pace.rest()
    for name, partitions in topics.items():
        asked = (
            (offset, r.DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1))
            for index, offset in partitions.items()
        )
        answers = await answered(pace, asked, partial(_delete, context, name))
        response.topics.append(r.DeleteRecordsTopicResult(name=name, partitions=answers))
    return response


def _delete(
    context: Context,
    topic: str,
    offset: int,
    answer: messages.DeleteRecordsResponse.DeleteRecordsPartitionResult,
) -> None:
    """ApiError."""
    broker = context.broker
    partition = broker.partitions.led(topic, answer.partition_index)
    if not broker.partitions.leads(partition):  # a leader that is cut off, of which another one was elected
        raise ApiError(Errors.NOT_LEADER_OR_FOLLOWER)
    log = partition.open_log()
    if not log.settings.is_deleted and log.settings.cleanup_policy:
        raise ApiError(Errors.POLICY_VIOLATION)
    if offset == TO_HIGH_WATERMARK:
        offset = partition.high_watermark
    if offset < 0 or offset > partition.high_watermark:
        raise ApiError(Errors.OFFSET_OUT_OF_RANGE)
    broker.appender.cut(partition, offset)
    answer.low_watermark = log.start_offset
