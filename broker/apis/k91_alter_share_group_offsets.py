"""AlterShareGroupOffsets, version 0: sets the start offsets of an empty share group (KIP-932).

**Behaviour**
- Topics that do not exist come first in the reply, those without partitions are left out, and a topic that is named
  several times is in the reply once.
- Raises the state epoch: a leader that holds the old state is fenced at its next write, and reads the new state.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.schema import NO_UUID
from ..error_places import COORDINATOR, Place, Text, array, codes
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..share_groups import alter_offsets
from ._share_requests import check_group

if TYPE_CHECKING:
    Topic = messages.AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic

GROUPS = Check(Operation.READ, ResourceType.GROUP, "group_id", Refusal.IN_HANDLER)
TOPICS = Check(Operation.READ, ResourceType.TOPIC, "topics.topic_name", Refusal.ELEMENT)
AUTHORIZATION = (GROUPS, TOPICS)
ERRORS = (
    Place(
        "the whole",
        COORDINATOR
        + codes(
            "INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED UNSUPPORTED_VERSION INVALID_REQUEST NON_EMPTY_GROUP "
            "GROUP_ID_NOT_FOUND"
        ),
        text=Text.OF_CODE,
    ),
    Place(
        "each partition",
        COORDINATOR + codes("UNKNOWN_TOPIC_OR_PARTITION TOPIC_AUTHORIZATION_FAILED KAFKA_STORAGE_ERROR"),
        (
            array("responses", "topics", topic="topic_name"),
            array("partitions", "partitions", partition="partition_index"),
        ),
        text=Text.OWN_OR_OF_CODE,
        of_whole=False,
    ),
)


async def handle(
    context: Context,
    request: messages.AlterShareGroupOffsetsRequest,
) -> messages.AlterShareGroupOffsetsResponse:
    broker = context.broker
    r = messages.AlterShareGroupOffsetsResponse
    try:
        broker.share_partitions.check_enabled()
        GROUPS.require(context, request.group_id)
        check_group(context, request.group_id)
        request.topics, denied = await TOPICS.parted(context, request.topics, attrgetter("topic_name"))
        unknown = [_refused(context, topic, TOPICS.code) for topic in denied]
        unknown += [
            _refused(context, topic, int(Errors.UNKNOWN_TOPIC_OR_PARTITION))
            for topic in request.topics
            if topic.partitions and broker.topic(topic.topic_name) is None
        ]
        request.topics = _each_once(topic for topic in request.topics if broker.topic(topic.topic_name) is not None)
        response = await alter_offsets(broker, request)
    except ApiError as error:
        return error.put_into(r())
    response.responses = unknown + response.responses
    return response


def _each_once(topics: Iterable[Topic]) -> list[Topic]:
    """Returns the topics, each with all of its partitions."""
    found: dict[str, Topic] = {}
    for topic in topics:
        first = found.setdefault(topic.topic_name, topic)
        if first is not topic:
            first.partitions = [*first.partitions, *topic.partitions]
    return list(found.values())


def _refused(
    context: Context,
    topic: Topic,
    code: int,
) -> messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic:
    r = messages.AlterShareGroupOffsetsResponse
    error, known = ApiError(code), context.broker.topic(topic.topic_name)
    parts = [
        error.put_into(r.AlterShareGroupOffsetsResponsePartition(partition_index=p.partition_index))
        for p in topic.partitions
    ]
    topic_id = NO_UUID if known is None else known.id
    return r.AlterShareGroupOffsetsResponseTopic(topic_name=topic.topic_name, topic_id=topic_id, partitions=parts)
