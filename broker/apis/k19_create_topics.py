"""CreateTopics, versions 2 to 7: creates topics, each with its own error.

**Versions**
- 4 the broker's defaults for partitions and replicas (KIP-464)
- 5 flexible, configurations in the reply (KIP-525)
- 6 quota errors (KIP-599)
- 7 topic ids (KIP-516)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ...coordinator.hashing import java_order
from ...coordinator.metadata import topics
from ...coordinator.metadata.format import CLUSTER_METADATA
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ..error_places import CONTROLLER, Place, Text, array, codes
from ..net.answers import answer_each
from ..net.context import Context
from ..security.authorization import Check, Refusal
from .k32_describe_configs import TOPIC_SOURCE, describe_topic

if TYPE_CHECKING:
    Configs = list[messages.CreateTopicsResponse.CreatableTopicConfigs]

EVERY_TOPIC = Check(Operation.CREATE, ResourceType.CLUSTER, refusal=Refusal.ELEMENT)
TOPICS = Check(Operation.CREATE, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
CONFIGS = Check(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "topics.name", Refusal.LEFT_OUT)
STRICT_QUOTA_SINCE = 6
AUTHORIZATION = (EVERY_TOPIC, TOPICS, CONFIGS)
REPLY_CONFIGS_SINCE = 5
ANSWERS_STEP = 32  # each has some dozens of configurations
_TOPICS = array("topics", "topics", topic="name")
ERRORS = (
    Place(
        "each topic",
        CONTROLLER
        + codes(
            "INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED "
            "TOPIC_ALREADY_EXISTS INVALID_PARTITIONS INVALID_REPLICATION_FACTOR INVALID_REPLICA_ASSIGNMENT "
            "INVALID_CONFIG INVALID_REQUEST POLICY_VIOLATION THROTTLING_QUOTA_EXCEEDED"
        ),
        (_TOPICS,),
        text=Text.OWN,
    ),
    Place(
        "the configuration of each topic",
        codes("TOPIC_AUTHORIZATION_FAILED"),
        (_TOPICS,),
        others=(("num_partitions", -1), ("replication_factor", -1), ("configs", ())),
        since=REPLY_CONFIGS_SINCE,
        of_whole=False,
        is_kept=True,
        code="topic_config_error_code",
    ),
)


async def narrowed(
    context: Context, request: messages.CreateTopicsRequest
) -> Callable[[messages.CreateTopicsResponse], messages.CreateTopicsResponse] | None:
    if EVERY_TOPIC.allows(context):
        return None
    counts = Counter(topic.name for topic in request.topics)
    asked = (name for name, count in counts.items() if count == 1 and name != CLUSTER_METADATA)
    _, refused = await TOPICS.parted(context, asked, str)
    left_out = frozenset(refused)
    request.topics = [topic for topic in request.topics if topic.name not in left_out]

    def complete(response: messages.CreateTopicsResponse) -> messages.CreateTopicsResponse:
        r, error = messages.CreateTopicsResponse, ApiError(TOPICS.code, "Authorization failed.")
        for name in java_order(refused):
            response.topics.append(error.put_into(r.CreatableTopicResult(name=name, configs=[])))
        return response

    return complete if refused else None


async def handle(context: Context, request: messages.CreateTopicsRequest) -> messages.CreateTopicsResponse:
    metadata = context.broker.metadata
    r = messages.CreateTopicsResponse
    outcome = await metadata.forward(
        partial(topics.create_topics, metadata.controller, request.topics, context.mutations(STRICT_QUOTA_SINCE)),
        request.timeout_ms,
        validate_only=request.validate_only,
        is_void=not request.topics,
    )

    last: list[tuple[dict[str, str | None], Configs]] = []

    def configs(topic: messages.CreateTopicsRequest.CreatableTopic) -> Configs:
        given = {c.name: c.value for c in topic.configs}
        if not last or last[0][0] != given:  # the topics of a request mostly have the same
            last[:] = [(given, _configs(context, given))]
        return last[0][1]

    def answer(created: topics.Created) -> messages.CreateTopicsResponse.CreatableTopicResult:
        topic, error, topic_id, partitions, factor = created
        out = r.CreatableTopicResult(name=topic.name)
        if error is not None:
            out.error_code, out.error_message, out.configs = error.code, error.message_or_default, []
        else:
            out.error_message = None
            out.topic_id = topic_id
            if CONFIGS.allows(context, topic.name):
                out.num_partitions, out.replication_factor = partitions, factor
                out.configs = configs(topic) if context.version >= REPLY_CONFIGS_SINCE else []
            else:
                out.topic_config_error_code, out.configs = CONFIGS.code, []
        return out

    return r(topics=await answer_each(context, "topics", outcome, answer, ANSWERS_STEP))


def _configs(context: Context, given: dict[str, str | None]) -> Configs:
    return [
        messages.CreateTopicsResponse.CreatableTopicConfigs(
            name=found.key.name,
            value=found.value,
            read_only=False,
            config_source=TOPIC_SOURCE if found.key.name in given else found.source,
            is_sensitive=False,
        )
        for found in sorted(describe_topic(context.broker, given))
    ]
