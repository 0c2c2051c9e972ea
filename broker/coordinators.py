"""Joins the group coordinator's shards to the partitions of `__consumer_offsets`.

A shard is made when its partition's log opens, replays the log a step at a time, and serves its groups from then on. It goes when the
partition goes, moves or fails, and everything that waits in it is answered.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..coordinator.metadata.state import BROKER, GROUP
from ..coordinator.runtime import Runtime, State
from ..coordinator.shard import Result
from ..coordinator.timeline import Timeline
from ..coordinator.timers import Timers
from ..protocol import messages, records
from ..protocol.config_def import ConfigInvalid, keys
from ..protocol.errors import ApiError, Errors
from ..protocol.records import BatchAt, Record
from ..storage.log import Log
from ..storage.segment import BatchInfo, Segment
from .later import Later
from .partition import Partition

if TYPE_CHECKING:
    from ..coordinator.group.shard import GroupShard
    from .broker import Broker

logger = logging.getLogger("ottla")
TOPIC_NAME = "__consumer_offsets"
LOAD_STEP_MS = 2
RELOAD_DELAY_MS = 100
COMMIT_KEY = b"\0\1"  # how the key of a committed offset begins
COMMIT_MARKER = b"\0\1"  # the type of the control record that commits a transaction


class _Entry:
    """A record, or a transaction's end, as the loader hands it to the runtime."""

    __slots__ = ("committed", "coordinator_epoch", "offset", "producer_epoch", "producer_id", "record")

    def __init__(self, offset: int, producer_id: int, producer_epoch: int, record: Record | None) -> None:
        self.offset = offset
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.record = record
        self.committed: bool | None = None
        self.coordinator_epoch = -1


def live_entries(log: Log) -> Iterator[_Entry | None]:
    """What is to be replayed of a coordinator's log: everything but commits that later ones supersede. None is a moment to pause.

    Most of a log are such commits. Those that hold come last, with their own offsets; what they mean does not depend on the rest.
    """
    latest: dict[bytes, tuple[int, bytes]] = {}
    for segment, batch in log.batches_from(log.start_offset):
        header = batch.header
        if header is None:
            continue
        if header.is_control or header.is_transactional:
            yield from _entries_of(segment, batch)
            continue
        for offset, key, value in records.pairs(segment.read_batch(batch), BatchAt(0, header)):
            if key is not None and key[:2] == COMMIT_KEY:
                if value is not None:
                    latest[key] = offset, value
                    continue
                latest.pop(key, None)
            yield _Entry(offset, -1, -1, Record(key, value))
        yield None
    for key, (offset, value) in latest.items():
        yield _Entry(offset, -1, -1, Record(key, value))


def log_entries(log: Log) -> Iterator[_Entry]:
    """Everything in a coordinator's log, from its start to its end."""
    for segment, batch in log.batches_from(log.start_offset):
        if batch.header is not None:
            yield from _entries_of(segment, batch)


def _entries_of(segment: Segment, batch: BatchInfo) -> Iterator[_Entry]:
    header = batch.header
    assert header is not None
    producer_id = header.producer_id if header.is_transactional else -1
    for record in records.decode(segment.read_batch(batch), BatchAt(0, header)):
        entry = _Entry(record.offset, producer_id, header.producer_epoch, record)
        if header.is_control:
            entry.record, entry.committed = None, (record.key or b"")[2:4] == COMMIT_MARKER
            entry.coordinator_epoch = int.from_bytes((record.value or b"")[2:6], "big", signed=True)
        yield entry


