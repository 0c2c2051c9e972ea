"""Connects coordinator shards to the partitions of their topic.

A shard is created when its partition's log opens, replays the log in steps, and then serves its keys. It is unloaded
when the partition is removed, moves or fails; all waiting requests are answered then.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any, Generic, NamedTuple, Self, TypeVar

from ...coordinator.hashing import partition_for
from ...coordinator.loading import Entry
from ...coordinator.shard import Decided, RecordFormat, Shard
from ...coordinator.timeline import Timeline
from ...coordinator.timers import Timers
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...storage.log import Log
from ..controller.controller import MetadataController
from ..event_times import EventTimes
from ..later import Later
from ..limits import Limits
from ..replica.appender import Appender
from ..replica.partition import Partition
from ..replica.partitions import Partitions
from ..settings import Settings
from ..turn import Turn
from .host import ShardHost
from .loader import Skip, log_entries

S = TypeVar("S", bound=Shard)
R = TypeVar("R")
T = TypeVar("T")


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
    base_sequence: int  # of its batches
    required_acks: int  # 1: appended also where too few replicas are in sync, and answered when they are enough
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
        self.left: dict[tuple[int, int], ShardHost[S]] = {}  # those that go on alone, by partition and node
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

    def leave(self, partition: Partition, node: int) -> None:
        """Another leader of a partition is elected instead of a node that is cut off, and does not hear of it."""
        host, key = self.hosts.get(partition.index), (partition.index, node)
        if host is None or not host.is_active or key in self.left:
            return self.closed(partition)
        del self.hosts[partition.index]
        host.leave()
        self.left[key] = host

    def forget_left(self, node: int) -> None:
        """A node that was cut off ends, or hears of the leaders that were elected instead of it."""
        for key in [one for one in self.left if one[1] == node]:
            self.left.pop(key).close()

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
        for host in (*self.hosts.values(), *self.left.values()):
            host.close()
        self.hosts.clear()
        self.left.clear()

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
        """Creates the topic if it does not exist. Raises ApiError, also where no controller is reached."""
        from ...coordinator.metadata import topics

        config = self.settings.config
        if self.has_topic:
            return
        if self.metadata.quorum.missing is not None or self.partitions.is_cut:
            raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)
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
        left = self.left_at(index)
        if left is not None:
            return left
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

    def left_at(self, index: int) -> ShardHost[S] | None:
        """Returns the coordinator that goes on alone at this node."""
        return self.left.get((index, self.partitions.node_id)) if self.left else None

    def _leads(self, partition: Partition) -> bool:
        return self.partitions.leads(partition)

    def host(self, key: Any) -> ShardHost[S]:
        """Returns the shard that coordinates a key. Raises ApiError(NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS)."""
        return self.host_at(self.partition_for(key))

    def write_at(
        self,
        index: int,
        name: str,
        handler: Callable[[S], Decided[R]],
        timeout_ms: int | None = None,
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
            if partition is None or self._leads(partition) or self.left_at(index) is not None:
                yield index

    async def read_all(self, handler: Callable[[S, int], T]) -> list[T]:
        """Runs a handler on every shard. Raises ApiError(COORDINATOR_LOAD_IN_PROGRESS) while one is not loaded."""
        if not self.has_topic:
            return []
        await self.open_all()
        return [self.host_at(index).read(handler) for index in self.in_order(self._indexes())]

    def in_order(self, indexes: Iterable[int]) -> Iterable[int]:
        """Returns partitions of the topic in the order in which Kafka asks all shards."""
        return indexes
