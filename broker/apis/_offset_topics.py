"""Requests that name partitions of topics, of which some do not exist: the coordinator gets those that exist, and the
reply has all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar


class Topic(Protocol):
    """A topic of a request or a reply."""

    partitions: list[Any]


T = TypeVar("T", bound=Topic)


class Absent(NamedTuple, Generic[T]):
    """A topic of a request, whether the topic itself does not exist, and the partitions of the request that do not."""

    topic: T
    is_whole: bool
    indexes: list[int]


def take_out_absent(topics: Iterable[T], count_of: Callable[[T], int]) -> tuple[list[T], list[Absent[T]]]:
    """Returns the topics that have partitions left once those that do not exist are taken out of them, and what does
    not exist.

    `count_of`: how many partitions a topic has, -1 for a topic that does not exist.
    """
    known, absent = [], []
    for topic in topics:
        count = count_of(topic)
        indexes = [p.partition_index for p in topic.partitions if not 0 <= p.partition_index < count]
        if indexes or count < 0:
            absent.append(Absent(topic, count < 0, indexes))
            topic.partitions = [p for p in topic.partitions if 0 <= p.partition_index < count]
        if topic.partitions:
            known.append(topic)
    return known, absent


def merged(*replies: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    """Returns the topics of several replies in their order, each topic once, with the partitions of all replies."""
    topics: dict[Hashable, T] = {}
    for reply in replies:
        for topic in reply:
            found = topics.setdefault(key(topic), topic)
            if found is not topic:
                found.partitions = [*found.partitions, *topic.partitions]  # which may be encoded already
    return list(topics.values())
