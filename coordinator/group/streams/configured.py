"""A topology with the partition counts of all its topics, which follow from the topics that exist (KIP-1071).

Repartition topics get the count that is given for them, or the largest of the subtopology that writes them, through
chains of subtopologies; topics of a copartition group get the same count; a changelog topic has a partition for each
task of its subtopology.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from ....protocol.errors import ApiError, Errors
from ...hashing import java_order
from ..environment import TopicImage
from .statuses import Code, Status
from .topology import InternalTopic, Subtopology, Topology

NAMES_SHOWN = 3
TASKS_MAX = 100_000  # a few subtopologies that all read a large topic would have more than any application
Counts = dict[str, int]
CountOf = Callable[[str], int | None]
"""The number of partitions of a topic that exists or is to be created."""


class ConfiguredSubtopology(NamedTuple):
    """A subtopology whose internal topics have their numbers of partitions."""

    tasks: int
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    repartitions: dict[str, InternalTopic]
    changelogs: dict[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelogs)


class ConfiguredTopology(NamedTuple):
    """`subtopologies` by their ids, sorted; None if the topics that exist do not fit. `missing`: the internal topics
    that do not exist. `problem`: why no task can be assigned; None if all is ready.
    """

    epoch: int
    subtopologies: dict[str, ConfiguredSubtopology] | None
    missing: tuple[InternalTopic, ...]
    problem: Status | None

    @property
    def is_ready(self) -> bool:
        return self.problem is None

    @property
    def task_count(self) -> int:
        return sum(one.tasks for one in self.subtopologies.values()) if self.subtopologies else 0


class _Unfit(Exception):
    """The topics that exist do not fit the topology."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(detail)
        self.status = Status(code, detail)


def configure(topology: Topology, image: TopicImage) -> ConfiguredTopology:
    """Raises ApiError(STREAMS_INVALID_TOPOLOGY or UNKNOWN_SERVER_ERROR): no topics would fit."""
    copartitioned = [_names_of(one) for one in topology.in_order()]
    try:
        return _configured(topology, image, copartitioned)
    except _Unfit as unfit:
        return ConfiguredTopology(topology.epoch, None, (), unfit.status)


def _configured(topology: Topology, image: TopicImage, copartitioned: list[list[set[str]]]) -> ConfiguredTopology:
    _check_sources(topology, image)
    decided: Counts = {}

    def count_of(name: str) -> int | None:
        found = _existing(image, name)
        return decided.get(name) if found is None else found

    decided.update(_repartition_counts(topology, count_of))
    repartitions = [topic for one in topology.subtopologies.values() for topic in one.repartitions]
    internal = {topic.name for topic in repartitions}
    fixed = {topic.name: _known(topic.name, count_of) for topic in repartitions if topic.partitions}
    fixed_counts = frozenset(fixed.values())
    for groups in copartitioned:
        for names in groups:
            decided.update(_enforced(names, internal, fixed, fixed_counts, count_of))
    decided.update(_changelog_counts(topology, count_of))
    subtopologies = {
        one.id: _with_counts(one, decided, count_of)
        for one in sorted(topology.subtopologies.values(), key=lambda one: one.id)
    }
    if sum(one.tasks for one in subtopologies.values()) > TASKS_MAX:
        raise _invalid(f"The topology has more than {TASKS_MAX} tasks.")
    missing = _missing(topology, subtopologies, image)
    problem = None
    if missing:
        shown = summary([topic.name for topic in missing])
        problem = Status(Code.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {shown}")
    return ConfiguredTopology(topology.epoch, subtopologies, missing, problem)


def summary(names: list[str]) -> str:
    """The first names, and how many there are besides."""
    left = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {left} additional topics" if left > 0 else "")


def _existing(image: TopicImage, name: str) -> int | None:
    topic_id = image.topic_id(name)
    return None if topic_id is None else image.partition_count(topic_id)


def _known(name: str, count_of: CountOf) -> int:
    found = count_of(name)
    if found is None:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    return found


def _invalid(detail: str) -> ApiError:
    return ApiError(Errors.STREAMS_INVALID_TOPOLOGY, detail)


def _names_of(one: Subtopology) -> list[set[str]]:
    """Returns the topics of each copartition group. Raises ApiError(UNKNOWN_SERVER_ERROR): a place is not there."""
    found = []
    for group in one.copartition_groups:
        if not all(0 <= place < len(one.sources) for place in group.sources):
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        if not all(0 <= place < len(one.repartitions) for place in group.repartitions):
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        names = {one.sources[place] for place in group.sources}
        found.append(names | {one.repartitions[place].name for place in group.repartitions})
    return found


def _check_sources(topology: Topology, image: TopicImage) -> None:
    absent = {name for one in topology.subtopologies.values() for name in one.sources if _existing(image, name) is None}
    if absent:
        raise _Unfit(Code.MISSING_SOURCE_TOPICS, f"Source topics {summary(sorted(absent))} are missing.")


# repartition topics


def _repartition_counts(topology: Topology, count_of: CountOf) -> Counts:
    """Returns the number of partitions of each repartition topic."""
    counts = {
        topic.name: topic.partitions for one in topology.in_order() for topic in one.repartitions if topic.partitions
    }
    _pass_on(list(topology.in_order()), counts, count_of)
    if any(topic.name not in counts for one in topology.subtopologies.values() for topic in one.repartitions):
        raise _invalid(
            "Failed to compute number of partitions for all repartition topics, because a repartition source topic "
            "is never used as a sink topic."
        )
    return counts


def _pass_on(order: list[Subtopology], counts: Counts, count_of: CountOf) -> None:
    """Adds the counts of the topics that subtopologies write, which follow from those that they read.

    Kafka goes through all subtopologies again and again, and takes what is known at that moment. Here a subtopology
    is looked at once it reads a topic whose count is known, in the pass and at the place at which Kafka comes to it.
    """
    readers: dict[str, list[int]] = {}
    for place, one in enumerate(order):
        for topic in one.repartitions:
            readers.setdefault(topic.name, []).append(place)
    queue: list[tuple[int, int]] = []
    for place, one in enumerate(order):
        if one.sources or any(topic.name in counts for topic in one.repartitions):
            queue.append((0, place))
    waiting = set(range(len(order)))
    while queue:
        turn, place = heappop(queue)
        if place not in waiting:
            continue
        waiting.remove(place)
        count = _largest_input(order[place], counts, count_of)
        for sink in order[place].sinks:
            if sink not in counts:
                counts[sink] = count
                for reader in readers.get(sink, ()):
                    heappush(queue, (turn if reader > place else turn + 1, reader))
    if any(sink not in counts for one in order for sink in one.sinks):
        raise _invalid(
            "Failed to compute number of partitions for all repartition topics. There may be loops in the topology "
            "that cannot be resolved."
        )


def _largest_input(one: Subtopology, counts: Counts, count_of: CountOf) -> int:
    """Of the topics whose counts are known; there is one."""
    known = [counts[topic.name] for topic in one.repartitions if topic.name in counts]
    return max([*known, *(_known(name, count_of) for name in one.sources)])


# copartition groups


def _enforced(
    names: set[str], internal: set[str], fixed: Counts, fixed_counts: frozenset[int], count_of: CountOf
) -> Counts:
    """Returns the counts of the repartition topics of a copartition group. `fixed`: the repartition topics of the whole
    topology whose counts are given, which Kafka compares with each other if the group has no other topics.
    """
    counts = {name: _known(name, count_of) for name in sorted(names)}
    repartitions = {name: count for name, count in counts.items() if name in internal}
    others = {name: count for name, count in counts.items() if name not in internal}
    if others:
        wanted = _same(frozenset(others.values()), others)
    elif fixed_counts:
        wanted = _same(fixed_counts, repartitions)
    else:
        wanted = max(repartitions.values(), default=0)
    for name in java_order(repartitions):
        if name in fixed and repartitions[name] != wanted:
            raise _Unfit(
                Code.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{repartitions[name]}] of repartition topic [{name}] doesn't match number of "
                f"partitions [{wanted}] of the source topic.",
            )
    return dict.fromkeys(repartitions, wanted)


