"""CreatePartitions, versions 0 to 3: more partitions for topics that exist (KIP-195). 2 flexible; 3 quota errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...coordinator.metadata import topics
from ...protocol import messages
from ...protocol.errors import ApiError
from ..context import Context


async def handle(context: Context, request: Any) -> Any:
    metadata = context.broker.metadata
    return _told(await metadata.submit(lambda: topics.create_partitions(metadata.controller, request), request.timeout_ms))


def failed(context: Context, request: Any, error: ApiError) -> Any:
    return _told((topic.name, error) for topic in request.topics)


def _told(outcome: Iterable[tuple[str, ApiError | None]]) -> Any:
    r = messages.CreatePartitionsResponse
    response = r()
    for name, error in outcome:
        out = r.CreatePartitionsTopicResult(name=name)
        if error is not None:
            out.error_code, out.error_message = error.code, error.message
        response.results.append(out)
    return response
