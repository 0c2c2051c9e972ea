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

    def by_id(self, context: Context) -> bool:
        """Whether topics have ids in a request's version, and no names."""
        return context.version >= self.ids_since

    def identity(self, context: Context, topic: Any) -> tuple[str | None, bytes | None]:
        """The name and the id of a topic of a request; None for what is not there."""
        image = context.broker.groups.image
        if self.by_id(context):
            return image.topic_name(topic.topic_id), topic.topic_id
        return topic.name, image.topic_id(topic.name)


def commit(context: Context, request: Any, kind: Kind, write: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
    """The reply to a request; `write` commits what is left of it when names, ids and what does not exist have been looked after. ApiError."""
    return write() if _is_all_there(context, request, kind) else _commit_rest(context, request, kind, write)


async def _commit_rest(context: Context, request: Any, kind: Kind, write: Callable[[], Awaitable[Any]]) -> Any:
    """Of what is not all there."""
    absent = _take_out_absent(context, request, kind)
    if not request.topics:
        return absent
    try:
        response = await write()
    except ApiError as error:
        response = failed(context, request, kind, error)
    return _merged(context, absent, response, kind) if absent.topics else response


def _is_all_there(context: Context, request: Any, kind: Kind) -> bool:
    """Completes names and ids; whether every topic and partition is there, and none without partitions, as nearly always."""
    if not request.topics:
        return False
    for topic in request.topics:
        name, topic_id = kind.identity(context, topic)
        if name is None or topic_id is None or not topic.partitions:
            return False
        count = context.broker.groups.image.partition_count(topic_id)
        for p in topic.partitions:
            if not 0 <= p.partition_index < count:
                return False
        topic.name, topic.topic_id = name, topic_id
    return True


def failed(context: Context, request: Any, kind: Kind, error: ApiError) -> Any:
    """The same error for everything."""
    response = kind.response()
    for topic in request.topics:
        named = {"topic_id": topic.topic_id} if kind.by_id(context) else {"name": topic.name}
        parts = [kind.partition(partition_index=p.partition_index, error_code=error.code) for p in topic.partitions]
        response.topics.append(kind.topic(**named, partitions=parts))
    return response


def _take_out_absent(context: Context, request: Any, kind: Kind) -> Any:
    """Takes topics and partitions that are not there out of a request, and topics without any partition; the reply that they get.

    It has a topic once, as Kafka's has.
    """
    response, by_id = kind.response(), kind.by_id(context)
    topics: dict[Any, Any] = {}
    known = []
    for topic in request.topics:
        name, topic_id = kind.identity(context, topic)
        count = -1 if name is None or topic_id is None else context.broker.groups.image.partition_count(topic_id)
        gone = count < 0
        kept = [p for p in topic.partitions if 0 <= p.partition_index < count]
        refused = [p.partition_index for p in topic.partitions if not 0 <= p.partition_index < count]
        if kept:
            topic.name, topic.topic_id, topic.partitions = name, topic_id, kept
            known.append(topic)
        code = int(Errors.UNKNOWN_TOPIC_ID if gone and by_id else Errors.UNKNOWN_TOPIC_OR_PARTITION)
        if refused or gone:
            key = topic_id if by_id else name
            if key not in topics:
                topics[key] = kind.topic(name="" if by_id else name, topic_id=topic_id if by_id else NO_UUID)
                response.topics.append(topics[key])
            topics[key].partitions += [kind.partition(partition_index=index, error_code=code) for index in refused]
    request.topics = known
    return response


def _merged(context: Context, absent: Any, response: Any, kind: Kind) -> Any:
    """The coordinator's answers behind those for what is not there, a topic of both once."""
    by_id = kind.by_id(context)
    topics = {topic.topic_id if by_id else topic.name: topic for topic in absent.topics}
    for topic in response.topics:
        found = topics.setdefault(topic.topic_id if by_id else topic.name, topic)
        if found is topic:
            absent.topics.append(topic)
        else:
            found.partitions += topic.partitions
    return absent
