"""The share coordinators: the shards of `__share_group_state`, which keep what became of the records of share groups (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..coordinator.shard import RecordFormat, Result
from ..coordinator.timeline import Timeline
from ..coordinator.timers import Timers
from ..protocol.errors import ApiError
from .appending import cut
from .hosting import Coordinators, Host
from .later import Later
from .metrics import Summary

if TYPE_CHECKING:
    from ..coordinator.share.shard import ShareShard
    from ..coordinator.share.state import PartitionKey, Write
    from .broker import Broker

TOPIC_NAME = "__share_group_state"


class ShareCoordinators(Coordinators["ShareShard"]):
    """All shards of share-partitions' states on this broker, and the world as they see it (`coordinator.share.shard.Environment`)."""

    topic_name = TOPIC_NAME
    timeout_key = "share.coordinator.write.timeout.ms"
    codec_key = "share.coordinator.state.topic.compression.codec"
    partitions_key = "share.coordinator.state.topic.num.partitions"
    replication_key = "share.coordinator.state.topic.replication.factor"

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.write_ms = Summary()
        self.pruned_to: dict[str, int] = {}  # by partition

    # the shards

    def make_shard(self, host: Host[ShareShard], timeline: Timeline, timers: Timers) -> ShareShard:
        from ..coordinator.share.shard import ShareShard

        shard = ShareShard(timeline, timers, self)
        shard.prune = lambda offset: self._prune(host, offset)
        return shard

    def _prune(self, host: Host[ShareShard], offset: int) -> None:
        """Cuts a log before an offset, below its high watermark."""
        partition = host.partition
        log = partition.open_log()
        if log.start_offset < offset <= partition.high_watermark:
            try:
                cut(self.broker, partition, offset)
            except ApiError:
                return  # its directory is offline now
            self.pruned_to[partition.name] = offset

    def format(self) -> RecordFormat:
        from ..coordinator.format import share_format

        return share_format()

    def topic_configs(self) -> dict[str, str]:
        config = self.broker.config
        return {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "segment.bytes": str(config["share.coordinator.state.topic.segment.bytes"]),
            "min.insync.replicas": str(config["share.coordinator.state.topic.min.isr"]),
            "retention.ms": "-1",
        }

    # the environment of the shards

    def config(self, name: str) -> Any:
        return self.broker.value(name)

    def partitions_of(self, topic_id: bytes) -> int:
        return self.broker.groups.image.partition_count(topic_id)

    def topic_removed(self, name: str, topic_id: bytes) -> None:
        for host in list(self.hosts.values()):
            if name != TOPIC_NAME and len(host.shard.states):
                host.write_later(lambda shard=host.shard: shard.topic_deleted(topic_id))  # type: ignore[misc]

    # requests

    def partition_for(self, key: PartitionKey) -> int:
        from ..coordinator.group.naming import kafka_uuid

        return super().partition_for(f"{key.group_id}:{kafka_uuid(key.topic_id)}:{key.partition}")

    def _write(self, key: PartitionKey, handler: Any) -> Later[Any]:
        try:
            return self.write_at(self.partition_for(key), handler)
        except ApiError as error:
            later: Later[Any] = Later()
            later.fail(error)
            return later

    def initialize_state(self, key: PartitionKey, state_epoch: int, start_offset: int) -> Later[None]:
        return self._write(key, lambda shard: shard.initialize_state(key, state_epoch, start_offset))

    def read_state(self, key: PartitionKey, leader_epoch: int) -> Later[Any]:
        """Finished with a `PartitionState`."""
        return self._write(key, lambda shard: shard.read_state(key, leader_epoch))

    def write_state(self, key: PartitionKey, write: Write) -> Later[None]:
        began_ms = self.monotonic_ms()
        later = self._write(key, lambda shard: shard.write_state(key, write))
        later.when_done(lambda _: self.write_ms.add(self.monotonic_ms() - began_ms))
        return later

    def delete_state(self, key: PartitionKey) -> Later[None]:
        return self._write(key, lambda shard: shard.delete_state(key))

    def read_summary(self, key: PartitionKey) -> Later[Any]:
        """Finished with a `PartitionState`, or None where there is none."""
        return self._write(key, lambda shard: Result(reply=shard.read_summary(key)))
