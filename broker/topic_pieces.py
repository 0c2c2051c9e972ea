"""Encoded descriptions of topics, kept until something of the topic changes.

Clients ask for all topics again and again (Metadata, DescribeTopicPartitions), and few of them have changed. A piece is
what one topic is in a reply of one API and version, with the operations that it shows: all else that differs between
principals, listeners and nodes is not in it. What a piece says comes from the metadata and from the log directories, so
both forget the pieces that they contradict (`changed`, `forget`) at the moment of the change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..coordinator.metadata.delta import MetadataDelta

BYTES_MAX = 32 << 20  # of all pieces
PIECES_MAX = 8  # of one topic: few versions are asked for at a time
OVERHEAD_BYTES = 200  # what a piece takes besides its bytes


class Key(NamedTuple):
    """What a piece is for. `operations`: the bits that it shows of what a principal may do."""

    api_key: int
    version: int
    operations: int


class Piece(NamedTuple):
    """An encoded element of a reply. `errors`: the error codes in it, each as often as it is there."""

    data: bytes
    errors: tuple[int, ...]


class TopicPieces:
    """The pieces of topics, by name. The topics whose pieces are the oldest go first when there are too many."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.bytes = 0
        self._topics: dict[str, dict[Key, Piece]] = {}

    def get(self, topic: str, key: Key) -> Piece | None:
        pieces = self._topics.get(topic)
        return None if pieces is None else pieces.get(key)

    def keep(self, topic: str, key: Key, piece: Piece) -> None:
        """Keeps a piece that was made in this turn."""
        pieces = self._topics.get(topic, {})
        if len(pieces) >= PIECES_MAX:
            self.forget(topic)
            pieces = {}
        self._topics[topic] = pieces
        pieces[key] = piece
        self.bytes += len(piece.data) + OVERHEAD_BYTES
        while self.bytes > self.bytes_max:
            self.forget(next(iter(self._topics)))

    def forget(self, topic: str) -> None:
        """Something of a topic changed: its metadata, or whether its replicas can be used."""
        for piece in self._topics.pop(topic, {}).values():
            self.bytes -= len(piece.data) + OVERHEAD_BYTES

    def changed(self, delta: MetadataDelta) -> None:
        """The image has changed. Whether a replica is offline depends on its broker, so a change of a broker concerns
        all topics. Those that are gone are left to `forget_removed`: nothing asks for a topic that does not exist, and
        one that gets its name is new.
        """
        if delta.brokers:
            self._topics.clear()
            self.bytes = 0
        for changes in (delta.new_partitions, delta.changed_partitions):
            for topic_id in {topic_id: None for topic_id, _ in changes}:
                self.forget(delta.image.topic_names[topic_id])

    def forget_removed(self, delta: MetadataDelta) -> Iterator[None]:
        """Forgets the topics that are gone, in steps."""
        for topic in delta.removed:
            if topic.name not in delta.image.topics:
                self.forget(topic.name)
            yield
