"""CreateTopics, versions 2 to 7: new topics, each with its own error.

4 the broker's defaults for partitions and replicas (KIP-464); 5 flexible, configs in the reply (KIP-525); 6 quota errors (KIP-599);
7 topic ids.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.metadata import topics
from ...protocol import messages
from ...protocol.errors import ApiError
from ..context import Context
from .k32_describe_configs import TOPIC_SOURCE, describe_topic

REPLY_CONFIGS_SINCE = 5


async def handle(context: Context, request: Any) -> Any:
    metadata = context.broker.metadata
    r = messages.CreateTopicsResponse
    response = r()
    outcome = await metadata.submit(lambda: topics.create_topics(metadata.controller, request), request.timeout_ms)
    for topic, error, topic_id, partitions, factor in outcome:
        out = r.CreatableTopicResult(name=topic.name)
        if error is not None:
            out.error_code, out.error_message, out.configs = error.code, error.text, []
        else:
            out.error_message = None
            out.topic_id, out.num_partitions, out.replication_factor = topic_id, partitions, factor
            out.configs = _configs(context, topic) if context.version >= REPLY_CONFIGS_SINCE else []
        response.topics.append(out)
    return response


def failed(context: Context, request: Any, error: ApiError) -> Any:
    r = messages.CreateTopicsResponse
    return r(topics=[r.CreatableTopicResult(name=t.name, error_code=error.code, error_message=error.message) for t in request.topics])


def _configs(context: Context, topic: Any) -> list[Any]:
    given = {c.name: c.value for c in topic.configs}
    return [
        messages.CreateTopicsResponse.CreatableTopicConfigs(
            name=found.key.name,
            value=found.value,
            read_only=False,
            config_source=TOPIC_SOURCE if found.key.name in given else found.source,
            is_sensitive=False,
        )
        for found in describe_topic(context.broker, given)
    ]
