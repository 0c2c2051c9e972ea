"""Helpers of OffsetCommit and TxnOffsetCommit: topics by name or id,
and replies for topics and partitions that do not exist.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_replies import answers_with_error
from ..net.context import Context
from ..security.authorization import Check
from ._offset_topics import Topic, merged, take_out_absent

if TYPE_CHECKING:
    from ...coordinator.group.offsets.commit import CommittedTopic

    Request = messages.OffsetCommitRequest | messages.TxnOffsetCommitRequest
    Response = TypeVar("Response", messages.OffsetCommitResponse, messages.TxnOffsetCommitResponse)
else:
    Response = TypeVar("Response")


@dataclass(frozen=True, slots=True)
class Kind(Generic[Response]):
    """The response class of an API with its parts, and the first version whose topics have ids."""

    response: Callable[..., Response]
    topic: Callable[..., Topic]
    partition: Callable[..., object]
    ids_since: int

    def by_id(self, context: Context) -> bool:
        """Whether topics have ids instead of names in the version of the request."""
        return context.version >= self.ids_since

    def key(self, context: Context) -> Callable[[object], Hashable]:
        """Returns the key of a topic in a reply: its id or its name."""
        return attrgetter("topic_id" if self.by_id(context) else "name")

    def identity(self, context: Context, topic: CommittedTopic) -> tuple[str | None, bytes | None]:
        """Returns the name and the id of a topic of the request; None for the part that cannot be resolved."""
        image = context.broker.groups.image
        if self.by_id(context):
            return image.topic_name(topic.topic_id), topic.topic_id
        return topic.name, image.topic_id(topic.name)


def commit(
    context: Context,
    request: Request,
    kind: Kind[Response],
    write: Callable[[], Awaitable[Response]],
) -> Awaitable[Response]:
    """Returns the reply to a request. `write` commits the part of the request whose topics and partitions exist. Raises
    ApiError as `write` does.
    """
    return write() if is_all_there(context, request, kind) else _commit_rest(context, request, kind, write)


async def _commit_rest(
    context: Context,
    request: Request,
    kind: Kind[Response],
    write: Callable[[], Awaitable[Response]],
) -> Response:
    """Slow path of `commit`: some topics or partitions do not exist."""
    absent = _take_out_absent(context, request, kind)
    if not request.topics:
        return kind.response(topics=absent)
    try:
        response = await write()
    except ApiError as error:
        response = kind.response(topics=errors_of(context, request.topics, error))
    if absent:
        response.topics = merged(absent, response.topics, key=kind.key(context))
    return response


def is_all_there(context: Context, request: Request, kind: Kind[Response]) -> bool:
    """Fills in missing names and ids. Returns whether all topics and partitions exist and no topic is without
    partitions, as is usual.
    """
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


async def narrowed(
    context: Context, request: Request, kind: Kind[Response], check: Check
) -> Callable[[Response], Response] | None:
    """Takes topics that the principal may not read out of a request; topics with an unknown id stay in it. Returns what
    adds their errors to the reply.
    """
    asked: list[CommittedTopic] = list(request.topics)
    allowed, refused = await check.parted(context, asked, lambda topic: kind.identity(context, topic)[0] or None)
    if not refused:
        return None
    request.topics = allowed  # type: ignore[assignment]

    def complete(response: Response) -> Response:
        errors = errors_of(context, refused, ApiError(check.code))
        response.topics = merged(errors, response.topics, key=kind.key(context))
        return response

    return complete


def errors_of(context: Context, topics: Iterable[CommittedTopic], error: ApiError) -> list[Any]:
    """Returns the part of the reply for topics with the same error for every partition."""
    (partitions,) = context.api.errors
    return answers_with_error(context.api, context.version, partitions, topics, error)


def _take_out_absent(context: Context, request: Request, kind: Kind[Response]) -> list[Any]:
    """Takes topics and partitions that do not exist out of a request, and topics without any partition; returns the
    topics of their reply.
    """
    by_id, image = kind.by_id(context), context.broker.groups.image
    identities = {id(topic): kind.identity(context, topic) for topic in request.topics}

    def count_of(topic: CommittedTopic) -> int:
        name, topic_id = identities[id(topic)]
        return -1 if name is None or topic_id is None else image.partition_count(topic_id)

    topics: list[Any] = request.topics
    request.topics, absent = take_out_absent(topics, count_of)
    for topic in request.topics:
        name, topic_id = identities[id(topic)]
        assert name is not None  # the topic exists
        assert topic_id is not None
        topic.name, topic.topic_id = name, topic_id
    answers = []
    for topic, is_whole, indexes in absent:
        code = int(Errors.UNKNOWN_TOPIC_ID if is_whole and by_id else Errors.UNKNOWN_TOPIC_OR_PARTITION)
        named = {"name": "", "topic_id": topic.topic_id} if by_id else {"name": topic.name}
        answers.append(
            kind.topic(
                **named, partitions=[kind.partition(partition_index=index, error_code=code) for index in indexes]
            )
        )
    return merged(answers, key=kind.key(context))
