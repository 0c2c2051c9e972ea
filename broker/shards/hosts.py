"""Connects coordinator shards to the partitions of their topic.

A shard is created when its partition's log opens, replays the log in steps, and then serves its keys. It is unloaded
when the partition is removed, moves or fails; all waiting requests are answered then.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from time import perf_counter_ns
from typing import Any, Generic, NamedTuple, Self, TypeVar

from ...coordinator.hashing import partition_for
from ...coordinator.lifecycle import State
from ...coordinator.loading import Entry
from ...coordinator.runtime import Runtime
from ...coordinator.shard import RecordFormat, Result, Shard
from ...coordinator.timeline import Timeline
from ...coordinator.timers import Timers
from ...protocol import messages, records
from ...protocol.compression import NONE
from ...protocol.errors import ApiError, Errors
from ...protocol.records import Template
from ...storage.log import Log
from ...storage.segment import IndexDamaged
from .. import bugs
from ..clock import Alarm
from ..controller.controller import MetadataController
from ..event_times import EventTimes
from ..later import Later
from ..limits import Limits
from ..replica.appender import Appender, check_replicas
from ..replica.partition import Partition
from ..replica.partitions import Partitions
from ..settings import Settings
from ..turn import Turn
from .loader import Skip, log_entries

logger = logging.getLogger("ottla.org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime")
LOAD_STEP_NS = 2_000_000
PAUSED_MS = 100  # how often the timers of a paused node look whether it goes on
RELOAD_DELAY_MS, RELOAD_DELAY_MAX_MS = 100, 30_000  # doubled each time that loading fails
SKIPPED_TOLD_MAX = 10  # logged records per log that could not be loaded
S = TypeVar("S", bound=Shard)
R = TypeVar("R")
T = TypeVar("T")


class _Writer:
    """The runtime's writer for the partition of a shard."""

    def __init__(self, appender: Appender, partition: Partition, now_ms: Callable[[], int]) -> None:
        self.appender = appender
        self.partition = partition
        self.now_ms = now_ms

    def append(self, batch: bytearray, now_ms: int) -> tuple[int, int]:
        check_replicas(self.partition)
        done = self.appender.store(self.partition, batch, list(records.batches(batch)), now_ms)
        return done.base_offset, done.next_offset

    def max_batch_bytes(self) -> int:
        return self.partition.open_log().settings.max_message_bytes


