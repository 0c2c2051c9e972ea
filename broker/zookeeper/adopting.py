"""What tools wrote to ZooKeeper takes effect: topics, partitions, deletions, configurations, quotas, elections and
reassignments become changes of the metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial

from ...coordinator.metadata import brokers, configs, quotas, reassignments, topics
from ...coordinator.metadata.elections import Kind
from ...coordinator.metadata.quotas import Alteration
from ...coordinator.metadata.state import TOPIC, MetadataState
from ...coordinator.shard import Result
from ...protocol import messages
from ...protocol import zookeeper_paths as paths
from ...protocol import zookeeper_values as values
from ...protocol.config_def import ConfigInvalid, ConfigKey
from ...protocol.errors import ApiError
from ...protocol.zookeeper_values import TopicAssignment
from ..controller.controller import MetadataController
from .publishing import Publisher, entity_of, quota_text
from .tree import Entity, Seen
from .writing import Put, Remove, Write

logger = logging.getLogger("ottla.kafka.zookeeper.ZooKeeperClient")
QUOTAS = {
    quotas.PRODUCER_BYTE_RATE,
    quotas.CONSUMER_BYTE_RATE,
    quotas.REQUEST_PERCENTAGE,
    quotas.CONTROLLER_MUTATION_RATE,
}


class Adopter:
    """`known`: the keys that topics may have. `may_delete`: `delete.topic.enable`."""

    def __init__(
        self,
        metadata: MetadataController,
        image: MetadataState,
        publisher: Publisher,
        known: Mapping[str, ConfigKey],
        may_delete: bool,
    ) -> None:
        self._metadata = metadata
        self._image = image
        self._publisher = publisher
        self._known_keys = known
        self._may_delete = may_delete

    async def adopt(self, seen: Seen) -> list[Write]:
        """Makes the changes that are asked for; returns what is to be written to ZooKeeper as an answer."""
        answers: list[Write] = []
        self._publisher.seen(seen.assignments, seen.configs)
        if seen.deletions:
            answers += await self._delete(seen)
        await self._create({name: one for name, one in seen.assignments.items() if self._is_new(name, seen)}, seen)
        await self._grow(seen.assignments)
        await self._configure(seen.configs)
        await self._limit(seen.configs)
        if seen.elections is not None:
            await self._elect(seen.elections)
            answers.append(Remove(paths.PREFERRED_ELECTION))
        if seen.reassignments is not None:
            answers += await self._reassign(seen.reassignments)
        return answers

    def _is_new(self, name: str, seen: Seen) -> bool:
        is_leaving = self._publisher.is_removed(name) or name in seen.deletions
        return name not in self._image.topics and not is_leaving

    async def _delete(self, seen: Seen) -> list[Write]:
        here = [name for name in seen.deletions if name in self._image.topics]
        if here and self._may_delete:
            wanted = [(name, bytes(16)) for name in here]
            await self._metadata.submit(partial(topics.delete_topics, self._metadata.controller, wanted))
        elif here:
            logger.warning("delete.topic.enable is false: topics %s are not deleted", ", ".join(here))
            return [Remove(paths.deletion_path(name)) for name in seen.deletions]
        # what is gone here is removed there by the publisher, which hears of it
        return [Remove(paths.deletion_path(name)) for name in seen.deletions if name not in here]

    async def _create(self, wanted: dict[str, TopicAssignment], seen: Seen) -> None:
        r = messages.CreateTopicsRequest
        for name, assignment in wanted.items():
            given = self._known(name, seen.configs.pop((paths.TOPICS, name), {}))
            new = r.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
            new.configs = [r.CreatableTopicConfig(name=key, value=value) for key, value in given.items()]
            new.assignments = [
                r.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                for index, replicas in assignment.partitions.items()
            ]
            created = await self._metadata.submit(partial(topics.create_topics, self._metadata.controller, [new]))
            _warn("topic", name, created[0][1])

    def _known(self, name: str, config: dict[str, str]) -> dict[str, str]:
        """Returns the configuration of a topic that this broker can have. The rest stays in ZooKeeper: keys that it
        does not know, and values that earlier releases took.
        """
        foreign = {key: value for key, value in config.items() if not _is_valid(self._known_keys.get(key), value)}
        if foreign:
            logger.warning("topic %s: configuration without effect: %s", name, ", ".join(sorted(foreign)))
        self._publisher.foreign[paths.TOPICS, name] = foreign
        return {key: value for key, value in config.items() if key not in foreign}

    async def _grow(self, assignments: dict[str, TopicAssignment]) -> None:
        r = messages.CreatePartitionsRequest
        for name, assignment in assignments.items():
            topic = self._image.topics.get(name)
            count = 0 if topic is None else self._image.partition_counts[topic.id]
            if not count or len(assignment.partitions) <= count:
                continue
            more = [list(replicas) for index, replicas in assignment.partitions.items() if index >= count]
            wanted = r.CreatePartitionsTopic(name=name, count=len(assignment.partitions))
            wanted.assignments = [r.CreatePartitionsAssignment(broker_ids=one) for one in more]
            grown = await self._metadata.submit(partial(topics.create_partitions, self._metadata.controller, [wanted]))
            _warn("topic", name, grown[0][1])

    async def _configure(self, found: dict[Entity, dict[str, str]]) -> None:
        for (kind, name), config in found.items():
            if kind != paths.TOPICS or name not in self._image.topics:
                continue
            known: dict[str, str | None] = {**self._known(name, config)}
            if known != self._image.config_of(TOPIC, name):
                wanted = [(TOPIC, name, known)]
                errors = await self._metadata.submit(partial(configs.alter_configs, self._metadata.controller, wanted))
                _warn("the configuration of topic", name, errors[0])

    async def _limit(self, found: dict[Entity, dict[str, str]]) -> None:
        wanted = list(self._alterations(found))
        if not wanted:
            return

        def alter() -> Result[dict[quotas.Entity, ApiError | None]]:
            return quotas.alter(self._metadata.controller, wanted, ())

        for entity, error in (await self._metadata.submit(alter)).items():
            _warn("the quotas of", str(entity), error)

    def _alterations(self, found: dict[Entity, dict[str, str]]) -> Iterator[Alteration]:
        before = self._publisher.quotas() if any(kind != paths.TOPICS for kind, _ in found) else {}
        for (kind, name), config in found.items():
            if kind not in (paths.CLIENTS, paths.USERS):
                continue
            self._publisher.foreign[kind, name] = {key: one for key, one in config.items() if key not in QUOTAS}
            had = before.get((kind, name), {})
            try:
                limits = {key: float(value) for key, value in config.items() if key in QUOTAS}
            except ValueError:
                logger.warning("the quotas of %s/%s are ignored: a value is not a number", kind, name)
                continue
            changed: dict[str, float | None] = {k: v for k, v in limits.items() if had.get(k) != quota_text(v)}
            changed |= dict.fromkeys(had.keys() - limits.keys())
            if changed:
                yield Alteration(tuple(sorted(entity_of(kind, name))), changed, False)

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


def _is_valid(known: ConfigKey | None, value: str) -> bool:
    try:
        return known is not None and known.parse(value) is not None
    except ConfigInvalid:
        return False


def _warn(what: str, name: str, error: ApiError | None) -> None:
    if error is not None:
        logger.warning("%s %s in ZooKeeper is refused: %s", what, name, error)
