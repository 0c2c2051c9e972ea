"""DeleteRecords, versions 0 to 2: advances the log start offset of partitions to an offset
or to the high watermark (KIP-107).

**Behaviour**
- The reply waits until all replicas on nodes that are not fenced have heard of it, for the request's timeout: then it
  says REQUEST_TIMED_OUT, and the records are deleted all the same.

**Versions**
- 2 flexible
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from ...coordinator.scala_tables import K, hash_in_trie, in_trie, partition_hash, trie_order
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..broker import Broker
from ..error_places import Place, array, codes
from ..internal_topics import is_internal
from ..net.context import Context
from ..replica.partition import Partition
from ..security.authorization import Check, Refusal
from ..steps import Pace
from ._partition_answers import answered

T = TypeVar("T")
TOPICS = Check(Operation.DELETE, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
AUTHORIZATION = (TOPICS,)
TO_HIGH_WATERMARK = -1
CHECK_MS = 100
IN_ORDER_MAX = 4  # entries of a map of Scala's that keeps their order
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


class Late(NamedTuple):
    """A partition whose log begins at an offset, and some replica does not know it."""

    partition: Partition
    offset: int
    answer: messages.DeleteRecordsResponse.DeleteRecordsPartitionResult


async def narrowed(
    context: Context, request: messages.DeleteRecordsRequest
) -> Callable[[messages.DeleteRecordsResponse], messages.DeleteRecordsResponse] | None:
    request.topics, refused = await TOPICS.parted(context, request.topics)
    r = messages.DeleteRecordsResponse

    def complete(response: messages.DeleteRecordsResponse) -> messages.DeleteRecordsResponse:
        named: dict[str, dict[int, None]] = {}
        for topic in refused:
            if topic.partitions:
                named.setdefault(topic.name, {}).update(dict.fromkeys(p.partition_index for p in topic.partitions))
        for name, indexes in named.items():
            parts = [
                r.DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=TOPICS.code)
                for index in indexes
            ]
            response.topics.append(r.DeleteRecordsTopicResult(name=name, partitions=parts))
        return response

    return complete if refused else None


async def handle(context: Context, request: messages.DeleteRecordsRequest) -> messages.DeleteRecordsResponse:
    r = messages.DeleteRecordsResponse
    response, pace, ends_ms = r(), Pace(context.turn), context.turn.schedule.monotonic_ms() + request.timeout_ms
    late: list[Late] = []
    topics: dict[str, dict[int, int]] = {}  # the last offset counts if a partition is named twice
    for topic in request.topics:
        if topic.partitions:
            topics.setdefault(topic.name, {}).update((p.partition_index, p.offset) for p in topic.partitions)
        if pace.is_over(1 + len(topic.partitions)):
            await pace.rest()
    for name, partitions in topics.items():
        asked = (
            (offset, r.DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1))
            for index, offset in partitions.items()
        )
        answers = await answered(pace, asked, partial(_delete, context, name, late))
        response.topics.append(r.DeleteRecordsTopicResult(name=name, partitions=answers))
    while late and (left_ms := ends_ms - context.turn.schedule.monotonic_ms()) > 0:
        await context.turn.pause(min(CHECK_MS, left_ms))
        late = await _still_late(context, pace, late)
    return await _in_order_of_kafka(pace, response)


async def _in_order_of_kafka(pace: Pace, response: messages.DeleteRecordsResponse) -> messages.DeleteRecordsResponse:
    """Orders topics, and more than four partitions in all, as Scala's maps have them."""
    if pace.is_over(len(response.topics)):  # what follows looks at all of them
        await pace.rest()
    are_ordered = sum(len(topic.partitions) for topic in response.topics) <= IN_ORDER_MAX
    response.topics = await _ordered(pace, {topic.name: topic for topic in response.topics}, hash_in_trie)
    for topic in response.topics:
        if not are_ordered and len(topic.partitions) > 1:
            found = {one.partition_index: one for one in topic.partitions}
            topic.partitions = await _ordered(pace, found, partial(_hash_in_trie, topic.name))
    return response


def _hash_in_trie(topic: str, index: int) -> int:
    return in_trie(partition_hash(topic, index))


async def _ordered(pace: Pace, found: dict[K, T], hash_of: Callable[[K], int]) -> list[T]:
    hashes: dict[K, int] = {}
    for key in found:
        hashes[key] = hash_of(key)
        if pace.is_over():
            await pace.rest()
    in_order: list[T] = []
    for key in trie_order(hashes):
        in_order.append(found[key])
        if pace.is_over():
            await pace.rest()
    return in_order


async def _still_late(context: Context, pace: Pace, late: list[Late]) -> list[Late]:
    """Ends the wait of those of which all replicas have heard; returns the others."""
    found = []
    for one in late:
        if not _has_ended(context.broker, one):
            found.append(one)
        if pace.is_over():
            await pace.rest()
    return found


def _delete(
    context: Context,
    topic: str,
    late: list[Late],
    offset: int,
    answer: messages.DeleteRecordsResponse.DeleteRecordsPartitionResult,
) -> None:
    """ApiError. Adds to `late` what replicas have not heard of."""
    broker = context.broker
    partition = broker.partitions.led(topic, answer.partition_index)
    if not broker.partitions.leads(partition):  # a leader that is cut off, of which another one was elected
        raise ApiError(Errors.NOT_LEADER_OR_FOLLOWER)
    if is_internal(topic):
        raise ApiError(Errors.INVALID_TOPIC_EXCEPTION)
    log = partition.open_log()
    if not log.settings.is_deleted and log.settings.cleanup_policy:
        raise ApiError(Errors.POLICY_VIOLATION)
    if offset == TO_HIGH_WATERMARK:
        offset = partition.high_watermark
    if offset < 0 or offset > partition.high_watermark:
        raise ApiError(Errors.OFFSET_OUT_OF_RANGE)
    if partition.replica_set is not None and offset > log.start_offset:
        partition.replica_set.note_start(log.start_offset)
    broker.appender.cut(partition, offset)
    answer.low_watermark = _low_watermark(broker, partition)
    if answer.low_watermark < offset:
        answer.error_code = Errors.REQUEST_TIMED_OUT
        late.append(Late(partition, offset, answer))


def _low_watermark(broker: Broker, partition: Partition) -> int:
    """Returns from where on all replicas that are alive have the log."""
    start, replicas = partition.start_offset, partition.replica_set
    return start if replicas is None else replicas.low_watermark(start, {one.id for one in broker.alive()})


def _has_ended(broker: Broker, late: Late) -> bool:
    """Whether all replicas have heard that records were deleted, or this node does not lead the partition any more."""
    partition, offset, answer = late
    try:
        broker.partitions.led(partition.topic, partition.index)
    except ApiError as error:
        answer.error_code, answer.low_watermark = error.code, -1
        return True
    low_watermark = _low_watermark(broker, partition)
    if low_watermark < offset:
        return False
    answer.error_code, answer.low_watermark = 0, low_watermark
    return True