class ShardHost(Generic[S]):
    """One shard on one partition, with its timers."""

    def __init__(self, owner: ShardHosts[S], partition: Partition) -> None:
        self.owner = owner
        self.turn = turn = owner.turn
        self.schedule = turn.schedule
        self.config = owner.settings.config
        self.partition = partition
        timeline = Timeline()
        timers = Timers(timeline.journal)
        self.shard: S = owner.make_shard(self, timeline, timers)
        self.runtime = Runtime(
            partition.name,
            self.shard,
            owner.format(),
            _Writer(owner.appender, partition, turn.now_ms),
            timeline,
            timers,
        )
        self.runtime.template = Template(codec=self.config[owner.codec_key] if owner.codec_key else NONE)
        self.runtime.timeout_code = int(Errors.COORDINATOR_NOT_AVAILABLE)
        self.runtime.bugs.on_bug = lambda name, bug: bugs.report(f"{partition.name}: {name}", bug)
        self.runtime.replay.on_skipped = self._skipped
        self.runtime.on_failed = self._reload_later
        self.load_ms = 0
        self._lingers_since_ms: int | None = None  # when the first write of the present batch was made
        self._alarm = Alarm(turn.schedule, partial(turn.event, self._tick))  # one alarm for all timers of the shard

    def begin(self) -> None:
        """Starts to load; small logs are loaded at once."""
        log = self.partition.open_log()
        now = self.schedule.monotonic_ms()
        entries, partition = self.owner.entries(log, self.runtime.replay.skip), self.partition
        self._steps = self.runtime.load(entries, partition.leader_epoch, now, partition.high_watermark, log.end_offset)
        self._began_ms = now
        self._load_some()

    def _load_some(self) -> None:
        schedule = self.schedule
        until_ns = schedule.work_ns() + LOAD_STEP_NS
        try:
            for _ in self._steps:
                if schedule.work_ns() >= until_ns:
                    self.owner.collector_rests(self)
                    self.turn.soon(self._load_some)
                    return
        except OSError as error:
            if not self.owner.partitions.io_failed(self.partition, error):
                self._reload_later()
            return
        except IndexDamaged:  # it is being rebuilt
            return self._reload_later()
        except Exception as error:
            bugs.report(f"loading {self.partition.name}", error)
            return self._reload_later()
        finally:
            if self.runtime.state is not State.LOADING:
                self.owner.collector_wakes(self)
        if self.runtime.state is State.ACTIVE:
            self.load_ms = schedule.monotonic_ms() - self._began_ms
            self.owner.failed_loads.pop(self.partition.index, None)
            if self.runtime.replay.skipped:
                logger.error(
                    "%s: skipped %d records that could not be loaded", self.partition.name, self.runtime.replay.skipped
                )
            self.partition.on_committed = self._committed
            self._committed(self.partition.high_watermark)
            self.turn.wrote(self)

    def _committed(self, high_watermark: int) -> None:
        self.runtime.advance(high_watermark)
        self.owner.advanced(self)

    def flush(self) -> None:
        """Appends the writes of this event."""
        runtime, schedule = self.runtime, self.schedule
        before, began_ns = runtime.last_written_offset, perf_counter_ns()
        runtime.flush()
        if runtime.last_written_offset != before:
            times = self.owner.times
            times.batch_flush.add((perf_counter_ns() - began_ns) // 1000)
            if self._lingers_since_ms is not None:
                lingered_ms = schedule.monotonic_ms() - self._lingers_since_ms
                if lingered_ms:
                    times.batch_linger.add(lingered_ms * 1000)
                else:
                    times.batch_linger.buckets[0] += 1
        self._lingers_since_ms = None
        self._alarm.set(runtime.next_deadline_ms())

    def _skipped(self, offset: int, error: Exception) -> None:
        if self.runtime.replay.skipped <= SKIPPED_TOLD_MAX:
            logger.error(
                "%s: skipped the record at offset %d: %s: %s", self.partition.name, offset, type(error).__name__, error
            )

    def _reload_later(self) -> None:
        """The state in memory differs from the log: creates the shard again and loads it, after a delay."""
        owner, index = self.owner, self.partition.index
        failures = owner.failed_loads[index] = owner.failed_loads.get(index, -1) + 1
        delay_ms = min(RELOAD_DELAY_MS << min(failures, 16), RELOAD_DELAY_MAX_MS)

        def reload() -> None:
            if owner.hosts.get(index) is self:
                owner.reload(self.partition)

        self.turn.later(delay_ms, reload)

    def _tick(self) -> None:
        if not self.owner.serves(self.partition):  # its node is paused, and so are its timers
            self.turn.later(PAUSED_MS, self._tick)
        elif self.runtime.state is State.ACTIVE:
            self.turn.wrote(self)
            self.runtime.tick(self.schedule.monotonic_ms())

    def write_later(self, name: str, handler: Callable[[], Result]) -> None:
        """Makes a write that no request waits for."""
        if self.runtime.state is State.ACTIVE:
            self.runtime.write(name, handler, lambda reply, error: None, self.schedule.monotonic_ms())
            self.turn.wrote(self)

    def write(
        self,
        name: str,
        handler: Callable[[S], Result[R]],
        on_done: Callable[[R | None, ApiError | None], None],
        timeout_ms: int | None = None,
        template: Template | None = None,
    ) -> None:
        """Runs a handler as a write. `name`: as in Kafka, for logs and metrics. `timeout_ms`: how long its reply may
        wait, if not the default of the family.
        """
        schedule, event = self.schedule, self.owner.times.events[name]
        now = schedule.monotonic_ms()
        deadline = now + (self.config[self.owner.timeout_key] if timeout_ms is None else timeout_ms)

        def done(reply: R | None, error: ApiError | None) -> None:
            event.ended(schedule.monotonic_ms() - now, error is not None)
            on_done(reply, error)

        began_ns = perf_counter_ns()
        self.runtime.write(name, partial(handler, self.shard), done, now, deadline_ms=deadline, template=template)
        event.processing.add((perf_counter_ns() - began_ns) // 1000)
        if self._lingers_since_ms is None:
            self._lingers_since_ms = now
        self.turn.wrote(self)

    def read(self, handler: Callable[[S, int], T]) -> T:
        return self.runtime.read(lambda as_of: handler(self.shard, as_of))

    def close(self) -> None:
        self.partition.on_committed = None
        self._alarm.end()
        self.runtime.close()
        self.owner.collector_wakes(self)


class Services(NamedTuple):
    """The services that the shards of every family use.
    `loading`: the shards of all families that take long to load.
    """

    turn: Turn
    settings: Settings
    partitions: Partitions
    appender: Appender
    metadata: MetadataController
    loading: dict[ShardHost[Any], None]
    limits: Limits


class ShardHosts(Generic[S]):
    """All shards of one topic on this broker."""

    topic_name: str
    timeout_key: str  # how long a reply waits for its records
    codec_key: str | None  # None for records that are never compressed
    partitions_key: str
    replication_key: str

    def __init__(self, services: Services) -> None:
        self.turn = services.turn
        self.settings = services.settings
        self.metadata_image = services.settings.image
        self.partitions = services.partitions
        self.appender = services.appender
        self.metadata = services.metadata
        self.loading = services.loading
        self.limits = services.limits
        self.hosts: dict[int, ShardHost[S]] = {}
        self.failed_loads: dict[int, int] = {}  # consecutive failures by partition
        self.times = EventTimes()
        self.begin: Callable[[ShardHost[S]], None] = ShardHost.begin  # the lab may delay it
        self._everywhere: Self | None = None

    def of_node(self, partitions: Partitions) -> Self:
        """Returns the coordinators as the connections of one node see them: only those on partitions that it leads."""
        found = copy(self)
        found.partitions = partitions
        found._everywhere = self
        return found

    @property
    def everywhere(self) -> Self:
        """The coordinators of all nodes."""
        return self if self._everywhere is None else self._everywhere

    # nodes

    def serves(self, partition: Partition) -> bool:
        """Whether the node that leads a partition answers."""
        return self.metadata.nodes.reaches(partition.leader, None)

    def is_reachable(self, index: int, node: int | None) -> bool:
        """Whether a node can ask the coordinator on a partition of the topic. `node`: None for any."""
        partition = self.partitions.by_name.get((self.topic_name, index))
        return partition is None or not partition.has_leader or self.metadata.nodes.reaches(node, partition.leader)

    # environment of the shards

    def now_ms(self) -> int:
        return self.turn.schedule.now_ms()

    def monotonic_ms(self) -> int:
        return self.turn.schedule.monotonic_ms()

    # differences between the families

    def make_shard(self, host: ShardHost[S], timeline: Timeline, timers: Timers) -> S:
        raise NotImplementedError

    def format(self) -> RecordFormat:
        raise NotImplementedError

    def entries(self, log: Log, skip: Skip) -> Iterator[Entry | None]:
        """Yields the entries of a log to replay."""
        return log_entries(log, skip)

    def topic_configs(self) -> dict[str, str]:
        raise NotImplementedError

    def partition_for(self, key: Any) -> int:
        """Returns the partition that coordinates a key."""
        return partition_for(key, self.partition_count)

    def advanced(self, host: ShardHost[S]) -> None:
        """More of a shard's records are committed."""

    # partitions

    def opened(self, partition: Partition) -> None:
        """A partition of the topic has opened: loads its shard."""
        host = self.hosts[partition.index] = ShardHost(self, partition)
        self.begin(host)

    def closed(self, partition: Partition) -> None:
        host = self.hosts.get(partition.index)
        if host is not None and host.partition is partition:
            del self.hosts[partition.index]
            host.close()

    def reload(self, partition: Partition) -> None:
        """Unloads a shard and loads it again, as after moving a coordinator away and back."""
        self.closed(partition)
        if partition.log is not None:
            self.opened(partition)

    def collector_rests(self, host: ShardHost[S]) -> None:
        """Pauses the garbage collector during a long load, which creates only objects that stay."""
        self.loading[host] = None
        gc.disable()

    def collector_wakes(self, host: ShardHost[S]) -> None:
        loading = self.loading
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
    def has_topic(self) -> bool:
        return self.topic_name in self.metadata_image.topics

    @property
    def partition_count(self) -> int:
        topic = self.metadata_image.topics.get(self.topic_name)
        count = 0 if topic is None else self.metadata_image.partition_counts.get(topic.id, 0)
        return count or int(self.settings.config[self.partitions_key])

    async def create_topic(self) -> None:
        """Creates the topic if it does not exist. Raises ApiError."""
        from ...coordinator.metadata import topics

        config = self.settings.config
        if self.has_topic:
            return
        r = messages.CreateTopicsRequest
        wanted = r.CreatableTopic(
            name=self.topic_name,
            num_partitions=config[self.partitions_key],
            replication_factor=config[self.replication_key],
            configs=[r.CreatableTopicConfig(name=name, value=value) for name, value in self.topic_configs().items()],
        )
        controller = self.metadata.controller
        await self.metadata.submit(lambda: topics.create_topics(controller, [wanted]))

    # requests

    def host_at(self, index: int) -> ShardHost[S]:
        """Raises ApiError(NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS)."""
        host = self.hosts.get(index)
        if host is None:
            partition = self.partitions.by_name.get((self.topic_name, index))
            if partition is None or partition.offline or partition.log is not None or not self._leads(partition):
                raise ApiError(Errors.NOT_COORDINATOR)
            if partition.opening is not None:
                partition.open_log()
                host = self.hosts.get(index)
            if host is None:
                raise ApiError(Errors.COORDINATOR_LOAD_IN_PROGRESS)
        elif not self._leads(host.partition):
            raise ApiError(Errors.NOT_COORDINATOR)
        return host

    def _leads(self, partition: Partition) -> bool:
        return self.partitions.leads(partition)

    def host(self, key: Any) -> ShardHost[S]:
        """Returns the shard that coordinates a key. Raises ApiError(NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS)."""
        return self.host_at(self.partition_for(key))

    def write_at(
        self, index: int, name: str, handler: Callable[[S], Result[R]], timeout_ms: int | None = None
    ) -> Later[R]:
        """Runs a handler as a write of a shard; completes with its reply when its records are committed.
        Fails with ApiError.
        """
        later: Later[R] = Later()
        self.host_at(index).write(name, handler, later.settle, timeout_ms)
        return later

    async def open_all(self) -> None:
        """Opens the topic's logs that are not open yet, one per turn of the loop,
        for requests that need many shards.
        """
        for index in range(self.partition_count):
            partition = self.partitions.by_name.get((self.topic_name, index))
            if partition is not None and partition.opening is not None and self._leads(partition):
                partition.opening()
                await self.turn.next()

    def _indexes(self) -> Iterator[int]:
        """Yields the partitions of the topic whose coordinators are here."""
        for index in range(self.partition_count):
            partition = self.partitions.by_name.get((self.topic_name, index))
            if partition is None or self._leads(partition):
                yield index

    async def read_all(self, handler: Callable[[S, int], T]) -> list[T]:
        """Runs a handler on every shard. Raises ApiError(COORDINATOR_LOAD_IN_PROGRESS) while one is not loaded."""
        if not self.has_topic:
            return []
        await self.open_all()
        return [self.host_at(index).read(handler) for index in self._indexes()]
