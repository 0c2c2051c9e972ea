"""What ZooKeeper shows of the metadata: the nodes of topics, partitions, configurations and quotas, from the image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.quotas import CLIENT_ID, USER
from ...coordinator.metadata.state import TOPIC, MetadataState, Quota
from ...protocol import zookeeper_paths as paths
from ...protocol import zookeeper_values as values
from ...protocol.zookeeper_paths import Number
from ...protocol.zookeeper_values import PartitionState, TopicAssignment
from .tree import Entity
from .writing import Append, Put, Remove, Write


def quota_entity(quota: Quota) -> Entity | None:
    """Returns the entity that a quota belongs to; None for those of addresses, which ZooKeeper does not get."""
    named = {kind: paths.DEFAULT_ENTITY if name is None else paths.sanitized(name) for kind, name in quota.entity}
    if set(named) == {USER, CLIENT_ID}:
        return paths.USERS, f"{named[USER]}/{paths.CLIENTS}/{named[CLIENT_ID]}"
    if USER in named:
        return paths.USERS, named[USER]
    return (paths.CLIENTS, named[CLIENT_ID]) if CLIENT_ID in named else None


def quota_text(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


class Pending(NamedTuple):
    """What is not written yet, in the order in which it came."""

    removed: dict[str, None]  # names of topics
    created: dict[str, None]
    sized: dict[str, None]  # those whose partitions, or their replicas, changed
    moved: dict[tuple[str, int], None]  # partitions whose leader or in-sync replicas changed
    configs: dict[Entity, None]


class Publisher:
    """`foreign`: values of ZooKeeper's configurations that this broker does not know, and leaves."""

    def __init__(self, image: MetadataState, release: Number) -> None:
        self._image = image
        self._release = release
        self.foreign: dict[Entity, dict[str, str]] = {}
        self._assignments: dict[str, bytes] = {}  # as ZooKeeper has them, in the form of this release
        self._found: dict[str, frozenset[int]] = {}  # the partitions that were read there
        self._configs: dict[Entity, dict[str, str]] = {}
        self._pending = Pending({}, {}, {}, {}, {})

    def all(self) -> Iterator[None]:
        """Notes everything, in steps: at the start, and in a new session."""
        for name in list(self._image.topics):
            self._pending.created[name] = None
            yield
        self._pending.configs.update(dict.fromkeys(self.quotas()))

    def changed(self, delta: MetadataDelta) -> Iterator[None]:
        """Notes what a commit has changed, in steps."""
        pending, names = self._pending, self._image.topic_names
        for topic in delta.removed:
            pending.removed[topic.name] = None
            for table in (pending.created, pending.sized):
                table.pop(topic.name, None)
            yield
        for name in delta.created.values():
            pending.created[name] = None
            yield
        for topic_id, _ in delta.new_partitions:
            pending.sized[names[topic_id]] = None
            yield
        for topic_id, index in delta.changed_partitions:
            pending.moved[names[topic_id], index] = None
            pending.sized[names[topic_id]] = None
            yield
        for kind, name in delta.configs:
            if kind == TOPIC and name in self._image.topics:
                pending.configs[paths.TOPICS, name] = None
            yield
        for quota in delta.quotas:
            entity = quota_entity(quota)
            if entity is not None:
                pending.configs[entity] = None

    def seen(self, assignments: Mapping[str, TopicAssignment], configs: Mapping[Entity, dict[str, str]]) -> None:
        """Notes what ZooKeeper has, which need not be written there."""
        self._assignments |= {name: one.encode(self._release) for name, one in assignments.items()}
        self._found |= {name: frozenset(one.partitions) for name, one in assignments.items()}
        self._configs |= configs

    def forget(self) -> None:
        """ZooKeeper may have something else: what is published next is written."""
        self._assignments.clear()
        self._configs.clear()

    def is_removed(self, topic: str) -> bool:
        """Whether a topic is gone here, and not yet there."""
        return topic in self._pending.removed

    def take(self) -> Pending:
        """Returns what is pending, which is pending no more."""
        taken, self._pending = self._pending, Pending({}, {}, {}, {}, {})
        return taken

    def give_back(self, taken: Pending) -> None:
        """Notes again what could not be written."""
        newer, self._pending = self._pending, taken
        self._pending.removed.update(newer.removed)
        self._pending.created.update(newer.created)
        self._pending.sized.update(newer.sized)
        self._pending.moved.update(newer.moved)
        self._pending.configs.update(newer.configs)

    def writes(self, pending: Pending, controller_epoch: int) -> Iterator[Write | None]:
        """Yields what is to be written, and None after each step of work."""
        for name in pending.removed:
            self._assignments.pop(name, None)
            self._found.pop(name, None)
            self._configs.pop((paths.TOPICS, name), None)
            yield Remove(paths.topic_path(name))
            yield Remove(paths.config_path(paths.TOPICS, name))
            yield Remove(paths.deletion_path(name))
        for name in pending.created:
            yield from self._put_config((paths.TOPICS, name), self._config(name), is_new=True)
            yield from self._topic(name)
            yield from self._partitions(name, controller_epoch)
        for name in pending.sized:
            if name not in pending.created:
                yield from self._topic(name)
                yield from self._partitions(name, controller_epoch)
        for name, index in pending.moved:
            if name not in pending.created and name not in pending.sized:
                yield from self._state(name, index, controller_epoch)
        quotas = self.quotas() if any(kind != paths.TOPICS for kind, _ in pending.configs) else {}
        for kind, name in pending.configs:
            if kind != paths.TOPICS:
                config = {**quotas.get((kind, name), {}), **self.foreign.get((kind, name), {})}
            elif name in pending.created or name not in self._image.topics:
                continue
            else:
                config = self._config(name)
            yield from self._put_config((kind, name), config)

    def _put_config(self, entity: Entity, config: dict[str, str], is_new: bool = False) -> Iterator[Write]:
        """Yields a configuration and, unless it is one of a new topic, what says that it has changed."""
        if self._configs.get(entity) == config:
            return
        self._configs[entity] = config
        yield Put(paths.config_path(*entity), values.config(config))
        if not is_new:
            change = values.config_change(*entity, self._release)
            yield Append(f"{paths.CONFIG_CHANGES}/{paths.CONFIG_CHANGE_PREFIX}", change)

    def _topic(self, name: str) -> Iterator[Write | None]:
        topic = self._image.topics.get(name)
        if topic is None:
            return
        parts = {one.index: one for one in self._image.partitions_of(topic.id)}
        assignment = TopicAssignment(
            {index: one.replicas for index, one in parts.items()},
            topic.id,
            {index: one.adding for index, one in parts.items() if one.adding},
            {index: one.removing for index, one in parts.items() if one.removing},
        )
        data = assignment.encode(self._release)
        if self._assignments.get(name) != data:
            self._assignments[name] = data
            yield Put(paths.topic_path(name), data, self._found.get(name, frozenset()).union(parts))
        yield Put(paths.partitions_path(name), None)

    def _partitions(self, name: str, controller_epoch: int) -> Iterator[Write | None]:
        topic = self._image.topics.get(name)
        for index in range(self._image.partition_counts.get(topic.id, 0) if topic is not None else 0):
            yield Put(f"{paths.partitions_path(name)}/{index}", None)
            yield from self._state(name, index, controller_epoch)

    def _state(self, name: str, index: int, controller_epoch: int) -> Iterator[Write | None]:
        yield None
        topic = self._image.topics.get(name)
        found = None if topic is None else self._image.partitions.get((topic.id, index))
        if found is not None:
            state = PartitionState(found.leader, found.leader_epoch, found.isr, controller_epoch)
            yield Put(paths.state_path(name, index), state.encode())

    def _config(self, name: str) -> dict[str, str]:
        return {**self._image.config_of(TOPIC, name), **self.foreign.get((paths.TOPICS, name), {})}

    def quotas(self) -> dict[Entity, dict[str, str]]:
        """Returns the quotas of users and clients, by key, as ZooKeeper has them."""
        found: dict[Entity, dict[str, str]] = {}
        for quota, record in self._image.quotas.items():
            entity = quota_entity(quota)
            if entity is not None:
                found.setdefault(entity, {})[quota.key] = quota_text(record.value)
        return found


def entity_of(kind: str, name: str) -> tuple[tuple[str, str | None], ...]:
    """Returns the entity of client quotas that a node's name says."""

    def named(part: str) -> str | None:
        return None if part == paths.DEFAULT_ENTITY else paths.desanitized(part)

    if kind == paths.CLIENTS:
        return ((CLIENT_ID, named(name)),)
    user, separator, client = name.partition(f"/{paths.CLIENTS}/")
    if separator:
        return ((CLIENT_ID, named(client)), (USER, named(user)))
    return ((USER, named(user)),)
