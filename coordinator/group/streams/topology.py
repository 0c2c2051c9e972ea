"""The topology of a Kafka Streams application, as its members say it and as it is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...hashing import java_order

if TYPE_CHECKING:
    Given = messages.StreamsGroupHeartbeatRequest.Topology | messages.StreamsGroupTopologyValue
    GivenSubtopology = (
        messages.StreamsGroupHeartbeatRequest.Subtopology | messages.StreamsGroupTopologyValue.Subtopology
    )
    GivenTopic = messages.StreamsGroupHeartbeatRequest.TopicInfo | messages.StreamsGroupTopologyValue.TopicInfo


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that the application has for itself. 0 partitions: computed; 0 replicas: the broker's default."""

    name: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CopartitionGroup:
    """Topics that must have the same number of partitions, by their places in the lists of a subtopology."""

    sources: tuple[int, ...]
    expressions: tuple[int, ...]
    repartitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A part of a topology that shares no topic partitions with others at run time."""

    id: str
    sources: tuple[str, ...]
    expressions: tuple[str, ...]
    changelogs: tuple[InternalTopic, ...]
    sinks: tuple[str, ...]
    repartitions: tuple[InternalTopic, ...]
    copartition_groups: tuple[CopartitionGroup, ...]

    def inputs(self) -> Iterator[str]:
        """Yields the names of the topics from which tasks read."""
        yield from self.sources
        yield from (topic.name for topic in self.repartitions)


@dataclass(frozen=True)
class Topology:
    """All subtopologies by their ids, in the order in which they were given."""

    epoch: int
    subtopologies: dict[str, Subtopology]
    required: dict[str, None] = field(init=False, compare=False)
    """The topics whose metadata matter, in the order in which Kafka's set has got them."""
    by_input: dict[str, str] = field(init=False, compare=False)
    """The id of the subtopology that reads a topic."""

    def __post_init__(self) -> None:
        inputs = {name: one.id for one in self.in_order() for name in one.inputs()}
        found = (name for one in self.in_order() for name in (*one.inputs(), *(topic.name for topic in one.changelogs)))
        object.__setattr__(self, "required", dict.fromkeys(found))
        object.__setattr__(self, "by_input", inputs)

    def in_order(self) -> Iterator[Subtopology]:
        """Yields the subtopologies in the order in which Kafka's map has them."""
        return (self.subtopologies[name] for name in java_order(self.subtopologies))


def topology_of(given: Given) -> Topology:
    """Reads the topology of a request or a record. Raises ApiError(UNKNOWN_SERVER_ERROR): a subtopology is there
    twice, or the epoch is below 0.
    """
    found: dict[str, Subtopology] = {}
    for one in given.subtopologies:
        if one.subtopology_id in found:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        found[one.subtopology_id] = _subtopology_of(one)
    if given.epoch < 0:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    return Topology(given.epoch, found)


def _subtopology_of(given: GivenSubtopology) -> Subtopology:
    return Subtopology(
        given.subtopology_id,
        tuple(given.source_topics),
        tuple(given.source_topic_regex),
        _internal(given.state_changelog_topics),
        tuple(given.repartition_sink_topics),
        _internal(given.repartition_source_topics),
        tuple(
            CopartitionGroup(
                tuple(group.source_topics), tuple(group.source_topic_regex), tuple(group.repartition_source_topics)
            )
            for group in given.copartition_groups
        ),
    )


def _internal(given: Iterable[GivenTopic]) -> tuple[InternalTopic, ...]:
    return tuple(
        InternalTopic(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            tuple((config.key, config.value) for config in topic.topic_configs),
        )
        for topic in given
    )


def stored(topology: Topology) -> messages.StreamsGroupTopologyValue:
    """Returns the topology as a record has it."""
    v = messages.StreamsGroupTopologyValue

    def topics(of: tuple[InternalTopic, ...]) -> list[messages.StreamsGroupTopologyValue.TopicInfo]:
        return [
            v.TopicInfo(
                name=one.name,
                partitions=one.partitions,
                replication_factor=one.replication_factor,
                topic_configs=[v.TopicConfig(key=key, value=value) for key, value in one.configs],
            )
            for one in of
        ]

    return v(
        epoch=topology.epoch,
        subtopologies=[
            v.Subtopology(
                subtopology_id=one.id,
                source_topics=list(one.sources),
                source_topic_regex=list(one.expressions),
                state_changelog_topics=topics(one.changelogs),
                repartition_sink_topics=list(one.sinks),
                repartition_source_topics=topics(one.repartitions),
                copartition_groups=[
                    v.CopartitionGroup(
                        source_topics=list(group.sources),
                        source_topic_regex=list(group.expressions),
                        repartition_source_topics=list(group.repartitions),
                    )
                    for group in one.copartition_groups
                ],
            )
            for one in topology.subtopologies.values()
        ],
    )
