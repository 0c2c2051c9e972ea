"""The group coordinators: the shards of `__consumer_offsets` and their environment."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ...coordinator.group.environment import OffsetExpiry
from ...coordinator.hashing import TABLE_SIZE, computed_order, concurrent_order, partition_hash
from ...coordinator.journal import Answer
from ...coordinator.loading import Entry
from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.shard import Decided, RecordFormat
from ...coordinator.timeline import Timeline
from ...coordinator.timers import Timers
from ...protocol.config_def import numbers_of
from ...protocol.errors import ApiError
from ...protocol.records import Template
from ...storage.log import Log
from ...storage.producers import Verification
from ..config.config import ConfigError
from ..event_times import Rates
from ..later import Later
from ..replica.partition import Partition
from ..shards.host import ShardHost
from ..shards.hosts import Services, ShardHosts
from ..shards.loader import Skip, live_entries
from .room import Room
from .streams_topics import StreamsTopics
from .topic_image import CommittedTopics

if TYPE_CHECKING:
    from random import Random

    from ...coordinator.group.assignors.registry import Assignors
    from ...coordinator.group.shard import GroupShard
    from ...coordinator.transaction.shard import Producer
    from ..limits import Limits
    from .chronicle import Chronicle
    from .topology_descriptions import TopologyDescriptions

R = TypeVar("R")
T = TypeVar("T")
TOPIC_NAME = "__consumer_offsets"
_hash_of_partition = partial(partition_hash, TOPIC_NAME)
STEP_NS = 1_000_000  # how long assignments are computed before other requests get a turn
ASSIGNORS = "group.consumer.assignors"
DESCRIPTIONS = "group.streams.topology.description.plugin.class"


class GroupCoordinators(ShardHosts["GroupShard"]):
    """All group shards on this broker, and their environment (`coordinator.group.environment.Environment`)."""

    topic_name = TOPIC_NAME
    timeout_key = "offsets.commit.timeout.ms"
    codec_key = "offsets.topic.compression.codec"
    base_sequence = 0
    required_acks = 1
    partitions_key = "offsets.topic.num.partitions"
    replication_key = "offsets.topic.replication.factor"

    def __init__(self, services: Services, new_id: Callable[[], bytes], chance: Random) -> None:
        super().__init__(services)
        self.new_id = new_id
        self.image = CommittedTopics(self.metadata_image, services.metadata)
        self._assignors: Assignors | None = None
        self.room = Room(self.hosts, services.limits, self.config, self.monotonic_ms, self.turn)
        self.counts: Counter[str] = Counter()  # of all shards, including unloaded ones
        self._rates = Rates(self._uptime_ms())
        self.streams_topics = StreamsTopics(services.metadata, self.monotonic_ms)
        self._steps: deque[Iterator[None]] = deque()  # what is done in steps
        self.chronicle = self._chronicle()
        self.descriptions = self._descriptions(services.limits, chance)

    def _chronicle(self) -> Chronicle | None:
        """The timelines of groups; None without the lab."""
        events_max = self.settings.config["ottla.lab.group.events"]
        if self.settings.config["ottla.lab.port"] < 0 or not events_max:
            return None
        from .chronicle import Chronicle

        return Chronicle(self, events_max)

    def _descriptions(self, limits: Limits, chance: Random) -> TopologyDescriptions | None:
        """The descriptions of topologies of streams groups; None without the plug-in that keeps them."""
        if self.settings.config[DESCRIPTIONS] is None:
            return None
        from .topology_descriptions import TopologyDescriptions

        return TopologyDescriptions(self.turn, chance, limits, self.counts)

    def start(self) -> None:
        """Begins the rounds in which descriptions of unused topologies are deleted."""
        descriptions = self.descriptions
        if descriptions is not None:
            self.turn.every(
                lambda: self.settings.config["offsets.retention.check.interval.ms"],
                lambda: self.turn.background(descriptions.clean(self)),
            )

    @property
    def assignors(self) -> Assignors:
        if self._assignors is None:
            from ...coordinator.group.assignors.registry import Assignors

            self._assignors = Assignors(self.settings.config[ASSIGNORS])
        return self._assignors

    def check(self) -> None:
        """Loads the configured assignors, so that an error is reported at start. Raises ConfigError."""
        where = self.settings.config.where.get(ASSIGNORS)
        if where is not None:
            try:
                self.assignors  # noqa: B018
            except ValueError as error:
                raise ConfigError(where, str(error)) from None

    def _uptime_ms(self) -> int:
        return self.turn.schedule.work_ns() // 1_000_000

    def rates_now(self) -> dict[str, float]:
        """Returns the rates per second of the counts, by the machine's time."""
        return self._rates.of(self.counts, self._uptime_ms())

    # the environment of the shards

    @property
    def offset_expiry(self) -> OffsetExpiry:
        """What the emulated release does (KIP-211, KIP-496)."""
        release = self.settings.config.emulates
        if release is None or numbers_of(release) >= (2, 4):
            return OffsetExpiry.UNSUBSCRIBED
        return OffsetExpiry.BY_COMMIT if numbers_of(release) < (2, 1) else OffsetExpiry.WITHOUT_MEMBERS

    def background(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        self.turn.in_thread(work, done)

    def in_steps(self, steps: Iterator[None]) -> None:
        self._steps.append(steps)
        if len(self._steps) == 1:
            self._take_steps()

    def _take_steps(self) -> None:
        """Takes steps for some time, of one after another, and goes on when other events had their turn."""
        schedule, waiting = self.turn.schedule, self._steps
        until_ns = schedule.work_ns() + STEP_NS
        try:
            while waiting:
                if next(waiting[0], self) is self:  # it has come to its end
                    waiting.popleft()
                if schedule.work_ns() >= until_ns:
                    return waiting.rotate(-1)
        except Exception:
            waiting.popleft()
            raise
        finally:
            if waiting:
                self.turn.soon(self._take_steps)

    def config(self, name: str) -> Any:
        return self.settings.value(name)

    def group_config(self, group_id: str, name: str) -> Any:
        """Returns a group's own value within the broker's bounds, or the broker's value (KIP-1240)."""
        return self.settings.of_group(group_id, name)

    def _at(self, node: int | None) -> GroupCoordinators:
        """Returns the environment of the shards of a node, which may have dynamic configurations of its own."""
        settings = self.settings.at(node)
        if settings is self.settings:
            return self
        found = copy(self)
        found.settings = settings
        return found

    # the shards

    def make_shard(self, host: ShardHost[GroupShard], timeline: Timeline, timers: Timers) -> GroupShard:
        from ...coordinator.group.shard import GroupShard

        shard = GroupShard(timeline, timers, self._at(host.partition.leader), self.assignors)
        shard.write = host.write_later
        shard.counts = self.counts
        return shard

    def opened(self, partition: Partition) -> None:
        super().opened(partition)
        if self.chronicle is not None:
            self.chronicle.follow(self.hosts[partition.index])

    def format(self) -> RecordFormat:
        from ...coordinator.group.format import GroupFormat

        return GroupFormat()

    def entries(self, log: Log, skip: Skip) -> Iterator[Entry | None]:
        return live_entries(log, skip)

    def topic_configs(self) -> dict[str, str]:
        segment_bytes = str(self.settings.config["offsets.topic.segment.bytes"])
        return {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": segment_bytes}

    # metadata

    def metadata_changed(self, delta: MetadataDelta) -> None:
        names = list(delta.sized_topics())
        if names:
            self.image.changed(names, created=bool(delta.created))
            for host in self.hosts.values():
                if host.shard.groups_by_topic:
                    self.in_steps(host.shard.topics_changed(names, host.runtime.aftermath.when_settled))
        if delta.removed:
            self._topics_removed({topic.id: topic.name for topic in delta.removed})

    def _topics_removed(self, names: dict[bytes, str]) -> None:
        """`names`: names of the removed topics by id."""
        from ...coordinator.group.offsets.deletion import of_deleted_topics
        from ...coordinator.group.share.share_partitions import topics_deleted

        for host in list(self.hosts.values()):
            self.in_steps(of_deleted_topics(host.shard, names))
            if len(host.shard.initializations):
                host.write_later(
                    "on-topic-deleted",
                    lambda shard=host.shard: topics_deleted(shard, frozenset(names)),  # type: ignore[misc]
                )

    def expire(self) -> None:
        """Expires offsets and groups in all shards now, without waiting for the next round."""
        from ...coordinator.group.deletion import EXPIRE

        for host in self.hosts.values():
            host.write_later(EXPIRE, host.shard.expire)

    # requests

    def write(self, group_id: str, name: str, handler: Callable[[GroupShard], Decided[R]]) -> Later[R]:
        """Runs a handler as a write of the group's shard; completes with its reply when its records are committed.
        Fails with ApiError.
        """
        return self.write_at(self.partition_for(group_id), name, handler)

    def write_in_transaction(
        self,
        index: int,
        producer: Producer,
        verification: Verification | None,
        handler: Callable[[GroupShard], Decided[R]],
    ) -> Later[R]:
        """Like `write`, for records that take effect when the producer's transaction is committed.
        Fails with ApiError.
        """
        later: Later[R] = Later()
        host = self.host_at(index)
        if self.appender.verifies():
            host.partition.open_log().producers.check_verified(producer.id, producer.epoch, verification)
        template = Template(
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=self.base_sequence,
            transactional=True,
        )
        host.write("txn-commit-offset", handler, later.settle, template=template)
        return later

    def exchange(self, group_id: str, name: str, handler: Callable[[GroupShard, Answer[T]], Decided[None]]) -> Later[T]:
        """Like `write`, for a handler that sends its reply itself, now or after other members have acted.
        Fails with ApiError.

        A reply is sent after the append of the batch in which it was decided, and not if that append fails.
        """
        later: Later[T] = Later()

        def done(reply: None, error: ApiError | None) -> None:
            if error is not None:
                later.fail(error)

        host = self.host(group_id)
        answer = Answer(host.runtime.journal, later.finish)
        host.write(name, lambda shard: handler(shard, answer), done)
        return later

    def read(self, group_id: str, handler: Callable[[GroupShard, int], T]) -> T:
        """Runs a handler on the committed state. Raises ApiError."""
        return self.host(group_id).read(handler)

    def in_order(self, indexes: Iterable[int]) -> list[int]:
        return concurrent_order(indexes, _hash_of_partition)

    def in_order_of_some(self, indexes: Iterable[int]) -> list[int]:
        """Returns partitions in the order in which Kafka asks the shards of several groups, which were named so."""
        return computed_order(indexes, TABLE_SIZE, _hash_of_partition)
