"""DescribeProducers, version 0: returns the producer state of partitions, with open transactions (KIP-664)."""

from __future__ import annotations

from ...coordinator.metadata.configs import check_name
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ..error_places import ITSELF, Place, array, codes
from ..net.answers import Answers
from ..net.context import Context
from ..security.authorization import Check, Refusal

TOPICS = Check(Operation.READ, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
AUTHORIZATION = (TOPICS,)
ERRORS = (
    Place(
        "each partition",
        codes(
            "UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER INVALID_TOPIC_EXCEPTION "
            "TOPIC_AUTHORIZATION_FAILED KAFKA_STORAGE_ERROR"
        ),
        (
            array("topics", "topics", topic="name"),
            array("partitions", "partition_indexes", partition=("partition_index", ITSELF)),
        ),
    ),
)


async def handle(context: Context, request: messages.DescribeProducersRequest) -> messages.DescribeProducersResponse:
    r = messages.DescribeProducersResponse
    answers = Answers(context)
    topics = answers.array("topics")
    for topic in request.topics:
        partitions = answers.array("topics.partitions")
        for index in topic.partition_indexes:
            await answers.add("topics.partitions", _partition(context, topic.name, index))
        await answers.add("topics", r.TopicResponse(name=topic.name, partitions=partitions))
    return r(topics=topics)


def _partition(context: Context, topic: str, index: int) -> messages.DescribeProducersResponse.PartitionResponse:
    r = messages.DescribeProducersResponse
    answer = r.PartitionResponse(partition_index=index)
    try:
        check_name(topic)
        if context.authorizer is not None:
            TOPICS.require(context, topic)
        partitions = context.broker.partitions
        partition = partitions.get(topic, index)
        partitions.check_read(partition, -1, may_follow=True)
        log = partition.open_log()
        answer.active_producers = [
            r.ProducerState(
                producer_id=pid,
                producer_epoch=p.epoch,
                last_sequence=p.last_sequence,
                last_timestamp=p.last_timestamp,
                coordinator_epoch=p.coordinator_epoch,
                current_txn_start_offset=p.transaction_first_offset,
            )
            for pid, p in log.producers.by_id.items()
        ]
    except ApiError as error:
        answer.error_code = error.code
        answer.error_message = (
            error.message_or_default
            if topic not in context.broker.image.topics or error.code == TOPICS.code
            else error.own_message
        )
    return answer
