"""DeleteTopics, versions 1 to 6: deletes topics by name; from version 6 on also by id (KIP-516).

**Versions**
- 3 TOPIC_DELETION_DISABLED if `delete.topic.enable` is false (KIP-322)
- 4 flexible
- 5 error messages (KIP-599)
- 6 topic ids (KIP-516)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

from ...coordinator.metadata import topics
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.schema import NO_UUID
from ..error_places import CONTROLLER, ITSELF, Place, array, codes
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import each_in_steps

EVERY_TOPIC = Check(Operation.DELETE, ResourceType.CLUSTER, refusal=Refusal.ELEMENT)
DESCRIBED = Check(Operation.DESCRIBE, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
TOPICS = Check(Operation.DELETE, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
STRICT_QUOTA_SINCE = 5
AUTHORIZATION = (EVERY_TOPIC, DESCRIBED, TOPICS)
TOPICS_NAMED = Place(
    "each topic",
    CONTROLLER
    + codes(
        "UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED UNSUPPORTED_VERSION "
        "INVALID_REQUEST POLICY_VIOLATION TOPIC_DELETION_DISABLED THROTTLING_QUOTA_EXCEEDED UNKNOWN_TOPIC_ID"
    ),
    (array("responses", "topic_names", topic=("name", ITSELF)),),
)
ERRORS = (
    replace(TOPICS_NAMED, until=5),
    replace(TOPICS_NAMED, levels=(array("responses", "topics", topic="name", topic_id="topic_id"),), since=6),
)


async def handle(context: Context, request: messages.DeleteTopicsRequest) -> messages.DeleteTopicsResponse:
    if not context.broker.config["delete.topic.enable"]:
        raise ApiError(Errors.TOPIC_DELETION_DISABLED if context.version >= 3 else Errors.INVALID_REQUEST)
    r = messages.DeleteTopicsResponse
    turn, pairs = context.broker.turn, Counter(_pairs(context, request))
    named = await each_in_steps(turn, pairs.items(), partial(_wanted, context))
    wanted = [one for some in named for one in some]
    good = [(name, topic_id) for name, topic_id, error in wanted if error is None]
    metadata = context.broker.metadata
    mutate = context.mutations(STRICT_QUOTA_SINCE)
    state = metadata.controller.state
    outcome = await metadata.forward(
        partial(topics.delete_topics, metadata.controller, good, mutate),
        request.timeout_ms,
        is_void=not any(topic_id in state.topic_names or name in state.topics for name, topic_id in good),
    )
    responses = [
        error.put_into(r.DeletableTopicResult(name=name, topic_id=topic_id))
        for name, topic_id, error in wanted
        if error is not None
    ]
    responses += await each_in_steps(turn, outcome, _result)
    return r(responses=responses)


def _result(deleted: topics.Deleted) -> messages.DeleteTopicsResponse.DeletableTopicResult:
    name, topic_id, error = deleted
    result = messages.DeleteTopicsResponse.DeletableTopicResult(name=name, topic_id=topic_id)
    return result if error is None else error.put_into(result)


def _pairs(context: Context, request: messages.DeleteTopicsRequest) -> list[tuple[str | None, bytes]]:
    """Returns the names and ids of a request."""
    if context.version < 6:
        return [(name, NO_UUID) for name in request.topic_names]
    return [(t.name, t.topic_id) for t in request.topics]


def _wanted(context: Context, counted: tuple[tuple[str | None, bytes], int]) -> list[topics.Deleted]:
    """Returns a requested name and id, with the error if they are invalid, as often as the reply has them; repeated
    topics are listed once. `counted`: with how often the request has them.
    """
    (name, topic_id), count = counted
    if (name is None) is (topic_id == NO_UUID):
        text = (
            "Neither topic name nor id were specified."
            if name is None
            else "You may not specify both topic name and topic id."
        )
        return [(name, topic_id, ApiError(Errors.INVALID_REQUEST, text))] * count
    if count > 1:
        text = f"Duplicate topic {'id' if name is None else 'name'}."
        return [(name, topic_id, ApiError(Errors.INVALID_REQUEST, text))]
    return [_authorized(context, name, topic_id)]


def _authorized(context: Context, name: str | None, topic_id: bytes) -> topics.Deleted:
    """Returns a name and an id, with the error of a topic that the principal may not delete. The reply does not name a
    topic whose name the principal may not know.
    """
    image = context.broker.image
    known = image.topic_names.get(topic_id) if name is None else name
    if context.authorizer is None or known is None or EVERY_TOPIC.allows(context):
        return name, topic_id, None
    if DESCRIBED.allows(context, known):
        if TOPICS.allows(context, known) or known not in image.topics:
            return name, topic_id, None
        name = known
    return name, topic_id, ApiError(TOPICS.code)
