"""What OffsetCommit and TxnOffsetCommit have in common: topics by name or id, and answers for those that are not there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ..protocol.errors import ApiError, Errors
from ..protocol.schema import NO_UUID
from .context import Context


class Kind(NamedTuple):
    """An API's response with its parts, and from which version on its topics have ids."""

    response: Any
    topic: Any
    partition: Any
    ids_since: int


async def commit(context: Context, request: Any, kind: Kind, write: Callable[[], Awaitable[Any]]) -> Any:
    """The reply to a request; `write` commits what is left of it when names, ids and what does not exist have been looked after."""
    merge = None if _is_all_there(context, request, kind) else Merge(context, request, kind)
    if merge is None:
        try:
            response = await write()
        except ApiError as error:
            return failed(context, request, kind, error.code)
        _hide(context, response, kind)
        return response
    if request.topics:
        try:
            merge.take((await write()).topics)
        except ApiError as error:
            merge.fail(error.code)
    return merge.response


def _is_all_there(context: Context, request: Any, kind: Kind) -> bool:
    """Completes names and ids; whether every topic and partition is there, as nearly always."""
    if not request.topics:
        return False
    image, by_id = context.broker.groups.image, context.version >= kind.ids_since
    for topic in request.topics:
        if by_id:
            name, topic_id = image.topic_name(topic.topic_id), topic.topic_id
        else:
            name, topic_id = topic.name, image.topic_id(topic.name)
        if name is None or topic_id is None:
            return False
        count = image.partition_count(topic_id)
        for p in topic.partitions:
            if not 0 <= p.partition_index < count:
                return False
        topic.name, topic.topic_id = name, topic_id
    return True


def _hide(context: Context, response: Any, kind: Kind) -> None:
    """A topic has a name or an id in a version, never both."""
    for topic in response.topics:
        if context.version >= kind.ids_since:
            topic.name = ""
        else:
            topic.topic_id = NO_UUID


def failed(context: Context, request: Any, kind: Kind, code: int) -> Any:
    """The same error for everything."""
    response = kind.response()
    for topic in request.topics:
        parts = [kind.partition(partition_index=p.partition_index, error_code=code) for p in topic.partitions]
        response.topics.append(kind.topic(name=topic.name, topic_id=topic.topic_id, partitions=parts))
    _hide(context, response, kind)
    return response


class Merge:
    """Takes topics and partitions that are not there out of a request, and puts the answers together in its order."""

    def __init__(self, context: Context, request: Any, kind: Kind) -> None:
        self.response = kind.response()
        by_id = context.version >= kind.ids_since
        self._open: list[list[Any]] = []  # the answers that the coordinator gives, by topic
        image = context.broker.groups.image
        known = []
        for topic in request.topics:
            name, topic_id = topic.name, topic.topic_id
            if by_id:
                name = image.topic_name(topic_id)
            else:
                topic_id = image.topic_id(name)
            absent = int(Errors.UNKNOWN_TOPIC_ID if by_id else Errors.UNKNOWN_TOPIC_OR_PARTITION)
            gone = name is None or topic_id is None
            count = -1 if gone else image.partition_count(topic_id)
            out = kind.topic(name="" if by_id else name, topic_id=topic_id if by_id else NO_UUID)
            answers, kept = [], []
            for p in topic.partitions:
                there = 0 <= p.partition_index < count
                code = 0 if there else absent if gone else int(Errors.UNKNOWN_TOPIC_OR_PARTITION)
                answer = kind.partition(partition_index=p.partition_index, error_code=code)
                out.partitions.append(answer)
                if there:
                    answers.append(answer)
                    kept.append(p)
            self.response.topics.append(out)
            if kept:
                topic.name, topic.topic_id, topic.partitions = name, topic_id, kept
                known.append(topic)
                self._open.append(answers)
        request.topics = known

    def take(self, topics: list[Any]) -> None:
        for answers, topic in zip(self._open, topics, strict=True):
            for answer, found in zip(answers, topic.partitions, strict=True):
                answer.error_code = found.error_code

    def fail(self, code: int) -> None:
        for answers in self._open:
            for answer in answers:
                answer.error_code = code
