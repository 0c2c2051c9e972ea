"""What tools wrote to ZooKeeper takes effect: topics, partitions, deletions, configurations, quotas, elections and
reassignments become changes of the metadata.
"""

from __future__ import annotations

import logging
from functools import partial

from ...coordinator.metadata import brokers, reassignments, topics
from ...coordinator.metadata.elections import Kind
from ...coordinator.metadata.state import MetadataState
from ...protocol import messages
from ...protocol import zookeeper_paths as paths
from ...protocol import zookeeper_values as values
from ...protocol.errors import ApiError
from ...protocol.zookeeper_values import TopicAssignment
from ..controller.controller import MetadataController
from .agreed import Agreed, merged
from .entities import Entities
from .forms import form_of
from .found import Entity, FoundConfig, FoundTopic, Values
from .publishing import Publisher
from .tree import Seen
from .writing import Put, Remove, Write

logger = logging.getLogger("ottla.kafka.zookeeper.ZooKeeperClient")


class Adopter:
    """`may_delete`: `delete.topic.enable`."""

    def __init__(
        self,
        metadata: MetadataController,
        image: MetadataState,
        publisher: Publisher,
        agreed: Agreed,
        entities: Entities,
        may_delete: bool,
    ) -> None:
        self._metadata = metadata
        self._image = image
        self._publisher = publisher
        self._agreed = agreed
        self._entities = entities
        self._may_delete = may_delete

    async def adopt(self, seen: Seen) -> list[Write]:
        """Makes the changes that are asked for; returns what is to be written to ZooKeeper as an answer."""
        answers: list[Write] = []
        gone = {name for name, found in seen.assignments.items() if self._publisher.seen_topic(name, found)}
        found = {name: one for name, one in seen.assignments.items() if name not in gone}
        if seen.tree is not None:  # what goes when it is empty has no node
            for entity in self._agreed.entities():
                if form_of(entity).goes_when_empty:
                    seen.configs.setdefault(entity, FoundConfig({}, None))
        for entity, config in seen.configs.items():
            if self._is_shown(entity):
                self._publisher.seen_config(entity, config)
        if seen.deletions:
            answers += await self._delete([name for name in seen.deletions if name not in gone])
        await self._create({name: one for name, one in found.items() if self._is_new(name, seen)}, seen)
        await self._grow({name: one.assignment for name, one in found.items()})
        for entity, config in seen.configs.items():
            if config.values is not None and self._is_shown(entity):
                await self._configure(entity, config.values)
        if seen.elections is not None:
            await self._elect(seen.elections)
            answers.append(Remove(paths.PREFERRED_ELECTION))
        if seen.reassignments is not None:
            answers += await self._reassign(seen.reassignments)
        return answers

    def _is_new(self, name: str, seen: Seen) -> bool:
        is_leaving = self._publisher.is_removed(name) or name in seen.deletions
        return name not in self._image.topics and not is_leaving

    def _is_shown(self, entity: Entity) -> bool:
        """Whether what an entity has in ZooKeeper concerns this broker. A topic that is gone here will be removed."""
        kind, name = entity
        return self._entities.is_shown(entity) and not (kind == paths.TOPICS and self._publisher.is_removed(name))

    async def _delete(self, wanted: list[str]) -> list[Write]:
        here = [name for name in wanted if name in self._image.topics and not self._publisher.is_removed(name)]
        if here and self._may_delete:
            ids = [(name, bytes(16)) for name in here]
            await self._metadata.submit(partial(topics.delete_topics, self._metadata.controller, ids))
        elif here:
            logger.warning("delete.topic.enable is false: topics %s are not deleted", ", ".join(here))
            return [Remove(paths.deletion_path(name)) for name in wanted]
        # the publisher removes topics, and then what asked for it
        return [Remove(paths.deletion_path(name)) for name in wanted if not self._publisher.is_removed(name)]

    async def _create(self, wanted: dict[str, FoundTopic], seen: Seen) -> None:
        r = messages.CreateTopicsRequest
        for name, found in wanted.items():
            entity = (paths.TOPICS, name)
            config = seen.configs.pop(entity, None)
            there = (config.values if config is not None else None) or {}
            given = self._known(entity, there)
            new = r.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
            new.configs = [r.CreatableTopicConfig(name=key, value=value) for key, value in given.items()]
            new.assignments = [
                r.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                for index, replicas in found.assignment.partitions.items()
            ]
            created = await self._metadata.submit(partial(topics.create_topics, self._metadata.controller, [new]))
            _, error, topic_id, _, _ = created[0]
            _warn("topic", name, error)
            if error is None:
                self._publisher.adopted(name, topic_id, found)
                self._publisher.agreed_config(entity, there)
                if config is not None:
                    self._publisher.seen_config(entity, config)

    def _known(self, entity: Entity, config: Values) -> Values:
        """Returns what this broker can have of a configuration; the rest stays in ZooKeeper without effect."""
        known = self._entities.taken(entity, config)
        foreign = {key: value for key, value in config.items() if key not in known}
        if foreign:
            logger.warning("%s: %s without effect", paths.entity_path(*entity), ", ".join(sorted(foreign)))
            self._publisher.foreign[entity] = foreign
        else:
            self._publisher.foreign.pop(entity, None)
        return known

    async def _grow(self, assignments: dict[str, TopicAssignment]) -> None:
        r = messages.CreatePartitionsRequest
        for name, assignment in assignments.items():
            topic = self._image.topics.get(name)
            count = 0 if topic is None else self._image.partition_counts[topic.id]
            if not count or len(assignment.partitions) <= count or self._publisher.is_removed(name):
                continue
            more = [list(replicas) for index, replicas in assignment.partitions.items() if index >= count]
            wanted = r.CreatePartitionsTopic(name=name, count=len(assignment.partitions))
            wanted.assignments = [r.CreatePartitionsAssignment(broker_ids=one) for one in more]
            grown = await self._metadata.submit(partial(topics.create_partitions, self._metadata.controller, [wanted]))
            _warn("topic", name, grown[0][1])

    async def _configure(self, entity: Entity, found: Values) -> None:
        """Takes over what a tool has changed in a configuration, unless the broker has changed the same."""
        there, here = self._known(entity, found), self._entities.here(entity)
        states = self._agreed.states(entity)
        before = None if states is None else [self._entities.taken(entity, one) for one in states]
        wanted = merged(before, there, here)
        changes = {key: wanted.get(key) for key in {**here, **wanted} if here.get(key) != wanted.get(key)}
        error = await self._entities.change(entity, changes) if changes else None
        if error is not None:
            logger.warning("what %s has in ZooKeeper is refused: %s", paths.entity_path(*entity), error)
            return
        self._publisher.agreed_config(entity, found)
        if wanted != there:
            self._publisher.differs(entity)

    async def _elect(self, partitions: list[tuple[str, int]]) -> None:
        controller = self._metadata.controller
        await self._metadata.submit(lambda: brokers.elect(controller, Kind.PREFERRED, partitions))

    async def _reassign(self, wanted: dict[tuple[str, int], tuple[int, ...]]) -> list[Write]:
        """Begins what has not begun. The node keeps the partitions that still move, which tools look for there, and
        goes with the last of them.
        """
        r = messages.AlterPartitionReassignmentsRequest
        by_topic: dict[str, messages.AlterPartitionReassignmentsRequest.ReassignableTopic] = {}
        for (name, index), replicas in wanted.items():
            if not self._moves(name, index, replicas):
                topic = by_topic.setdefault(name, r.ReassignableTopic(name=name))
                topic.partitions.append(r.ReassignablePartition(partition_index=index, replicas=list(replicas)))
        if by_topic:
            asked = partial(reassignments.alter, self._metadata.controller, list(by_topic.values()), True)
            for name, errors in await self._metadata.submit(asked):
                for index, error in errors:
                    _warn("the reassignment of", f"{name}-{index}", error)
        left = {place: replicas for place, replicas in wanted.items() if self._moves(*place, replicas)}
        if not left:
            return [Remove(paths.REASSIGN_PARTITIONS)]
        return [] if left == wanted else [Put(paths.REASSIGN_PARTITIONS, values.reassignment(left))]

    def _moves(self, name: str, index: int, replicas: tuple[int, ...]) -> bool:
        """Whether a partition is on its way to these replicas."""
        topic = self._image.topics.get(name)
        partition = None if topic is None else self._image.partitions.get((topic.id, index))
        if partition is None or not partition.is_reassigned:
            return False
        return tuple(one for one in partition.replicas if one not in partition.removing) == replicas


def _warn(what: str, name: str, error: ApiError | None) -> None:
    if error is not None:
        logger.warning("%s %s in ZooKeeper is refused: %s", what, name, error)
