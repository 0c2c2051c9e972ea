"""The broker that keeps a group's offsets: it is looked up, asked, and looked up again when it has moved."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import TypeVar

from ..protocol import messages
from ..protocol.errors import CODES, MalformedMessage
from ..protocol.trees import tree
from .balance.assignment import TopicPartition
from .balance.operations import Offsets
from .cluster import Cluster
from .connection import Connection
from .errors import BrokerUnreachable, KafkaError, check

_log = logging.getLogger(__name__)
T = TypeVar("T")
# what has no offset: UNKNOWN_TOPIC_OR_PARTITION is what 0.8.2 says of it
NO_OFFSET = {CODES["NONE"], CODES["UNKNOWN_TOPIC_OR_PARTITION"]}


class OffsetManager:
    """`tries`: how often it is tried, with a pause of `backoff_s` between. `failure`: why the last try failed."""

    def __init__(self, cluster: Cluster, group: str, tries: int, backoff_s: float) -> None:
        self.failure: Exception | None = None
        self._cluster, self._group = cluster, group
        self._tries, self._backoff_s = tries, backoff_s
        self._connection: Connection | None = None

    def commit(self, offsets: Offsets) -> bool:
        """Commits; returns whether all offsets were taken."""
        return self.ask(lambda connection: self._committed(connection, offsets), "commits offsets") is not None

    def fetch(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int] | None:
        """Returns the committed offsets of those partitions that have one; None if the manager does not say."""
        return self.ask(lambda connection: self._fetched(connection, partitions), "returns offsets")

    def ask(self, asked: Callable[[Connection], T], does: str) -> T | None:
        """Returns what is asked of the manager; None if no try succeeds. `does`: what it did not do then."""
        for number in range(self._tries):
            if number:
                time.sleep(self._backoff_s)
            try:
                if self._connection is None:
                    self._connection = self._found()
                return asked(self._connection)
            except (OSError, MalformedMessage, BrokerUnreachable, KafkaError) as error:
                _log.warning("no offset manager of group %s %s: %s", self._group, does, error)
                self._connection, self.failure = None, error
        return None

    def _found(self) -> Connection:
        request = messages.FindCoordinatorRequest(key=self._group)
        reply = self._cluster.asked_any("FindCoordinator", lambda _: request)
        check(reply.error_code, f"the coordinator of group {self._group}")
        return self._cluster.connection_at((reply.host, reply.port))

    def _committed(self, connection: Connection, offsets: Offsets) -> bool:
        version, r = connection.version_of("OffsetCommit"), messages.OffsetCommitRequest
        partition = tree("OffsetCommitRequest", version).at("topics.partitions").cls
        topics: dict[str, list[messages.OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
        for place, offset in sorted(offsets.items()):
            row = partition(partition_index=place.partition, committed_offset=offset, committed_metadata="")
            topics.setdefault(place.topic, []).append(row)
        rows = [r.OffsetCommitRequestTopic(name=topic, partitions=parts) for topic, parts in topics.items()]
        reply = connection.ask("OffsetCommit", version, r(group_id=self._group, topics=rows))
        for topic in reply.topics:
            for part in topic.partitions:
                check(part.error_code, f"the offset of {topic.name}-{part.partition_index}")
        return True

    def _fetched(self, connection: Connection, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        version, r = connection.version_of("OffsetFetch"), messages.OffsetFetchRequest
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(partitions):
            topics.setdefault(topic, []).append(partition)
        rows = [r.OffsetFetchRequestTopic(name=topic, partition_indexes=found) for topic, found in topics.items()]
        reply = connection.ask("OffsetFetch", version, r(group_id=self._group, topics=rows))
        check(reply.error_code, f"the offsets of group {self._group}")
        found = {}
        for one in reply.topics:
            for part in one.partitions:
                if part.error_code not in NO_OFFSET:
                    check(part.error_code, f"the offset of {one.name}-{part.partition_index}")
                if part.committed_offset >= 0:
                    found[TopicPartition(one.name, part.partition_index)] = int(part.committed_offset)
        return found
