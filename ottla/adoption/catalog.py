"""What ZooKeeper knew of a cluster: topics, their partitions, and configurations.

It is read from what `kafka-topics --describe` of any release printed, or from ZooKeeper. Pure: `Nodes` read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ..coordinator.metadata.state import MetadataState
from ..protocol import messages
from ..protocol import zookeeper_paths as paths
from ..protocol import zookeeper_values as values
from ..protocol.features import defaults
from ..protocol.zookeeper_json import Malformed
from ..storage.checkpoints import uuid_from_text
from .entities import Nodes, records_of

T = TypeVar("T")
NO_LEADER = -1
_SEPARATOR = re.compile(r"[\t ]+(?=[A-Z][A-Za-z]*:)")
_NEXT_CONFIG = re.compile(r",(?=[a-z][a-z.]*=)")


class CatalogInvalid(ValueError):
    """What was read is not what ZooKeeper, or `kafka-topics --describe`, says."""


@dataclass(slots=True)
class State:
    """A partition. `replicas` and `isr` are ids of brokers; `epoch`: -1 where it is not known."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int = NO_LEADER
    epoch: int = -1


@dataclass(slots=True)
class KnownTopic:
    """A topic. `id`: None before Kafka 2.8; `is_new`: it is made by the adoption."""

    name: str
    id: bytes | None = None
    partitions: dict[int, State] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)
    is_new: bool = False


@dataclass(slots=True)
class Catalog:
    """`brokers`: configurations by the broker's id, "" for all. `doomed`: topics that are marked for deletion.
    `entities`: records of quotas, credentials, rights and tokens, each with the features of the target in mind.
    `committed`: offsets of consumers that committed to ZooKeeper, by group, topic and partition. `refused`: what is
    there and cannot be carried over.
    """

    topics: dict[str, KnownTopic] = field(default_factory=dict)
    brokers: dict[str, dict[str, str]] = field(default_factory=dict)
    cluster_id: str = ""
    next_producer_id: int = 0
    doomed: list[str] = field(default_factory=list)
    entities: list[messages.Struct] = field(default_factory=list)
    committed: dict[tuple[str, str, int], int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


# kafka-topics --describe


def from_described(text: str) -> Catalog:
    """Raises CatalogInvalid."""
    found = Catalog()
    for number, line in enumerate(text.splitlines(), 1):
        fields = dict(_field(one) for one in _SEPARATOR.split(line.strip()) if ":" in one)
        if "Topic" not in fields:
            continue
        try:
            _take(found, fields)
        except (KeyError, ValueError) as error:
            raise CatalogInvalid(f"line {number}: {line.strip()!r}: {error}") from None
    for name in found.doomed:
        del found.topics[name]
    if not found.topics and not found.doomed:
        raise CatalogInvalid("there is no line of `kafka-topics --describe`, such as Topic: t PartitionCount: 1")
    return found


def _field(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    return name, value.strip()


def _take(found: Catalog, fields: dict[str, str]) -> None:
    name = fields["Topic"]
    topic = found.topics.setdefault(name, KnownTopic(name))
    if fields.get("MarkedForDeletion") == "true" and name not in found.doomed:
        found.doomed.append(name)
    if "Partition" in fields:
        leader = fields.get("Leader", "none")
        replicas, isr = _ids(fields["Replicas"]), _ids(fields.get("Isr", ""))
        topic.partitions[int(fields["Partition"])] = State(
            replicas, isr, NO_LEADER if leader == "none" else int(leader)
        )
        return
    if fields.get("TopicId"):
        topic.id = uuid_from_text(fields["TopicId"])
    for pair in _NEXT_CONFIG.split(fields.get("Configs", "")):
        if pair:
            key, _, value = pair.partition("=")
            topic.configs[key] = value


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split(",") if one.strip())


# ZooKeeper


def from_zookeeper(nodes: Nodes) -> Catalog:
    """Raises CatalogInvalid, and what `nodes` raises."""
    found = Catalog()
    cluster = nodes.get(paths.CLUSTER_ID)
    if cluster:  # since 0.10.1
        found.cluster_id = _read(paths.CLUSTER_ID, cluster, values.cluster_id_of)
    found.doomed = nodes.children(paths.DELETE_TOPICS)
    for name in nodes.children(paths.BROKER_TOPICS):
        if name not in found.doomed:
            found.topics[name] = _topic(nodes, name)
    for name in nodes.children(f"{paths.CONFIG}/{paths.BROKERS}"):
        broker = "" if name == paths.DEFAULT_ENTITY else name
        found.brokers[broker] = _configs(nodes, paths.config_path(paths.BROKERS, name))
    found.next_producer_id = _read(paths.PRODUCER_IDS, nodes.get(paths.PRODUCER_IDS), values.next_producer_id)
    state = MetadataState()
    state.features.update(defaults())
    found.entities += records_of(nodes, state, found.refused.append)
    _read_offsets(nodes, found)
    return found


def _read_offsets(nodes: Nodes, found: Catalog) -> None:
    """Reads what consumers committed there."""
    for group in nodes.children(paths.CONSUMERS):
        for topic in nodes.children(paths.group_offsets_path(group)):
            for partition in nodes.children(paths.offsets_path(group, topic)):
                path = f"{paths.offsets_path(group, topic)}/{partition}"
                try:
                    at = group, topic, int(partition)
                    found.committed[at] = values.offset_of(nodes.get(path))
                except ValueError as error:  # Malformed, too
                    found.refused.append(f"{path}: {error}")


def _topic(nodes: Nodes, name: str) -> KnownTopic:
    path = paths.topic_path(name)
    assigned = _read(path, nodes.get(path), values.TopicAssignment.decode)
    found = KnownTopic(name, assigned.topic_id, configs=_configs(nodes, paths.config_path(paths.TOPICS, name)))
    for index, replicas in assigned.partitions.items():
        path = paths.state_path(name, index)
        data = nodes.get(path)
        if data:
            state = _read(path, data, values.PartitionState.decode)
            found.partitions[index] = State(replicas, state.isr, state.leader, state.leader_epoch)
        else:
            found.partitions[index] = State(replicas, ())
    return found


def _configs(nodes: Nodes, path: str) -> dict[str, str]:
    return _read(path, nodes.get(path), values.config_of)


def _read(path: str, data: bytes | None, decode: Callable[[bytes | None], T]) -> T:
    """Raises CatalogInvalid."""
    try:
        return decode(data)
    except Malformed as error:
        raise CatalogInvalid(f"{path}: {error}") from None
