"""The group coordinators: the shards of `__consumer_offsets`, and the world as they see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..coordinator.metadata.configs import group_bounds
from ..coordinator.metadata.state import GROUP
from ..coordinator.shard import RecordFormat, Result
from ..coordinator.timeline import Timeline
from ..coordinator.timers import Timers
from ..protocol.config_def import ConfigInvalid, keys
from ..protocol.errors import ApiError
from ..protocol.records import Template
from ..storage.log import Log
from ..storage.producers import Verification
from .appending import verifies
from .hosting import Coordinators, Host, live_entries
from .later import Later

if TYPE_CHECKING:
    from ..coordinator.group.shard import GroupShard
    from ..coordinator.transaction.shard import Producer
    from .broker import Broker

TOPIC_NAME = "__consumer_offsets"


class Topics:
    """The committed metadata, as `coordinator.group.environment.TopicImage` wants it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.version_with_new_topics = 0
        self._hashes: dict[str, int] = {}

    @property
    def version(self) -> int:
        return self.broker.metadata.applied_offset

    def topic_id(self, name: str) -> bytes | None:
        topic = self.broker.image.topics.get(name)
        return None if topic is None else topic.id

    def topic_name(self, topic_id: bytes) -> str | None:
        found: str | None = self.broker.image.topic_names.get(topic_id)
        return found

    def topic_names(self) -> list[str]:
        return list(self.broker.image.topics)

    def partition_count(self, topic_id: bytes) -> int:
        return int(self.broker.image.partition_counts.get(topic_id, -1))

    def partition_racks(self, topic_id: bytes) -> list[frozenset[str]]:
        image = self.broker.image
        racks = {node: broker.rack for node, broker in image.brokers.items() if broker.rack is not None}
        return [frozenset(racks[r] for r in p.replicas if r in racks) for p in image.partitions_of(topic_id)]

    def topic_hash(self, name: str) -> int:
        found = self._hashes.get(name)
        if found is None:
            from ..coordinator.group.hashing import topic_hash

            topic_id = self.topic_id(name)
            racks = [sorted(of) for of in self.partition_racks(topic_id)] if topic_id is not None else []
            found = self._hashes[name] = 0 if topic_id is None else topic_hash(topic_id, name, racks)
        return found

    def changed(self, name: str, created: bool) -> None:
        self._hashes.pop(name, None)
        if created:
            self.version_with_new_topics = self.version


class GroupCoordinators(Coordinators["GroupShard"]):
    """All shards of groups on this broker, and the world as they see it (`coordinator.group.environment.Environment`)."""

    topic_name = TOPIC_NAME
    timeout_key = "offsets.commit.timeout.ms"
    codec_key = "offsets.topic.compression.codec"
    partitions_key = "offsets.topic.num.partitions"
    replication_key = "offsets.topic.replication.factor"

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.image = Topics(broker)
        self._assignors: Any = None
        self._group_values: dict[tuple[str, str], Any] = {}

    @property
    def assignors(self) -> Any:
        if self._assignors is None:
            from ..coordinator.group.assignors.registry import Assignors

            self._assignors = Assignors(self.broker.config["group.consumer.assignors"])
        return self._assignors

    # the environment of the shards

    def new_id(self) -> bytes:
        return self.broker.new_id()

    def background(self, work: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        self.broker.schedule.in_thread(work, lambda result, error: self.broker.event(lambda: done(result, error)))

    def config(self, name: str) -> Any:
        return self.broker.value(name)

    def group_config(self, group_id: str, name: str) -> Any:
        """A group's own value within the broker's bounds, or the broker's (KIP-1240)."""
        found = self._group_values.get((group_id, name))
        if found is None:
            found = self._group_values[group_id, name] = self._group_value(group_id, name)
        return found

    def _group_value(self, group_id: str, name: str) -> Any:
        own, broker_key = keys("group")[name], f"group.{name}"
        general = self.config(broker_key) if broker_key in keys("broker") else own.parse(own.default)
        text = self.broker.image.config_of(GROUP, group_id).get(name)
        if text is None:
            return general
        try:
            value = own.parse(text)
        except ConfigInvalid:
            return general
        bounds = group_bounds(name)
        if bounds is not None:
            value = min(max(value, self.config(bounds[0])), self.config(bounds[1]))
        return value

    def configs_changed(self) -> None:
        self._group_values.clear()

    # the shards

    def make_shard(self, host: Host[GroupShard], timeline: Timeline, timers: Timers) -> GroupShard:
        from ..coordinator.group.shard import GroupShard

        shard = GroupShard(timeline, timers, self, self.assignors)
        shard.write = host.write_later
        return shard

    def format(self) -> RecordFormat:
        from ..coordinator.group.format import GroupFormat

        return GroupFormat()

    def entries(self, log: Log) -> Iterator[Any]:
        return live_entries(log)

    def topic_configs(self) -> dict[str, str]:
        segment_bytes = str(self.broker.config["offsets.topic.segment.bytes"])
        return {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": segment_bytes}

    # metadata

    def topic_changed(self, name: str, created: bool) -> None:
        self.image.changed(name, created)
        for host in self.hosts.values():
            host.shard.topic_changed(name)

    def topic_removed(self, name: str, topic_id: bytes) -> None:
        from ..coordinator.group import offsets, share_offsets

        self.topic_changed(name, created=False)
        for host in list(self.hosts.values()):
            if name != TOPIC_NAME and host.shard.offsets.by_group:
                host.write_later(lambda shard=host.shard: offsets.of_deleted_topic(shard, name, topic_id))  # type: ignore[misc]
            if len(host.shard.initializations):
                host.write_later(lambda shard=host.shard: share_offsets.topic_deleted(shard, topic_id))  # type: ignore[misc]

    def expire(self) -> None:
        """Takes out what has had its time, in all shards, without waiting for the next round."""
        for host in self.hosts.values():
            host.write_later(host.shard.expire)

    # requests

    def write(self, group_id: str, handler: Callable[[GroupShard], Result]) -> Later[Any]:
        """Runs a handler as a write of the group's shard; finished with its reply when its records are committed. ApiError."""
        return self.write_at(self.partition_for(group_id), handler)

    def write_in_transaction(
        self, index: int, producer: Producer, verification: Verification | None, handler: Callable[[GroupShard], Result]
    ) -> Later[Any]:
        """As `write_at`, for records that hold once the producer's transaction is committed. ApiError."""
        later: Later[Any] = Later()
        host = self.host_at(index)
        if verifies(self.broker):
            host.partition.open_log().producers.check_verified(producer.id, producer.epoch, verification)
        host.write(handler, later.settle, template=Template(producer_id=producer.id, producer_epoch=producer.epoch, transactional=True))
        return later

    def exchange(self, group_id: str, handler: Callable[[GroupShard, Callable[[Any], None]], Result]) -> Later[Any]:
        """As `write`, for a handler that sends its reply itself, at once or when others have done their part. ApiError."""
        later: Later[Any] = Later()

        def done(reply: Any, error: ApiError | None) -> None:
            if error is not None:
                later.fail(error)

        self.host(group_id).write(lambda shard: handler(shard, later.finish), done)
        return later

    def read(self, group_id: str, handler: Callable[[GroupShard, int], Any]) -> Any:
        """Runs a handler on what is committed. ApiError."""
        return self.host(group_id).read(handler)
