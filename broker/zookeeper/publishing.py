"""What ZooKeeper shows of the metadata: the nodes of topics, partitions and configurations, from the image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.state import MetadataState
from ...protocol import zookeeper_paths as paths
from ...protocol.zookeeper_paths import Number
from ...protocol.zookeeper_values import PartitionState, TopicAssignment
from .agreed import Agreed, KnownTopic
from .entities import Entities
from .forms import form_of
from .found import Entity, FoundConfig, FoundTopic, Values
from .writing import Append, Put, PutConfig, PutTopic, Remove, RemoveConfig, Write, Written


@dataclass(slots=True)
class Unconfirmed:
    """What the writes of a round make, once they are done: ids of topics by name, and configurations."""

    topics: dict[str, bytes] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    configs: dict[Entity, Values] = field(default_factory=dict)


class Pending(NamedTuple):
    """What is not written yet, in the order in which it came."""

    removed: dict[str, None]  # names of topics
    created: dict[str, None]
    sized: dict[str, None]  # those whose partitions, or their replicas, changed
    moved: dict[tuple[str, int], None]  # partitions whose leader or in-sync replicas changed
    configs: dict[Entity, None]


class Publisher:
    """`foreign`: values of ZooKeeper's configurations that this broker does not know, and leaves."""

    def __init__(self, image: MetadataState, release: Number, agreed: Agreed, entities: Entities) -> None:
        self._image = image
        self._release = release
        self._agreed = agreed
        self._entities = entities
        self.foreign: dict[Entity, Values] = {}
        self._assignments: dict[str, bytes] = {}  # as ZooKeeper has them, in the form of this release
        self._found: dict[str, frozenset[int]] = {}  # the partitions that were read there
        self._configs: dict[Entity, FoundConfig] = {}
        self._pending = Pending({}, {}, {}, {}, {})
        self._unconfirmed = Unconfirmed()

    def all(self) -> Iterator[None]:
        """Notes everything, in steps: at the start, and in a new session."""
        for name in list(self._image.topics):
            self._pending.created[name] = None
            yield
        for name, known in list(self._agreed.topics.items()):
            topic = self._image.topics.get(name)
            if topic is None or topic.id != known.id:
                self._pending.removed[name] = None
            yield
        for entity in self._entities.all_but_topics():
            self.differs(entity)
            yield

    def changed(self, delta: MetadataDelta) -> Iterator[None]:
        """Notes what a commit has changed, in steps."""
        pending, names = self._pending, self._image.topic_names
        for topic in delta.removed:
            if topic.name in self._agreed.topics:
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
        for entity in self._entities.changed(delta):
            self.differs(entity)
            yield

    # what is there

    def seen_topic(self, name: str, found: FoundTopic) -> bool:
        """Notes the node of a topic; returns whether it is of a topic that is gone here, and will be removed."""
        topic, known = self._image.topics.get(name), self._agreed.topics.get(name)
        is_known = known is not None and known.created in (None, found.created)
        if known is not None and is_known and (topic is None or topic.id != known.id):
            self._agreed.note_topic(name, KnownTopic(known.id, found.created))
            self._pending.removed[name] = None
            if topic is not None:
                self._pending.created[name] = None
            return True
        self._pending.removed.pop(name, None)
        if known is not None and not is_known:  # a tool has made another one
            self._agreed.note_topic(name, None)
        if topic is not None:
            self.adopted(name, topic.id, found)
        return False

    def adopted(self, name: str, topic_id: bytes, found: FoundTopic) -> None:
        """A topic is here as it is there, or is going to be."""
        self._assignments[name] = found.assignment.encode(self._release)
        self._found[name] = frozenset(found.assignment.partitions)
        self._agreed.note_topic(name, KnownTopic(topic_id, found.created))

    def seen_config(self, entity: Entity, found: FoundConfig) -> None:
        """Notes what ZooKeeper has, which need not be written there."""
        self._configs[entity] = found

    def agreed_config(self, entity: Entity, there: Values) -> None:
        """What ZooKeeper has has taken effect here."""
        self._agreed.note_config(entity, there)

    def differs(self, entity: Entity) -> None:
        """A configuration is to be written, if ZooKeeper gets it."""
        if self._entities.is_shown(entity):
            self._pending.configs[entity] = None

    def forget(self) -> None:
        """ZooKeeper may have something else: what is published next is written."""
        self._assignments.clear()
        self._found.clear()
        self._configs.clear()
        self._unconfirmed = Unconfirmed()

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

    def confirm(self, written: Written) -> None:
        """The writes of this round are done."""
        done, self._unconfirmed = self._unconfirmed, Unconfirmed()
        for name in done.removed:
            self._agreed.note_topic(name, None)
            self._agreed.note_config((paths.TOPICS, name), {})
        for name, topic_id in done.topics.items():
            if name in written.topics:
                self._agreed.note_topic(name, KnownTopic(topic_id, written.topics[name]))
        for entity, config in done.configs.items():
            if config or not form_of(entity).goes_when_empty:
                self._configs[entity] = FoundConfig(config, written.versions.get(entity))
            else:
                self._configs.pop(entity, None)
            self._agreed.note_config(entity, config)

    def writes(self, pending: Pending, controller_epoch: int) -> Iterator[Write | None]:
        """Yields what is to be written, and None after each step of work."""
        for name in pending.removed:
            self._assignments.pop(name, None)
            self._found.pop(name, None)
            self._configs.pop((paths.TOPICS, name), None)
            self.foreign.pop((paths.TOPICS, name), None)
            self._unconfirmed.removed.append(name)
            yield Remove(paths.topic_path(name))
            yield Remove(paths.config_path(paths.TOPICS, name))
            yield Remove(paths.deletion_path(name))
        for name in pending.created:
            is_new = name not in self._agreed.topics or name in pending.removed
            yield from self._put_config((paths.TOPICS, name), is_new)
            yield from self._topic(name)
            yield from self._partitions(name, controller_epoch)
        for name in pending.sized:
            if name not in pending.created:
                yield from self._topic(name)
                yield from self._partitions(name, controller_epoch)
        for name, index in pending.moved:
            if name not in pending.created and name not in pending.sized:
                yield from self._state(name, index, controller_epoch)
        for kind, name in pending.configs:
            if kind != paths.TOPICS or (name not in pending.created and name in self._image.topics):
                yield from self._put_config((kind, name))

    def _put_config(self, entity: Entity, is_new: bool = False) -> Iterator[Write]:
        """Yields a configuration and, unless it is one of a new topic, what says that it has changed."""
        before = self._configs.get(entity)
        there = (None if before is None else before.values) or {}
        here = self._entities.sealed(entity, self._entities.here(entity), there)
        config = {**self.foreign.get(entity, {}), **here}
        if config == before.values if before is not None else not config and not is_new:
            return
        self._unconfirmed.configs[entity] = config
        states = self._agreed.states(entity) or ({},)
        self._agreed.note_config(entity, *(one for one in states if one != config), config)
        version = None if before is None else before.version
        if config or not form_of(entity).goes_when_empty:
            yield PutConfig(entity, form_of(entity).value_of(config, self._release), version, is_new)
        elif version is not None:
            yield RemoveConfig(entity, version)
        if not is_new:
            yield Append(*form_of(entity).change_of(entity, self._release))

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
            self._unconfirmed.topics[name] = topic.id
            if name not in self._agreed.topics:
                self._agreed.note_topic(name, KnownTopic(topic.id, None))
            yield PutTopic(name, data, self._found.get(name, frozenset()).union(parts))
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
