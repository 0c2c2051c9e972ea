"""All partitions of this broker: made and removed as the metadata says, opened a step at a time, flushed, aged and checkpointed."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

from ..protocol.errors import ApiError, Errors
from ..storage import retention
from ..storage.layout import DIRECTORY_DELETED, partition_directory
from ..storage.log import Log
from ..storage.recovery import open_log
from . import directories
from .cleaner import Cleaner
from .directories import LogDirectory
from .partition import Partition

if TYPE_CHECKING:
    from .broker import Broker

logger = logging.getLogger("ottla")
STEP_MS = 2
PAUSE_MS = 1


class Partitions:
    """The partitions by name and by topic id."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.by_name: dict[tuple[str, int], Partition] = {}
        self.by_id: dict[tuple[bytes, int], Partition] = {}
        self.directory_of: dict[Partition, LogDirectory] = {}
        self.cleaner = Cleaner(broker)
        self.ready = False
        self._opening: deque[Generator[None, None, None]] = deque()
        self._deleted: list[tuple[int, Log]] = []
        self._stopped = False

    # life

    def start(self) -> None:
        """Makes a partition of everything the metadata knows, and begins opening their logs."""
        image = self.broker.image
        for topic in image.topics.values():
            for state in image.partitions_of(topic.id):
                if self.broker.config.node_id in state.replicas:
                    self._add(topic.name, state)
        self._open_some()
        schedule, config = self.broker.schedule, self.broker.config
        schedule.later(config["log.retention.check.interval.ms"], self._retention_round)
        schedule.later(config["log.flush.offset.checkpoint.interval.ms"], self._checkpoint_round)
        schedule.later(config["log.initial.task.delay.ms"], self._remove_files_round)
        schedule.later(1000, self._flush_round)
        self.cleaner.start()

    def _add(self, topic: str, state: Any, created: bool = False) -> Partition:
        partition = Partition(topic, state.index, state.topic_id, state.leader_epoch)
        self.by_name[topic, state.index] = partition
        self.by_id[state.topic_id, state.index] = partition
        directory = self._directory_for(state, topic)
        self.directory_of[partition] = directory
        self._configure(partition)
        steps = self._open(partition, directory, created)
        if created or directory.clean:
            partition.opening = lambda: self._open_at_once(partition, steps)
        if created:
            self._open_at_once(partition, steps)
        else:
            self._opening.append(steps)
        return partition

    def _directory_for(self, state: Any, topic: str) -> LogDirectory:
        all_of_them = [d for d in self.broker.directories if not d.failed] or self.broker.directories
        for directory in all_of_them:
            if directory.id in state.directories:
                return directory
        for directory in all_of_them:
            if self.broker.files.exists(f"{directory.path}/{partition_directory(topic, state.index)}"):
                return directory
        return min(all_of_them, key=lambda d: sum(1 for one in self.directory_of.values() if one is d))

    def _open(self, partition: Partition, directory: LogDirectory, created: bool) -> Generator[None, None, None]:
        broker, key = self.broker, (partition.topic, partition.index)
        path = f"{directory.path}/{partition_directory(*key)}"
        settings = broker.settings(partition.topic)
        try:
            log = yield from open_log(
                broker.pool,
                path,
                settings,
                broker.schedule.now_ms(),
                clean=created or directory.clean,
                recovery_point=directory.recovery_points.get(key, 0),
                start_offset=directory.log_starts.get(key, 0),
            )
            if log.topic_id is not None and log.topic_id != partition.topic_id:
                # what lies there is of a topic that was deleted: it goes, and the partition begins empty
                log.move(f"{path}.{broker.new_id().hex()}{DIRECTORY_DELETED}")
                self._deleted.append((broker.schedule.now_ms() + settings.file_delete_delay_ms, log))
                log = yield from open_log(broker.pool, path, settings, broker.schedule.now_ms(), clean=True)
            if log.topic_id is None:
                log.set_topic_id(partition.topic_id)
            log.assign_epoch(partition.leader_epoch, log.end_offset)
        except OSError as error:
            partition.opening = None
            partition.offline = True
            broker.directory_failed(directory, error)
            return
        log.first_dirty_offset = max(log.first_dirty_offset, directory.cleaner_offsets.get(key, 0))
        partition.log = log
        partition.opening = None
        partition.reset_high_watermark(directory.high_watermarks.get(key, 0))
        broker.opened(partition)

    def _open_at_once(self, partition: Partition, steps: Generator[None, None, None]) -> None:
        partition.opening = None
        for _ in steps:
            continue

    def _open_some(self) -> None:
        """Opens logs for a moment; comes back as long as some are left."""
        if self._stopped:
            return
        schedule = self.broker.schedule
        until = schedule.monotonic_ms() + STEP_MS
        while self._opening:
            steps = self._opening[0]
            if next(steps, self) is self:
                self._opening.popleft()
            if schedule.monotonic_ms() >= until:
                schedule.later(PAUSE_MS, lambda: self.broker.event(self._open_some))
                return
        if not self.ready:
            self.ready = True
            for directory in self.broker.directories:
                directory.recovery_points.clear()
            logger.info("all %d partitions are open", len(self.by_name))

    def metadata_changed(self, record: Any, topic_before: str | None) -> None:
        """A metadata record was committed and is in the image."""
        kind = type(record).__name__
        image = self.broker.image
        if kind == "PartitionRecord":
            name = image.topic_names[record.topic_id]
            state = image.partitions[record.topic_id, record.partition_id]
            if (name, record.partition_id) not in self.by_name and self.broker.config.node_id in state.replicas:
                self._add(name, state, created=True)
            self.broker.groups.topic_changed(name, created=record.partition_id == 0)
        elif kind == "RemoveTopicRecord" and topic_before is not None:
            self.broker.forget_settings(topic_before)
            for key in [k for k in self.by_name if k[0] == topic_before]:
                self._remove(self.by_name[key])
            self.broker.groups.topic_removed(topic_before, record.topic_id)
            self.broker.share_states.topic_removed(topic_before, record.topic_id)
        elif kind == "PartitionChangeRecord":
            partition = self.by_id.get((record.topic_id, record.partition_id))
            if partition is not None:
                partition.leader_epoch = image.partitions[record.topic_id, record.partition_id].leader_epoch
        elif kind == "ConfigRecord":
            self.broker.configs_changed()
        elif kind == "FeatureLevelRecord":
            self.broker.sharing.features_changed()

    def _remove(self, partition: Partition) -> None:
        del self.by_name[partition.topic, partition.index]
        del self.by_id[partition.topic_id, partition.index]
        directory = self.directory_of.pop(partition)
        self.broker.closed(partition)
        log, partition.log = partition.log, None
        partition.offline = False
        partition.opening = None
        partition.fail_parked(ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION))
        partition.disturb()
        if log is None:
            return
        try:
            log.move(f"{log.directory}.{self.broker.new_id().hex()}{DIRECTORY_DELETED}")
        except OSError as error:
            self.broker.directory_failed(directory, error)
            return
        due = self.broker.schedule.now_ms() + log.settings.file_delete_delay_ms
        self._deleted.append((due, log))

    def configure(self) -> None:
        """Configurations or policies changed."""
        for partition in self.by_name.values():
            self._configure(partition)
            self.broker.moved(partition)

    def _configure(self, partition: Partition) -> None:
        broker = self.broker
        settings = broker.settings(partition.topic)
        if partition.log is not None:
            partition.log.settings = settings
        partition.min_insync_replicas = broker.topic_config(partition.topic)["min.insync.replicas"]
        policy = broker.policies.of(partition.topic, partition.index, broker.is_internal(partition.topic))
        follower = partition.follower
        if policy != follower.policy:
            follower.policy = policy
            follower.replicated = max(follower.replicated, partition.high_watermark)
            follower.waiting.clear()
            if policy.kind == "lag" and partition.end_offset > partition.high_watermark:
                follower.waiting.append((partition.end_offset, broker.schedule.monotonic_ms() + policy.lag_ms))

    def go_offline(self, directory: LogDirectory) -> None:
        for partition, where in self.directory_of.items():
            if where is directory:
                self.broker.closed(partition)
                partition.log = None
                partition.opening = None
                partition.offline = True
                partition.fail_parked(ApiError(Errors.KAFKA_STORAGE_ERROR))
                partition.disturb()

    # durability

    def flush(self, partition: Partition) -> None:
        """Makes a partition's log durable in a thread; appends that wait for it share the sync."""
        log = partition.log
        if partition.flushing or log is None:
            return
        partition.flushing = True
        job = log.flush_job()
        schedule, metrics = self.broker.schedule, self.broker.metrics

        def done(took_ns: Any, error: BaseException | None) -> None:
            partition.flushing = False
            if partition.log is not log:
                return
            if error is not None:
                failure = error if isinstance(error, OSError) else OSError(str(error))
                self.broker.event(lambda: self.broker.directory_failed(self.directory_of[partition], failure))
                return
            metrics.fsyncs += 1
            metrics.fsync_ns += took_ns
            log.flushed(job, schedule.monotonic_ms())
            self.broker.event(lambda: self.broker.moved(partition))

        schedule.in_thread(job.run, done)

    def _opened(self) -> Iterator[tuple[Partition, Log]]:
        for partition in list(self.by_name.values()):
            if partition.log is not None:
                yield partition, partition.log

    def _flush_round(self) -> None:
        if self._stopped:
            return
        now = self.broker.schedule.now_ms()
        for partition, log in self._opened():
            since = log.unflushed_since_ms
            if since is not None and log.end_offset > log.recovery_point and now - since >= log.settings.flush_ms:
                self.flush(partition)
        self.broker.schedule.later(1000, self._flush_round)

    # ageing

    def _retention_round(self) -> None:
        if self._stopped:
            return
        self.broker.event(self.apply_retention)
        self.broker.schedule.later(self.broker.config["log.retention.check.interval.ms"], self._retention_round)

    def apply_retention(self) -> None:
        """Takes from every log what has had its time."""
        now = self.broker.schedule.now_ms()
        for partition, log in self._opened():
            try:
                log.remove_segments(retention.due(log, partition.high_watermark, now), now)
            except OSError as error:
                self.broker.directory_failed(self.directory_of[partition], error)
                continue
            log.producers.expire(now, self.broker.value("producer.id.expiration.ms"))
            if partition.high_watermark < log.start_offset:
                partition.advance(log.start_offset)

    def _remove_files_round(self) -> None:
        if self._stopped:
            return
        self.remove_files(self.broker.schedule.now_ms())
        self.broker.schedule.later(10_000, self._remove_files_round)

    def remove_files(self, now_ms: int) -> None:
        """Removes deleted segments and directories whose delay is over."""
        for _, log in self._opened():
            log.remove_files(now_ms)
        kept = []
        for when, log in self._deleted:
            if when > now_ms or any(s.holds for s in log.segments):
                kept.append((when, log))
                continue
            for segment in log.segments:
                segment.close_files()
            if self.broker.files.exists(log.directory):
                self.broker.files.remove_tree(log.directory)
        self._deleted = kept

    # checkpoints

    def _checkpoint_round(self) -> None:
        if self._stopped:
            return
        self.save_checkpoints()
        self.broker.schedule.later(self.broker.config["log.flush.offset.checkpoint.interval.ms"], self._checkpoint_round)

    def save_checkpoints(self) -> None:
        for directory in self.broker.directories:
            if directory.failed:
                continue
            for partition, log in self._opened():
                if self.directory_of[partition] is directory:
                    key = (partition.topic, partition.index)
                    directory.recovery_points[key] = log.recovery_point
                    directory.log_starts[key] = log.start_offset
                    directory.high_watermarks[key] = partition.high_watermark
                    if log.settings.is_compacted:
                        directory.cleaner_offsets[key] = log.first_dirty_offset
            present = set(self.by_name)
            for offsets in (directory.recovery_points, directory.log_starts, directory.high_watermarks, directory.cleaner_offsets):
                for key in [k for k in offsets if k not in present]:
                    del offsets[key]
            try:
                directories.save_checkpoints(self.broker.files, directory)
            except OSError as error:
                self.broker.directory_failed(directory, error)

    def save_recovery_point(self, partition: Partition) -> None:
        """Says on disk how far a partition's log is durable. OSError."""
        directory = self.directory_of[partition]
        directory.recovery_points[partition.topic, partition.index] = partition.open_log().recovery_point
        directories.save_recovery_points(self.broker.files, directory)

    def stop(self) -> None:
        """Closes what is open, in order, and says that it was clean."""
        self._stopped = True
        self.cleaner.stop()
        unopened = bool(self._opening)
        self.clean_stop = not unopened
        for partition, log in self._opened():
            try:
                log.close()
            except OSError as error:
                logger.error("closing %s: %s", partition.name, error)
                self.directory_of[partition].failed = True
                self.clean_stop = False
        self.save_checkpoints()

    def finish(self) -> None:
        """After the metadata log was closed too: the marks of a clean shutdown."""
        for directory in self.broker.directories:
            if self.clean_stop and not directory.failed:
                directories.mark_clean(self.broker.files, directory, self.broker.metadata.broker_epoch)
