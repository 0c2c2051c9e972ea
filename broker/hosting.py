"""Joins coordinator shards to the partitions of their topic.

A shard is made when its partition's log opens, replays the log a step at a time, and serves its keys from then on. It goes when the
partition goes, moves or fails, and everything that waits in it is answered.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..coordinator.format import COMMIT_KEY
from ..coordinator.hashing import partition_for
from ..coordinator.runtime import Runtime, State
from ..coordinator.shard import RecordFormat, Result, Shard
from ..coordinator.timeline import Timeline
from ..coordinator.timers import Timers
from ..protocol import messages, records
from ..protocol.compression import NONE
from ..protocol.errors import ApiError, Errors
from ..protocol.records import BatchAt, Record, Template
from ..storage.log import Log
from ..storage.segment import BatchInfo, Segment
from .appending import check_replicas, store
from .clock import Alarm
from .later import Later
from .partition import Partition

if TYPE_CHECKING:
    from .broker import Broker

logger = logging.getLogger("ottla")
LOAD_STEP_MS = 2
RELOAD_DELAY_MS = 100
COMMIT_MARKER = b"\0\1"  # the type of the control record that commits a transaction
S = TypeVar("S", bound=Shard)


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
        check_replicas(self.partition)
        done = store(self.broker, self.partition, batch, list(records.batches(batch)), now_ms)
        return done.base_offset, done.next_offset

    def max_batch_bytes(self) -> int:
        return self.partition.open_log().settings.max_message_bytes


class Host(Generic[S]):
    """One shard on one partition, with its timers."""

    def __init__(self, owner: Coordinators[S], partition: Partition) -> None:
        self.owner = owner
        self.broker = broker = owner.broker
        self.partition = partition
        timeline, timers = Timeline(), Timers()
        self.shard: S = owner.make_shard(self, timeline, timers)
        self.runtime = Runtime(partition.name, self.shard, owner.format(), _Writer(broker, partition), timeline, timers)
        self.runtime.codec = broker.config[owner.codec_key] if owner.codec_key else NONE
        self.runtime.timeout_code = int(Errors.COORDINATOR_NOT_AVAILABLE)
        self.runtime.on_bug = lambda bug: logger.error("%s: a handler failed", partition.name, exc_info=bug)
        self.load_ms = 0
        self._alarm = Alarm(broker.schedule, lambda: broker.event(self._tick))  # for all timers of the shard

    def begin(self) -> None:
        """Begins to load; small logs are done at once."""
        log = self.partition.open_log()
        now = self.broker.schedule.monotonic_ms()
        self._steps = self.runtime.load(self.owner.entries(log), self.partition.leader_epoch, now, self.partition.high_watermark, log.end_offset)
        self._began_ms = now
        self._load_some()

    def _load_some(self) -> None:
        schedule = self.broker.schedule
        until = schedule.monotonic_ms() + LOAD_STEP_MS
        try:
            for _ in self._steps:
                if schedule.monotonic_ms() >= until:
                    self.owner.collector_rests(self)
                    schedule.soon(lambda: self.broker.event(self._load_some))
                    return
        except Exception:
            logger.exception("%s: loading failed", self.partition.name)
            return
        finally:
            if self.runtime.state is not State.LOADING:
                self.owner.collector_wakes(self)
        if self.runtime.state is State.ACTIVE:
            self.load_ms = schedule.monotonic_ms() - self._began_ms
            self.partition.on_advance = self._advance
            self._advance(self.partition.high_watermark)
            self.broker.wrote(self)

    def _advance(self, high_watermark: int) -> None:
        self.runtime.advance(high_watermark)
        self.owner.advanced(self)

    def flush(self) -> None:
        """Appends what this event's writes decided."""
        self.runtime.flush(self.broker.schedule.now_ms())
        if self.runtime.state is State.FAILED:
            self.broker.schedule.later(RELOAD_DELAY_MS, lambda: self.broker.event(lambda: self.owner.reload(self.partition)))
        self._alarm.set(self.runtime.next_deadline_ms())

    def _tick(self) -> None:
        if self.runtime.state is State.ACTIVE:
            self.runtime.tick(self.broker.schedule.monotonic_ms())
            self.broker.wrote(self)

    def write_later(self, handler: Callable[[], Result]) -> None:
        """A write that no request waits for."""
        if self.runtime.state is State.ACTIVE:
            self.runtime.write(handler, lambda reply, error: None, self.broker.schedule.monotonic_ms())
            self.broker.wrote(self)

    def write(
        self,
        handler: Callable[[S], Result],
        on_done: Callable[[Any, ApiError | None], None],
        timeout_ms: int | None = None,
        template: Template | None = None,
    ) -> None:
        """Runs a handler as a write. `timeout_ms`: how long its reply may wait, where that is not what it is for the whole family."""
        now = self.broker.schedule.monotonic_ms()
        deadline = now + (self.broker.config[self.owner.timeout_key] if timeout_ms is None else timeout_ms)
        self.runtime.write(lambda: handler(self.shard), on_done, now, deadline_ms=deadline, template=template)
        self.broker.wrote(self)

    def read(self, handler: Callable[[S, int], Any]) -> Any:
        return self.runtime.read(lambda as_of: handler(self.shard, as_of))

    def close(self) -> None:
        self.partition.on_advance = None
        self._alarm.end()
        self.runtime.close()
        self.owner.collector_wakes(self)