def _same(counts: frozenset[int], shown: Counts) -> int:
    """Returns the count that all have. `shown`: the topics that are named if they differ."""
    if len(counts) > 1:
        listed = ", ".join(f"{name}={count}" for name, count in sorted(shown.items()))
        raise _Unfit(
            Code.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    return max(counts)


# tasks and changelog topics


def _changelog_counts(topology: Topology, count_of: CountOf) -> Counts:
    counts: Counts = {}
    for one in topology.in_order():
        most = max((_known(name, count_of) for name in one.inputs()), default=None)
        if most is None:
            raise _invalid(f"No source topics found for subtopology {one.id}")
        counts.update((topic.name, most) for topic in one.changelogs)
    return counts


def _with_counts(one: Subtopology, decided: Counts, count_of: CountOf) -> ConfiguredSubtopology:
    tasks = max(_known(name, count_of) for name in one.inputs())

    def topics(of: Iterable[InternalTopic]) -> dict[str, InternalTopic]:
        found: dict[str, InternalTopic] = {}
        for topic in of:
            count = topic.partitions or decided[topic.name]
            repeats = len(dict(topic.configs)) < len(topic.configs)
            if count < 1 or repeats or topic.name in found:
                raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
            found[topic.name] = InternalTopic(topic.name, count, topic.replication_factor, topic.configs)
        return found

    if tasks < 1:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    return ConfiguredSubtopology(tasks, one.sources, one.sinks, topics(one.repartitions), topics(one.changelogs))


def _missing(
    topology: Topology, subtopologies: Mapping[str, ConfiguredSubtopology], image: TopicImage
) -> tuple[InternalTopic, ...]:
    """Returns the internal topics that do not exist, in Kafka's order."""
    internal = {
        topic.name: topic
        for one in subtopologies.values()
        for topics in (one.repartitions, one.changelogs)
        for topic in topics.values()
    }
    for name in java_order(topology.required):
        count, expected = _existing(image, name), internal.get(name)
        if count is not None and expected is not None and count != expected.partitions:
            raise _Unfit(
                Code.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {expected.partitions}, found "
                f"{count}",
            )
    return tuple(internal[name] for name in java_order(internal) if _existing(image, name) is None)
