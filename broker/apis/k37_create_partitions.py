"""CreatePartitions, versions 0 to 3: adds partitions to topics (KIP-195).

**Versions**
- 2 flexible
- 3 quota errors (KIP-599)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from ...coordinator.hashing import java_order
from ...coordinator.metadata import topics
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ..error_places import CONTROLLER, Place, Text, array, codes
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import each_in_steps

TOPICS = Check(Operation.ALTER, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
STRICT_QUOTA_SINCE = 3
AUTHORIZATION = (TOPICS,)
ERRORS = (
    Place(
        "each topic",
        CONTROLLER
        + codes(
            "UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED INVALID_PARTITIONS "
            "INVALID_REPLICATION_FACTOR INVALID_REPLICA_ASSIGNMENT INVALID_REQUEST POLICY_VIOLATION "
            "REASSIGNMENT_IN_PROGRESS THROTTLING_QUOTA_EXCEEDED"
        ),
        (array("results", "topics", topic="name"),),
        text=Text.OWN,
    ),
)


async def narrowed(
    context: Context, request: messages.CreatePartitionsRequest
) -> Callable[[messages.CreatePartitionsResponse], messages.CreatePartitionsResponse] | None:
    counts = Counter(topic.name for topic in request.topics)
    _, refused = await TOPICS.parted(context, (name for name, count in counts.items() if count == 1), str)
    left_out = frozenset(refused)
    request.topics = [topic for topic in request.topics if topic.name not in left_out]

    def complete(response: messages.CreatePartitionsResponse) -> messages.CreatePartitionsResponse:
        repeated = sum(count > 1 for count in counts.values())  # they come first
        response.results[repeated:repeated] = [_result((name, ApiError(TOPICS.code))) for name in java_order(refused)]
        return response

    return complete if refused else None


async def handle(context: Context, request: messages.CreatePartitionsRequest) -> messages.CreatePartitionsResponse:
    metadata = context.broker.metadata
    outcome = await metadata.forward(
        partial(topics.create_partitions, metadata.controller, request.topics, context.mutations(STRICT_QUOTA_SINCE)),
        request.timeout_ms,
        validate_only=request.validate_only,
        is_void=not request.topics,
    )
    results = await each_in_steps(context.broker.turn, outcome, _result)
    return messages.CreatePartitionsResponse(results=results)


def _result(
    answered: tuple[str, ApiError | None],
) -> messages.CreatePartitionsResponse.CreatePartitionsTopicResult:
    name, error = answered
    result = messages.CreatePartitionsResponse.CreatePartitionsTopicResult(name=name)
    return result if error is None else error.put_into(result, with_default=False)
