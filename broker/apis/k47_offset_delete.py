"""OffsetDelete, version 0: deletes committed offsets of topics that the group is not subscribed to (KIP-496)."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from ...coordinator.group.offsets.deletion import delete
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, Place, array, codes
from ..error_replies import answers_with_error
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ._offset_topics import merged, take_out_absent

TOPICS = Check(Operation.READ, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
AUTHORIZATION = (Check(Operation.DELETE, ResourceType.GROUP, "group_id"), TOPICS)
PARTITIONS = Place(
    "each partition",
    codes("UNKNOWN_TOPIC_OR_PARTITION TOPIC_AUTHORIZATION_FAILED GROUP_SUBSCRIBED_TO_TOPIC"),
    (
        array("topics", "topics", topic="name"),
        array("partitions", "partitions", partition="partition_index"),
    ),
    of_whole=False,
)
ERRORS = (
    Place(
        "the whole",
        COORDINATOR + codes("INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED NON_EMPTY_GROUP GROUP_ID_NOT_FOUND"),
    ),
    PARTITIONS,
)


async def narrowed(
    context: Context, request: messages.OffsetDeleteRequest
) -> Callable[[messages.OffsetDeleteResponse], messages.OffsetDeleteResponse] | None:
    request.topics, refused = await TOPICS.parted(context, request.topics)

    def complete(response: messages.OffsetDeleteResponse) -> messages.OffsetDeleteResponse:
        if not response.error_code:
            results = answers_with_error(context.api, context.version, PARTITIONS, refused, ApiError(TOPICS.code))
            response.topics = merged(results, response.topics, key=attrgetter("name"))
        return response

    return complete if refused else None


async def handle(context: Context, request: messages.OffsetDeleteRequest) -> messages.OffsetDeleteResponse:
    r = messages.OffsetDeleteResponse
    image = context.broker.image
    if not request.group_id:
        return r(error_code=int(Errors.INVALID_GROUP_ID))

    def count_of(topic: messages.OffsetDeleteRequest.OffsetDeleteRequestTopic) -> int:
        found = image.topics.get(topic.name)
        return -1 if found is None else image.partition_counts.get(found.id, 0)

    request.topics, absent = take_out_absent(request.topics, count_of)
    try:
        found = await context.broker.groups.write(
            request.group_id, "delete-offsets", lambda shard: delete(shard, request)
        )
    except ApiError as error:
        return r(error_code=error.code)
    if absent:
        found.topics = merged(
            [_failed(topic.name, indexes, int(Errors.UNKNOWN_TOPIC_OR_PARTITION)) for topic, _, indexes in absent],
            found.topics,
            key=attrgetter("name"),
        )
    return found


def _failed(name: str, indexes: list[int], code: int) -> messages.OffsetDeleteResponse.OffsetDeleteResponseTopic:
    r = messages.OffsetDeleteResponse
    return r.OffsetDeleteResponseTopic(
        name=name,
        partitions=[r.OffsetDeleteResponsePartition(partition_index=index, error_code=code) for index in indexes],
    )
