"""The broker without its sockets: directories, metadata, partitions, and the order in which things happen.

An input event (a frame, a timer, the end of an fsync) is handled to its end, and then `settle` carries out what it caused: writes of
coordinators are appended, the high watermarks that followed are moved, partition by partition, until nothing is left. So a reply is
parked before anything can release it, and nothing is entered twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from ..coordinator.metadata.state import BROKER, MetadataState, Topic
from ..protocol.config_def import keys, topic_synonyms
from ..protocol.errors import ApiError, Errors
from ..storage.files import Files, HandlePool
from ..storage.settings import LogSettings
from . import replication
from .clock import Schedule
from .config import Config
from .coordinators import GroupCoordinators
from .directories import LogDirectory, open_directory
from .hosting import Coordinators, Host
from .later import Later, drive
from .metadata import MetadataController
from .metrics import Metrics
from .partition import Partition
from .partitions import Partitions
from .producer_ids import ProducerIds
from .replication import Policies
from .share_coordinators import ShareCoordinators
from .sharing import Sharing
from .transaction_coordinators import TransactionCoordinators

logger = logging.getLogger("ottla")
INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))


class Broker:
    """One broker process: its state, and what its API handlers call."""

    def __init__(self, config: Config, schedule: Schedule, files: Files, new_id: Callable[[], bytes]) -> None:
        self.config = config
        self.schedule = schedule
        self.files = files
        self.new_id = new_id
        self.pool = HandlePool(files)
        self.metrics = Metrics()
        self.policies = Policies()
        self.policies.configure(config["ottla.high.watermark"])
        self.image = MetadataState()
        self.directories: list[LogDirectory] = []
        self.cluster_id = ""
        self.partitions = Partitions(self)
        self.loading: dict[Host[Any], None] = {}  # shards that take more than a moment
        self.groups = GroupCoordinators(self)
        self.share_states = ShareCoordinators(self)
        self.transactions = TransactionCoordinators(self)
        families: tuple[Coordinators[Any], ...] = (self.groups, self.share_states, self.transactions)
        self.coordinators = {one.topic_name: one for one in families}
        self.producer_ids = ProducerIds(self)
        self.sharing = Sharing(self)
        self.metadata = MetadataController(self)
        self.extensions: dict[str, Any] = {}  # state of API families, made when they are first used
        self.fatal: Callable[[str], None] = lambda reason: None
        self._moves: dict[Partition, None] = {}
        self._unflushed: dict[Any, None] = {}  # coordinators with writes of this event
        self._settling = self._settles_soon = False
        self._topic_defaults = config.topic_defaults()
        self._values: dict[str, Any] = {}  # of broker keys
        self._settings: dict[str, tuple[LogSettings, dict[str, Any]]] = {}  # by topic, until a configuration changes

    # start and stop

    def start(self) -> None:
        """Opens the directories and the metadata. Partitions go on opening behind it. DirectoryError, OSError."""
        wanted = self.config["ottla.cluster.id"] or None
        for path in self.config.log_dirs:
            directory, self.cluster_id = open_directory(self.files, path.rstrip("/"), self.config.node_id, wanted, self.new_id)
            wanted = self.cluster_id
            self.directories.append(directory)
        self.metadata.start()
        self.partitions.start()
        self.settle()

    def stop(self) -> None:
        """Closes every log cleanly. What is parked is answered by nobody: the connections are gone."""
        for one in self.coordinators.values():
            one.stop()
        self.partitions.stop()
        self.metadata.stop()
        self.partitions.finish()
        self.pool.close_all()

    # the order of events

    def moved(self, partition: Partition) -> None:
        """The end of a partition's log, or what the followers have, may have moved."""
        self._moves[partition] = None

    def wrote(self, coordinator: Any) -> None:
        """A coordinator has writes to append when the event ends: it has a method `flush`."""
        self._unflushed[coordinator] = None

    def settle(self) -> None:
        """Carries out what the event caused. To be called at the end of every input event, or `settle_soon`."""
        if self._settling:
            return
        self._settling = True
        try:
            while self._moves or self._unflushed:
                while self._unflushed:
                    coordinator = next(iter(self._unflushed))
                    del self._unflushed[coordinator]
                    coordinator.flush()
                self._move_all()
        finally:
            self._settling = False

    def settle_moves(self) -> None:
        """Moves high watermarks now, and leaves what is to be written to shards of coordinators."""
        if self._moves and not self._settling:
            self._settling = True
            try:
                self._move_all()
            finally:
                self._settling = False

    def settle_soon(self) -> None:
        """As `settle`; what is written to shards waits until this turn has taken in all requests that had come, which makes a batch of theirs."""
        self.settle_moves()
        if self._unflushed and not self._settles_soon:
            self._settles_soon = True
            self.schedule.soon(self._settle_turn)

    def _settle_turn(self) -> None:
        self._settles_soon = False
        self.settle()

    def _move_all(self) -> None:
        while self._moves:
            partition = next(iter(self._moves))
            del self._moves[partition]
            self._move(partition)

    def _move(self, partition: Partition) -> None:
        if partition.log is None:
            return
        now = self.schedule.monotonic_ms()
        end, again_ms = replication.replicated_offset(partition.follower, partition, now)
        bound = partition.leader_bound()
        unflushed = bound < partition.end_offset
        partition.advance(min(end, bound))
        if again_ms is not None:
            self.schedule.later(again_ms, lambda: self.event(lambda: self.moved(partition)))
        if unflushed:
            self.partitions.flush(partition)

    def event(self, call: Callable[[], Any]) -> None:
        """Runs `call` as an input event."""
        call()
        self.settle()

    def background(self, steps: Coroutine[Later[Any], None, None]) -> None:
        """Runs what nobody waits for; an exception there is a fault of ours, and is counted as one."""

        def done(finished: Later[None]) -> None:
            if finished.error is not None:
                self.metrics.bugs += 1
                logger.error("%s failed", steps, exc_info=finished.error)

        drive(steps).when_done(done)

    def pause(self, ms: float) -> Later[None]:
        """Finished after so many milliseconds, as an input event."""
        later: Later[None] = Later()
        timer = self.schedule.later(ms, lambda: self.event(lambda: later.finish(None)))
        later.on_cancel = timer.cancel
        return later

    def within(self, ms: float, awaited: Later[Any]) -> Later[Any]:
        """Finished with what is awaited; fails with REQUEST_TIMED_OUT where that takes too long."""
        later: Later[Any] = Later()
        if not awaited.done:
            timer = self.schedule.later(ms, lambda: self.event(lambda: later.fail(ApiError(Errors.REQUEST_TIMED_OUT))))
            awaited.when_done(lambda _: timer.cancel())
        awaited.when_done(lambda found: later.settle(found.result, found.error))
        return later

    def note_append(self, partition: Partition) -> None:
        """A partition's log grew."""
        follower = partition.follower
        if follower.policy is not replication.IMMEDIATE:
            replication.on_append(follower, partition.end_offset, self.schedule.monotonic_ms(), self.policies.chance)
        self._moves[partition] = None
        log = partition.log
        if log is not None and log.wants_flush_to > log.recovery_point and not partition.flushing:
            self.partitions.flush(partition)

    def opened(self, partition: Partition) -> None:
        """A partition's log can be read and written."""
        self._moves[partition] = None
        family = self.coordinators.get(partition.topic)
        if family is not None:
            family.opened(partition)

    def closed(self, partition: Partition) -> None:
        """A partition went, or its directory failed."""
        family = self.coordinators.get(partition.topic)
        if family is not None:
            family.closed(partition)
        self.sharing.reload(partition)

    def hosts(self) -> Iterator[Host[Any]]:
        """Every coordinator's shard, with the partition it is on."""
        for family in self.coordinators.values():
            yield from family.hosts.values()

    # topics

    def topic(self, name: str) -> Topic | None:
        found: Topic | None = self.image.topics.get(name)
        return found

    def partition(self, name: str, index: int) -> Partition:
        """ApiError(UNKNOWN_TOPIC_OR_PARTITION) where there is none."""
        found = self.partitions.by_name.get((name, index))
        if found is None:
            raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        return found

    def is_internal(self, name: str) -> bool:
        return name in INTERNAL_TOPICS

    def topic_config(self, name: str) -> dict[str, Any]:
        """The parsed values of all of a topic's keys."""
        return self._parsed(name)[1]

    def settings(self, name: str) -> LogSettings:
        return self._parsed(name)[0]

    def _parsed(self, name: str) -> tuple[LogSettings, dict[str, Any]]:
        cached = self._settings.get(name)
        if cached is not None:
            return cached
        own = self.image.config_of(2, name)
        values = {}
        dynamic = self.dynamic_topic_defaults()
        for key in keys("topic").values():
            text = own.get(key.name, dynamic.get(key.name, self._topic_defaults.get(key.name, key.default)))
            values[key.name] = key.parse(text)
        if values["internal.segment.bytes"] is not None:
            values["segment.bytes"] = values["internal.segment.bytes"]
        values["cleanup.policy"] = tuple(values["cleanup.policy"])
        made = self._settings[name] = (LogSettings.of(values), values)
        return made

    def value(self, name: str) -> Any:
        """A broker key's value in force: the dynamic one where there is one."""
        if name not in self._values:
            text = self._dynamic_configs().get(name)
            self._values[name] = self.config[name] if text is None else keys("broker")[name].parse(text)
        return self._values[name]

    def _dynamic_configs(self) -> dict[str, str]:
        """This broker's own dynamic configs, over those of all brokers."""
        return {**self.image.config_of(BROKER, ""), **self.image.config_of(BROKER, str(self.config.node_id))}

    def dynamic_topic_defaults(self) -> dict[str, str]:
        """What dynamic broker configs say of topic keys."""
        dynamic = self._dynamic_configs()
        if not dynamic:
            return {}
        return {key: dynamic[name] for key, names in topic_synonyms().items() for name in names if name in dynamic}

    def forget_settings(self, topic: str) -> None:
        """The topic is another one now."""
        self._settings.pop(topic, None)

    def configs_changed(self) -> None:
        """A configuration changed: what follows from it is computed anew."""
        self._settings.clear()
        self._values.clear()
        self.groups.configs_changed()
        self.partitions.configure()

    # trouble

    def directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        """An I/O error in a log directory: its partitions go offline; without any directory left the broker ends, as Kafka does."""
        if directory.failed:
            return
        directory.failed = True
        logger.error("log directory %s failed: %s", directory.path, error)
        self.partitions.go_offline(directory)
        if all(d.failed for d in self.directories):
            self.fatal(f"all log directories have failed; the last one, {directory.path}: {error}")
