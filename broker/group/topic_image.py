"""The committed metadata, as group shards see it."""

from __future__ import annotations

from collections.abc import Iterable

from ...coordinator.metadata.state import MetadataState
from ..controller.controller import MetadataController


class CommittedTopics:
    """Implements `coordinator.group.environment.TopicImage` on the committed metadata."""

    def __init__(self, image: MetadataState, metadata: MetadataController) -> None:
        self.image = image
        self.metadata = metadata
        self.version_with_new_topics = 0
        self._hashes: dict[str, int] = {}

    @property
    def version(self) -> int:
        return self.metadata.applied_offset

    def topic_id(self, name: str) -> bytes | None:
        topic = self.image.topics.get(name)
        return None if topic is None else topic.id

    def topic_name(self, topic_id: bytes) -> str | None:
        found: str | None = self.image.topic_names.get(topic_id)
        return found

    def topic_names(self) -> list[str]:
        return list(self.image.topics)

    def partition_count(self, topic_id: bytes) -> int:
        return int(self.image.partition_counts.get(topic_id, -1))

    def partition_racks(self, topic_id: bytes) -> list[frozenset[str]]:
        racks = {node: broker.rack for node, broker in self.image.brokers.items() if broker.rack is not None}
        if not racks:
            return [frozenset()] * self.partition_count(topic_id)
        replicas = [p.replicas for p in self.image.partitions_of(topic_id)]
        of = {one: frozenset(racks[node] for node in one if node in racks) for one in dict.fromkeys(replicas)}
        return list(map(of.__getitem__, replicas))

    def topic_hash(self, name: str) -> int:
        found = self._hashes.get(name)
        if found is None:
            topic_id = self.topic_id(name)
            if topic_id is None:  # not remembered: clients may name any topics
                return 0
            from ...coordinator.group.metadata_hash import topic_hash

            found = self._hashes[name] = topic_hash(topic_id, name, self.partition_racks(topic_id))
        return found

    def changed(self, names: Iterable[str], created: bool) -> None:
        for name in names:
            self._hashes.pop(name, None)
        if created:
            self.version_with_new_topics = self.version