class _Writer:
    """The partition under a shard."""

    def __init__(self, broker: Broker, partition: Partition) -> None:
        self.broker = broker
        self.partition = partition

    def append(self, batch: bytearray, now_ms: int) -> tuple[int, int]:
        partition = self.partition
        if partition.isr_size < min(partition.min_insync_replicas, partition.replica_count):
            raise ApiError(Errors.NOT_ENOUGH_REPLICAS)
        try:
            done = partition.append(batch, list(records.batches(batch)), now_ms)
        except OSError as error:
            self.broker.directory_failed(self.broker.partitions.directory_of[partition], error)
            raise ApiError(Errors.KAFKA_STORAGE_ERROR) from None
        self.broker.note_append(partition)
        return done.base_offset, done.next_offset

    def max_batch_bytes(self) -> int:
        return self.partition.open_log().settings.max_message_bytes


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


class Host:
    """One shard on one partition, with its timers."""

    def __init__(self, owner: GroupCoordinators, partition: Partition) -> None:
        from ..coordinator.group.format import GroupFormat
        from ..coordinator.group.shard import GroupShard

        broker = owner.broker
        self.broker = broker
        self.partition = partition
        timeline, timers = Timeline(), Timers()
        self.shard: GroupShard = GroupShard(timeline, timers, owner, owner.assignors)
        self.shard.write = self.write_later
        self.runtime = Runtime(partition.name, self.shard, GroupFormat(), _Writer(broker, partition), timeline, timers)
        self.runtime.codec = broker.config["offsets.topic.compression.codec"]
        self.runtime.timeout_code = int(Errors.COORDINATOR_NOT_AVAILABLE)
        self.runtime.on_bug = lambda bug: logger.error("%s: a handler failed", partition.name, exc_info=bug)
        self.load_ms = 0
        self._armed: tuple[int, Any] | None = None

    def begin(self) -> None:
        """Begins to load; small logs are done at once."""
        log = self.partition.open_log()
        now = self.broker.schedule.monotonic_ms()
        self._steps = self.runtime.load(live_entries(log), self.partition.leader_epoch, now, self.partition.high_watermark, log.end_offset)
        self._began_ms = now
        self._load_some()

    def _load_some(self) -> None:
        schedule = self.broker.schedule
        until = schedule.monotonic_ms() + LOAD_STEP_MS
        try:
            for _ in self._steps:
                if schedule.monotonic_ms() >= until:
                    self.broker.groups.collector_rests(self)
                    schedule.soon(lambda: self.broker.event(self._load_some))
                    return
        except Exception:
            logger.exception("%s: loading failed", self.partition.name)
            return
        finally:
            if self.runtime.state is not State.LOADING:
                self.broker.groups.collector_wakes(self)
        if self.runtime.state is State.ACTIVE:
            self.load_ms = schedule.monotonic_ms() - self._began_ms
            self.partition.on_advance = self.runtime.advance
            self.runtime.advance(self.partition.high_watermark)
            self.broker.wrote(self)

    def flush(self) -> None:
        """Appends what this event's writes decided."""
        self.runtime.flush(self.broker.schedule.now_ms())
        if self.runtime.state is State.FAILED:
            self.broker.schedule.later(RELOAD_DELAY_MS, lambda: self.broker.event(lambda: self.broker.groups.reload(self.partition)))
        self._arm()

    def _arm(self) -> None:
        """One timer of the loop stands for all of the shard's."""
        deadline = self.runtime.next_deadline_ms()
        if deadline is None or (self._armed is not None and self._armed[0] <= deadline):
            return
        if self._armed is not None:
            self._armed[1].cancel()
        now = self.broker.schedule.monotonic_ms()
        self._armed = deadline, self.broker.schedule.later(max(0, deadline - now), lambda: self.broker.event(self._tick))

    def _tick(self) -> None:
        self._armed = None
        if self.runtime.state is State.ACTIVE:
            self.runtime.tick(self.broker.schedule.monotonic_ms())
            self.broker.wrote(self)

    def write_later(self, handler: Callable[[], Result]) -> None:
        """A write that no request waits for."""
        if self.runtime.state is State.ACTIVE:
            self.runtime.write(handler, lambda reply, error: None, self.broker.schedule.monotonic_ms())
            self.broker.wrote(self)

    def write(self, handler: Callable[[GroupShard], Result], on_done: Callable[[Any, ApiError | None], None]) -> None:
        now = self.broker.schedule.monotonic_ms()
        deadline = now + self.broker.config["offsets.commit.timeout.ms"]
        self.runtime.write(lambda: handler(self.shard), on_done, now, deadline_ms=deadline)
        self.broker.wrote(self)

    def read(self, handler: Callable[[GroupShard, int], Any]) -> Any:
        return self.runtime.read(lambda as_of: handler(self.shard, as_of))

    def close(self) -> None:
        self.partition.on_advance = None
        if self._armed is not None:
            self._armed[1].cancel()
        self.runtime.close()
        self.broker.groups.collector_wakes(self)


