"""The share coordinators: the shards of `__share_group_state`,
which store the delivery states of share groups (KIP-932).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.shard import RecordFormat, Result
from ...coordinator.timeline import Timeline
from ...coordinator.timers import Timers
from ...protocol.errors import ApiError
from ..later import Later, failed
from ..metrics import Summary
from ..shards.host import ShardHost
from ..shards.hosts import Services, ShardHosts

if TYPE_CHECKING:
    from ...coordinator.share.shard import ShareShard
    from ...coordinator.share.state import PartitionKey, PartitionState, Write

R = TypeVar("R")
TOPIC_NAME = "__share_group_state"


class ShareCoordinators(ShardHosts["ShareShard"]):
    """All shards of share-partition states on this broker,
    and their environment (`coordinator.share.shard.Environment`).
    """

    topic_name = TOPIC_NAME
    timeout_key = "share.coordinator.write.timeout.ms"
    codec_key = "share.coordinator.state.topic.compression.codec"
    base_sequence = 0
    required_acks = 1
    partitions_key = "share.coordinator.state.topic.num.partitions"
    replication_key = "share.coordinator.state.topic.replication.factor"

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.write_ms = Summary()
        self.pruned_to: dict[str, int] = {}  # by partition

    # the shards

    def make_shard(self, host: ShardHost[ShareShard], timeline: Timeline, timers: Timers) -> ShareShard:
        from ...coordinator.share.shard import ShareShard

        shard = ShareShard(timeline, timers, self)
        shard.prune = lambda offset: self._prune(host, offset)
        return shard

    def _prune(self, host: ShardHost[ShareShard], offset: int) -> bool:
        """Removes the records of a log before an offset below its high watermark; returns whether they are gone."""
        partition = host.partition
        log = partition.open_log()
        if log.start_offset < offset <= partition.high_watermark:
            try:
                self.appender.cut(partition, offset)
            except ApiError:
                return False  # its directory is offline now
            self.pruned_to[partition.name] = offset
        return log.start_offset >= offset

    def format(self) -> RecordFormat:
        from ...coordinator.format import share_format

        return share_format()

    def topic_configs(self) -> dict[str, str]:
        config = self.settings.config
        return {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "segment.bytes": str(config["share.coordinator.state.topic.segment.bytes"]),
            "min.insync.replicas": str(config["share.coordinator.state.topic.min.isr"]),
            "retention.ms": "-1",
        }

    # the environment of the shards

    def config(self, name: str) -> Any:
        return self.settings.value(name)

    def partitions_of(self, topic_id: bytes) -> int:
        return int(self.metadata_image.partition_counts.get(topic_id, -1))

    def metadata_changed(self, delta: MetadataDelta) -> None:
        gone = frozenset(topic.id for topic in delta.removed)
        for host in list(self.hosts.values()) if gone else ():
            if len(host.shard.states):
                host.write_later("on-topics-deleted", lambda shard=host.shard: shard.topics_deleted(gone))  # type: ignore[misc]

    # requests

    def partition_for(self, key: PartitionKey) -> int:
        from ...coordinator.group.ids import kafka_uuid

        return super().partition_for(f"{key.group_id}:{kafka_uuid(key.topic_id)}:{key.partition}")

    def _write(self, key: PartitionKey, name: str, handler: Callable[[ShareShard], Result[R]]) -> Later[R]:
        try:
            return self.write_at(self.partition_for(key), name, handler)
        except ApiError as error:
            return failed(error)

    def initialize_state(self, key: PartitionKey, state_epoch: int, start_offset: int) -> Later[None]:
        return self._write(
            key, "initialize-share-group-state", lambda shard: shard.initialize_state(key, state_epoch, start_offset)
        )

    def read_state(self, key: PartitionKey, leader_epoch: int) -> Later[PartitionState]:
        return self._write(key, "read-share-group-state", lambda shard: shard.read_state(key, leader_epoch))

    def write_state(self, key: PartitionKey, write: Write) -> Later[None]:
        began_ms = self.monotonic_ms()
        later = self._write(key, "write-share-group-state", lambda shard: shard.write_state(key, write))
        later.when_done(lambda _: self.write_ms.add(self.monotonic_ms() - began_ms))
        return later

    def delete_state(self, key: PartitionKey) -> Later[None]:
        return self._write(key, "delete-share-group-state", lambda shard: shard.delete_state(key))

    def read_summary(self, key: PartitionKey) -> Later[PartitionState | None]:
        """Completes with None if there is no state."""
        return self._write(key, "read-share-group-state-summary", lambda shard: Result(reply=shard.read_summary(key)))