class Coordinators(Generic[S]):
    """All shards of one topic on this broker."""

    topic_name: str
    timeout_key: str  # how long a reply waits for its records
    codec_key: str | None  # None for records that are never compressed
    partitions_key: str
    replication_key: str

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.hosts: dict[int, Host[S]] = {}

    # what shards need of the world

    def now_ms(self) -> int:
        return self.broker.schedule.now_ms()

    def monotonic_ms(self) -> int:
        return self.broker.schedule.monotonic_ms()

    # what each family has of its own

    def make_shard(self, host: Host[S], timeline: Timeline, timers: Timers) -> S:
        raise NotImplementedError

    def format(self) -> RecordFormat:
        raise NotImplementedError

    def entries(self, log: Log) -> Iterator[Any]:
        """What is to be replayed of a log."""
        return log_entries(log)

    def topic_configs(self) -> dict[str, str]:
        raise NotImplementedError

    def partition_for(self, key: Any) -> int:
        """The partition that coordinates a key."""
        return partition_for(key, self.partition_count)

    def advanced(self, host: Host[S]) -> None:
        """More of a shard's records are committed."""

    # partitions

    def opened(self, partition: Partition) -> None:
        """A partition of the topic can be read and written: its shard loads."""
        host = self.hosts[partition.index] = Host(self, partition)
        host.begin()

    def closed(self, partition: Partition) -> None:
        host = self.hosts.get(partition.index)
        if host is not None and host.partition is partition:
            del self.hosts[partition.index]
            host.close()

    def reload(self, partition: Partition) -> None:
        """Unloads a shard and loads it again, as when a coordinator moves away and back."""
        self.closed(partition)
        if partition.log is not None:
            self.opened(partition)

    def collector_rests(self, host: Host[S]) -> None:
        """A long load makes nothing but objects that stay, which the garbage collector would look at again and again."""
        self.broker.loading[host] = None
        gc.disable()

    def collector_wakes(self, host: Host[S]) -> None:
        loading = self.broker.loading
        if host in loading:
            del loading[host]
            gc.freeze()
            if not loading:
                gc.enable()

    def stop(self) -> None:
        for host in self.hosts.values():
            host.close()
        self.hosts.clear()

    # the topic

    @property
    def partition_count(self) -> int:
        topic = self.broker.topic(self.topic_name)
        count = 0 if topic is None else self.broker.image.partition_counts.get(topic.id, 0)
        return count or int(self.broker.config[self.partitions_key])

    async def create_topic(self) -> None:
        """Makes the topic where it is not there. ApiError."""
        from ..coordinator.metadata import topics

        broker, config = self.broker, self.broker.config
        if broker.topic(self.topic_name) is not None:
            return
        r = messages.CreateTopicsRequest
        wanted = r.CreatableTopic(
            name=self.topic_name,
            num_partitions=config[self.partitions_key],
            replication_factor=config[self.replication_key],
            configs=[r.CreatableTopicConfig(name=name, value=value) for name, value in self.topic_configs().items()],
        )
        controller = broker.metadata.controller
        await broker.metadata.submit(lambda: topics.create_topics(controller, r(topics=[wanted])))

    # requests

    def host_at(self, index: int) -> Host[S]:
        """ApiError(NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS)."""
        host = self.hosts.get(index)
        if host is None:
            partition = self.broker.partitions.by_name.get((self.topic_name, index))
            if partition is None or partition.offline or partition.log is not None:
                raise ApiError(Errors.NOT_COORDINATOR)
            if partition.opening is not None:
                partition.open_log()
                host = self.hosts.get(index)
            if host is None:
                raise ApiError(Errors.COORDINATOR_LOAD_IN_PROGRESS)
        return host

    def host(self, key: Any) -> Host[S]:
        """The shard that coordinates a key. ApiError(NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS)."""
        return self.host_at(self.partition_for(key))

    def write_at(self, index: int, handler: Callable[[S], Result], timeout_ms: int | None = None) -> Later[Any]:
        """Runs a handler as a write of a shard; finished with its reply when its records are committed. ApiError."""
        later: Later[Any] = Later()
        self.host_at(index).write(handler, later.settle, timeout_ms)
        return later

    def read_all(self, handler: Callable[[S, int], Any]) -> list[Any]:
        """Runs a handler on every shard. ApiError(COORDINATOR_LOAD_IN_PROGRESS) while one is not loaded yet."""
        if self.broker.topic(self.topic_name) is None:
            return []
        return [self.host_at(index).read(handler) for index in range(self.partition_count)]