class GroupCoordinators:
    """All shards of this broker, and the world as they see it (`coordinator.group.environment.Environment`)."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.hosts: dict[int, Host] = {}
        self._loading: dict[Host, None] = {}  # those that take more than a moment
        self.image = Topics(broker)
        self._assignors: Any = None
        self._group_values: dict[tuple[str, str], Any] = {}
        self._values: dict[str, Any] = {}

    @property
    def assignors(self) -> Any:
        if self._assignors is None:
            from ..coordinator.group.assignors.registry import Assignors

            self._assignors = Assignors(self.broker.config["group.consumer.assignors"])
        return self._assignors

    # the environment of the shards

    def now_ms(self) -> int:
        return self.broker.schedule.now_ms()

    def monotonic_ms(self) -> int:
        return self.broker.schedule.monotonic_ms()

    def new_id(self) -> bytes:
        return self.broker.new_id()

    def background(self, work: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        self.broker.schedule.in_thread(work, lambda result, error: self.broker.event(lambda: done(result, error)))

    def config(self, name: str) -> Any:
        """A broker key's value in force: the dynamic one where there is one."""
        if name not in self._values:
            image, node = self.broker.image, str(self.broker.config.node_id)
            text = image.config_of(BROKER, node).get(name, image.config_of(BROKER, "").get(name))
            self._values[name] = self.broker.config[name] if text is None else keys("broker")[name].parse(text)
        return self._values[name]

    def group_config(self, group_id: str, name: str) -> Any:
        """A group's own value within the broker's bounds, or the broker's (KIP-1240)."""
        found = self._group_values.get((group_id, name))
        if found is None:
            found = self._group_values[group_id, name] = self._group_value(group_id, name)
        return found

    def _group_value(self, group_id: str, name: str) -> Any:
        kind, _, rest = name.partition(".")
        general = self.config(f"group.{name}")
        text = self.broker.image.config_of(GROUP, group_id).get(name)
        if text is None:
            return general
        try:
            value = keys("group")[name].parse(text)
        except ConfigInvalid:
            return general
        low, high = (f"group.{kind}.{word}.{rest}" for word in ("min", "max"))
        known = keys("broker")
        if low in known:
            value = max(value, self.config(low))
        return min(value, self.config(high)) if high in known else value

    def configs_changed(self) -> None:
        self._values.clear()
        self._group_values.clear()

    # partitions and metadata

    def opened(self, partition: Partition) -> None:
        """A partition of the topic can be read and written: its shard loads."""
        host = self.hosts[partition.index] = Host(self, partition)
        host.begin()

    def closed(self, partition: Partition) -> None:
        host = self.hosts.get(partition.index)
        if host is not None and host.partition is partition:
            del self.hosts[partition.index]
            host.close()

    def collector_rests(self, host: Host) -> None:
        """A long load makes nothing but objects that stay, which the garbage collector would look at again and again."""
        self._loading[host] = None
        gc.disable()

    def collector_wakes(self, host: Host) -> None:
        if host in self._loading:
            del self._loading[host]
            gc.freeze()
            if not self._loading:
                gc.enable()

    def reload(self, partition: Partition) -> None:
        """Unloads a shard and loads it again, as when a coordinator moves away and back."""
        self.closed(partition)
        if partition.log is not None:
            self.opened(partition)

    def topic_changed(self, name: str, created: bool) -> None:
        self.image.changed(name, created)
        for host in self.hosts.values():
            host.shard.topic_changed(name)

    def topic_removed(self, name: str, topic_id: bytes) -> None:
        from ..coordinator.group import offsets

        self.topic_changed(name, created=False)
        for host in list(self.hosts.values()):
            if name != TOPIC_NAME and host.shard.offsets.by_group:
                host.write_later(lambda shard=host.shard: offsets.of_deleted_topic(shard, name, topic_id))  # type: ignore[misc]

    def expire(self) -> None:
        """Takes out what has had its time, in all shards, without waiting for the next round."""
        for host in self.hosts.values():
            host.write_later(host.shard.expire)

    # requests

    @property
    def partition_count(self) -> int:
        topic = self.broker.topic(TOPIC_NAME)
        count = 0 if topic is None else self.broker.image.partition_counts.get(topic.id, 0)
        return count or int(self.broker.config["offsets.topic.num.partitions"])

    def partition_for(self, group_id: str) -> int:
        from ..coordinator.group.hashing import partition_for

        return partition_for(group_id, self.partition_count)

    def host(self, group_id: str) -> Host:
        """The shard of a group. ApiError(NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS)."""
        return self._host_at(self.partition_for(group_id))

    def _host_at(self, index: int) -> Host:
        host = self.hosts.get(index)
        if host is None:
            partition = self.broker.partitions.by_name.get((TOPIC_NAME, index))
            if partition is not None and not partition.offline and partition.log is None:
                partition.open_log() if partition.opening is not None else None
                host = self.hosts.get(index)
                if host is None:
                    raise ApiError(Errors.COORDINATOR_LOAD_IN_PROGRESS)
                return host
            raise ApiError(Errors.NOT_COORDINATOR)
        return host

    def write(self, group_id: str, handler: Callable[[GroupShard], Result]) -> Later[Any]:
        """Runs a handler as a write of the group's shard; finished with its reply when its records are committed. ApiError."""
        later: Later[Any] = Later()

        def done(reply: Any, error: ApiError | None) -> None:
            if error is None:
                later.finish(reply)
            else:
                later.fail(error)

        self.host(group_id).write(handler, done)
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

    def read_all(self, handler: Callable[[GroupShard, int], Any]) -> list[Any]:
        """Runs a handler on every shard. ApiError(COORDINATOR_LOAD_IN_PROGRESS) while one is not loaded yet."""
        topic = self.broker.topic(TOPIC_NAME)
        if topic is None:
            return []
        found = []
        for index in range(self.partition_count):
            host = self._host_at(index)
            found.append(host.read(handler))
        return found

    async def create_topic(self) -> None:
        """Makes `__consumer_offsets` where it is not there. ApiError."""
        from ..coordinator.metadata import topics

        broker, config = self.broker, self.broker.config
        if broker.topic(TOPIC_NAME) is not None:
            return
        r = messages.CreateTopicsRequest
        wanted = r.CreatableTopic(
            name=TOPIC_NAME,
            num_partitions=config["offsets.topic.num.partitions"],
            replication_factor=config["offsets.topic.replication.factor"],
            configs=[
                r.CreatableTopicConfig(name="cleanup.policy", value="compact"),
                r.CreatableTopicConfig(name="compression.type", value="producer"),
                r.CreatableTopicConfig(name="segment.bytes", value=str(config["offsets.topic.segment.bytes"])),
            ],
        )
        controller = broker.metadata.controller
        await broker.metadata.submit(lambda: topics.create_topics(controller, r(topics=[wanted])))

    def stop(self) -> None:
        for host in self.hosts.values():
            host.close()
        self.hosts.clear()
