"""DeleteShareGroupOffsets, version 0: deletes the topics of an empty share group (KIP-932)."""

from __future__ import annotations

from operator import attrgetter

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ..error_places import COORDINATOR, Place, Text, array, codes
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..share_groups import delete_offsets
from ._share_requests import check_group

GROUPS = Check(Operation.DELETE, ResourceType.GROUP, "group_id", Refusal.IN_HANDLER)
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
        "each topic",
        COORDINATOR + codes("UNKNOWN_TOPIC_OR_PARTITION TOPIC_AUTHORIZATION_FAILED KAFKA_STORAGE_ERROR"),
        (array("responses", "topics", topic="topic_name"),),
        text=Text.OWN_OR_OF_CODE,
        of_whole=False,
    ),
)


async def handle(
    context: Context,
    request: messages.DeleteShareGroupOffsetsRequest,
) -> messages.DeleteShareGroupOffsetsResponse:
    broker = context.broker
    r = messages.DeleteShareGroupOffsetsResponse
    try:
        broker.share_partitions.check_enabled()
        GROUPS.require(context, request.group_id)
        check_group(context, request.group_id)
        request.topics, denied = await TOPICS.parted(context, request.topics, attrgetter("topic_name"))
        response = await delete_offsets(broker, request)
    except ApiError as error:
        return error.put_into(r())
    error_of_denied = ApiError(TOPICS.code)
    response.responses += [
        error_of_denied.put_into(r.DeleteShareGroupOffsetsResponseTopic(topic_name=topic.topic_name))
        for topic in denied
    ]
    return response
