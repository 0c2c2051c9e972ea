"""DeleteTopics, versions 1 to 6: topics by name, from 6 on by id too (KIP-516).

3 a cluster that forbids it says so; 4 flexible; 5 error messages.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...coordinator.metadata import topics
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.schema import NO_UUID
from ..context import Context


async def handle(context: Context, request: Any) -> Any:
    if not context.broker.config["delete.topic.enable"]:
        raise ApiError(Errors.TOPIC_DELETION_DISABLED if context.version >= 3 else Errors.INVALID_REQUEST)
    r = messages.DeleteTopicsResponse
    wanted = _wanted(context, request)
    good = [(name, topic_id) for name, topic_id, error in wanted if error is None]
    metadata = context.broker.metadata
    outcome = await metadata.submit(lambda: topics.delete_topics(metadata.controller, good), request.timeout_ms)
    responses = [
        r.DeletableTopicResult(name=name, topic_id=topic_id, error_code=error.code, error_message=error.text)
        for name, topic_id, error in wanted
        if error is not None
    ]
    for name, topic_id, error in outcome:
        out = r.DeletableTopicResult(name=name, topic_id=topic_id)
        if error is not None:
            out.error_code, out.error_message = error.code, error.text
        responses.append(out)
    return r(responses=responses)


def failed(context: Context, request: Any, error: ApiError) -> Any:
    r = messages.DeleteTopicsResponse
    return r(responses=[r.DeletableTopicResult(name=name, topic_id=i, error_code=error.code) for name, i in _pairs(context, request)])


def _pairs(context: Context, request: Any) -> list[tuple[str | None, bytes]]:
    """The names and ids of a request."""
    if context.version < 6:
        return [(name, NO_UUID) for name in request.topic_names]
    return [(t.name, t.topic_id) for t in request.topics]


def _wanted(context: Context, request: Any) -> list[tuple[str | None, bytes, ApiError | None]]:
    """Names and ids, and what is wrong with those that cannot be meant; one that is there twice is told once."""
    pairs = Counter(_pairs(context, request))
    found: list[tuple[str | None, bytes, ApiError | None]] = []
    for (name, topic_id), count in pairs.items():
        if (name is None) is (topic_id == NO_UUID):
            text = "Neither topic name nor id were specified." if name is None else "You may not specify both topic name and topic id."
            found += [(name, topic_id, ApiError(Errors.INVALID_REQUEST, text))] * count
        elif count > 1:
            found.append((name, topic_id, ApiError(Errors.INVALID_REQUEST, f"Duplicate topic {'id' if name is None else 'name'}.")))
        else:
            found.append((name, topic_id, None))
    return found
