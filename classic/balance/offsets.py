"""Where a group's offsets are kept (`offsets.storage`): in ZooKeeper, in Kafka, or in both while a group moves from one
to the other (`dual.commit.enabled`); then the larger offset counts.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from ...protocol.zookeeper_paths import offset_path
from ...protocol.zookeeper_values import offset_of
from .assignment import TopicPartition
from .operations import CommitToKafka, FetchFromKafka, Offsets, Put, Steps, get


class Storage(Protocol):
    def commit(self, offsets: Offsets) -> Steps[bool]:
        """Stores offsets; gives whether all are stored."""

    def fetch(self, partitions: Collection[TopicPartition]) -> Steps[dict[TopicPartition, int] | None]:
        """Gives the offsets of those partitions that have one; None if it cannot be told now."""


class ZooKeeperOffsets:
    """`/consumers/[group]/offsets/[topic]/[partition]`."""

    def __init__(self, group: str) -> None:
        self._group = group

    def commit(self, offsets: Offsets) -> Steps[bool]:
        for (topic, partition), offset in sorted(offsets.items()):
            yield Put(offset_path(self._group, topic, partition), str(offset).encode())
        return True

    def fetch(self, partitions: Collection[TopicPartition]) -> Steps[dict[TopicPartition, int] | None]:
        """Raises zookeeper_values.Malformed for a node that has no offset."""
        found = {}
        for one in sorted(partitions):
            node = yield from get(offset_path(self._group, one.topic, one.partition))
            if node is not None:
                found[one] = offset_of(node.value)
        return found


class KafkaOffsets:
    """The offset manager of the group, a broker."""

    def commit(self, offsets: Offsets) -> Steps[bool]:
        return bool((yield CommitToKafka(dict(offsets)))) if offsets else True

    def fetch(self, partitions: Collection[TopicPartition]) -> Steps[dict[TopicPartition, int] | None]:
        if not partitions:
            return {}
        found = yield FetchFromKafka(tuple(sorted(partitions)))
        assert found is None or isinstance(found, dict)
        return found


class DualOffsets:
    """Both. Kafka 0.8.2 does so with `offsets.storage=kafka` only; here a group that moves back is as safe."""

    def __init__(self, group: str) -> None:
        self._kafka, self._zookeeper = KafkaOffsets(), ZooKeeperOffsets(group)

    def commit(self, offsets: Offsets) -> Steps[bool]:
        done = yield from self._kafka.commit(offsets)
        return (yield from self._zookeeper.commit(offsets)) and done

    def fetch(self, partitions: Collection[TopicPartition]) -> Steps[dict[TopicPartition, int] | None]:
        found = yield from self._kafka.fetch(partitions)
        older = yield from self._zookeeper.fetch(partitions)
        if found is None or older is None:
            return None
        return {one: max(found.get(one, -1), older.get(one, -1)) for one in found.keys() | older.keys()}
