"""DescribeTopicPartitions, version 0: describes topics and their partitions in pages (KIP-966)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...coordinator.metadata.configs import error_of_absent
from ...coordinator.metadata.state import Partition, Topic
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..broker import Broker
from ..error_places import Place, array, codes
from ..internal_topics import is_internal
from ..net.answers import Answers, topic_piece
from ..net.context import Context
from ..security.authorization import Check, Refusal, authorized_operations
from ..steps import STEP_ELEMENTS
from ..topic_pieces import Piece
from ._leadership import leadership

if TYPE_CHECKING:
    Described = messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic

TOPICS = Check(Operation.DESCRIBE, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
AUTHORIZATION = (TOPICS,)
ERRORS = (
    Place(
        "each topic",
        codes("UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED INVALID_REQUEST"),
        (array("topics", "topics", topic="name"),),
    ),
    Place(
        "each partition",
        codes("LEADER_NOT_AVAILABLE LISTENER_NOT_FOUND"),
        (
            array("topics", "topics", topic="name"),
            array("partitions", None, partition="partition_index"),
        ),
        others=(("leader_id", -1),),
        of_whole=False,
        is_kept=True,
    ),
)


async def handle(
    context: Context,
    request: messages.DescribeTopicPartitionsRequest,
) -> messages.DescribeTopicPartitionsResponse:
    r = messages.DescribeTopicPartitionsResponse
    image, broker = context.broker.image, context.broker
    limit = max(1, min(request.response_partition_limit, broker.config["max.request.partition.size.limit"]))
    names = sorted({t.name for t in request.topics}) if request.topics else sorted(image.topics)
    first_index = 0
    if request.cursor is not None:
        if request.cursor.partition_index < 0 or (request.topics and request.cursor.topic_name not in names):
            raise ApiError(Errors.INVALID_REQUEST)
        names = [n for n in names if n >= request.cursor.topic_name]
        first_index = request.cursor.partition_index if names and names[0] == request.cursor.topic_name else 0
    denied: list[str] = []
    if context.authorizer is not None:
        names, denied = await TOPICS.parted(context, names, str)
    if request.cursor is None and names and not names[0]:  # Kafka looks for the cursor that would be there
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    if len(names) > STEP_ELEMENTS:  # to sort them is a step of its own
        await broker.turn.next()
    answers = Answers(context)
    response = r(topics=answers.array("topics"))
    for name in names:
        if limit <= 0:
            response.next_cursor = r.Cursor(topic_name=name, partition_index=first_index)
            break
        topic = image.topics.get(name)
        if topic is None:
            absent = r.DescribeTopicPartitionsResponseTopic(error_code=error_of_absent(name), name=name)
            absent.topic_authorized_operations = authorized_operations(context, ResourceType.TOPIC, name)
            await answers.add("topics", absent)
            first_index = 0
            continue
        operations = authorized_operations(context, ResourceType.TOPIC, name)
        end = min(image.partition_counts[topic.id], first_index + limit)
        await answers.add("topics", _described(context, topic, operations, first_index, end))
        limit -= max(0, end - first_index)
        if end < image.partition_counts[topic.id]:
            response.next_cursor = r.Cursor(topic_name=name, partition_index=end)
            break
        first_index = 0
    for name in denied if request.topics else ():
        await answers.add("topics", r.DescribeTopicPartitionsResponseTopic(error_code=TOPICS.code, name=name))
    return response


def _described(context: Context, topic: Topic, operations: int, first: int, end: int) -> Piece | Described:
    """Returns the partitions of a topic from `first` to before `end`. If these are all, and nothing of the topic has
    changed, they are as they were encoded before.
    """

    def described() -> Described:
        return messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=is_internal(topic.name),
            topic_authorized_operations=operations,
            partitions=[
                _partition(context.broker, topic.name, context.broker.image.partitions[topic.id, index])
                for index in range(first, end)
            ],
        )

    if first == 0 and end == context.broker.image.partition_counts[topic.id]:
        return topic_piece(context, topic.name, operations, described)
    return described()


def _partition(
    broker: Broker, topic: str, state: Partition
) -> messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition:
    """Returns a partition; unlike Metadata, without an error if it has no leader."""
    leader, isr, offline = leadership(broker, topic, state)
    return messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition(
        partition_index=state.index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=isr,
        eligible_leader_replicas=list(state.elr),
        last_known_elr=list(state.last_known_elr),
        offline_replicas=offline,
    )
