"""Helper of the five APIs of the share coordinator: one request names many share-partitions of a group, and each has
its own result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from ...coordinator.share.state import PartitionKey
from ...protocol.errors import ApiError, WithError
from ..error_places import COORDINATOR, Place, Text, array, codes
from ..later import Later
from ..net.context import Context
from ..steps import Pace, slices
from ._groups import OF_COORDINATOR

STEP_WRITES = 64
Given = TypeVar("Given")
Out = TypeVar("Out", bound=WithError)


class NamedPartition(Protocol):
    """A partition of a request."""

    partition: int


Part = TypeVar("Part", bound=NamedPartition)
PartOf_co = TypeVar("PartOf_co", bound=NamedPartition, covariant=True)


def each_partition(more: str, text: Text = Text.NOTHING) -> Place:
    """Returns the place of a share-partition's error. `more`: errors of one API, next to those that all five have."""
    return Place(
        "each partition",
        COORDINATOR
        + codes(
            "UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST "
            f"KAFKA_STORAGE_ERROR {more}"
        ),
        (
            array("results", "topics", topic_id="topic_id"),
            array("partitions", "partitions", partition="partition"),
        ),
        text=text,
    )


class Topic(Protocol[PartOf_co]):
    """A topic of a request."""

    topic_id: bytes

    @property
    def partitions(self) -> Sequence[PartOf_co]: ...


class Request(Protocol[PartOf_co]):
    """A request of the five."""

    group_id: str

    @property
    def topics(self) -> Sequence[Topic[PartOf_co]]: ...


class TopicResult(Protocol):
    """A topic of a response."""

    partitions: list[Any]


Result = TypeVar("Result", bound=TopicResult)


def refuse(
    request: Request[Part], error: ApiError, topic_result: Callable[..., Result], partition_result: Callable[..., Out]
) -> list[Result]:
    """Returns the results of a request with the same error for every partition."""
    error = ApiError(error.code)  # Kafka shows its own text of the code
    return [
        topic_result(
            topic_id=topic.topic_id,
            partitions=[error.put_into(partition_result(partition=part.partition)) for part in topic.partitions],
        )
        for topic in request.topics
    ]


def _words(api: str) -> str:
    """Returns what an API does: `read share group state`."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", api).lower()


async def answer(
    context: Context,
    request: Request[Part],
    call: Callable[[PartitionKey, Part], Later[Given]],
    topic_result: Callable[..., Result],
    partition_result: Callable[..., Out],
    fill: Callable[[Out, Given], None] = lambda out, given: None,
    *,
    needs_partitions: bool = True,
) -> list[Result]:
    """Returns the results of a request. A request without a group or topics has none, as in Kafka, and if it
    `needs_partitions`, neither has one of which a topic has no partitions.

    `call` is made for each share-partition with its part of the request, for those of a step at once; `fill` writes its
    result into the part of the reply. Each part of a request is carried out. A share-partition that has several has the
    result of the last, as in Kafka, whose ShareCoordinatorService keeps them by partition.
    """
    is_empty = needs_partitions and any(not topic.partitions for topic in request.topics)
    if is_empty or not request.group_id or not request.topics:
        return []
    results: dict[bytes, dict[int, Out]] = {}
    parts = [(bytes(topic.topic_id), part) for topic in request.topics for part in topic.partitions]
    pace = Pace(context.broker.turn, STEP_WRITES)
    await context.broker.share_states.open_all()
    for step in slices(parts, STEP_WRITES):
        outcomes: list[Given | ApiError] = await Later.all(
            call(PartitionKey(request.group_id, topic_id, part.partition), part) for topic_id, part in step
        )
        for (topic_id, part), outcome in zip(step, outcomes, strict=True):
            out = partition_result(partition=part.partition)
            if isinstance(outcome, ApiError):
                outcome.put_into(out)
                if outcome.code in OF_COORDINATOR:  # not an error of the share-partition
                    out.error_message = f"Unable to {_words(context.api.name)}: {out.error_message}"
            else:
                fill(out, outcome)
            results.setdefault(topic_id, {})[part.partition] = out
        if pace.is_over(len(step)):
            await pace.rest()
    return [topic_result(topic_id=topic_id, partitions=list(found.values())) for topic_id, found in results.items()]
