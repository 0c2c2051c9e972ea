"""The partitions of this broker: created and removed as the metadata changes, opened in steps,
flushed, cleaned and checkpointed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator
from itertools import islice

from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.state import TOPIC
from ...coordinator.metadata.state import Partition as PartitionState
from ...protocol.errors import ApiError, Errors
from ...storage.failures import is_passing
from ...storage.layout import DIRECTORY_DELETED, partition_directory, retired_directory
from ...storage.log import Log
from .. import bugs
from ..config.nodes import Nodes
from ..metrics import Metrics
from ..settings import Settings
from ..steps import in_steps
from ..turn import Turn
from ..watermark_policies import Policies
from .ageing import Ageing
from .catching_up import CatchingUp
from .checkpointing import Checkpoints, mark_clean
from .cleaner import Cleaner
from .directories import LogDirectories, LogDirectory
from .flusher import Flusher
from .following import Following
from .homes import Homes
from .index_repairs import IndexRepairs
from .leaders import Leaders
from .log_moves import LogMoves
from .log_opener import NOT_PERMITTED, LogOpener
from .log_watch import LogWatch
from .partition import Partition
from .partitions import Partitions
from .removal import Removal
from .strays import may_exist, partition_directories, set_aside_strays

logger = logging.getLogger("ottla.kafka.server.ReplicaManager")
STEP_NS = 2_000_000
RETRY_MS = 1000
CHECKPOINT_DELAY_MS = 1000
# logs that are opened per turn of the loop, if that takes less than `STEP_NS`; the next turn continues at once
OPEN_STEP = 128
# so many new logs are opened when the metadata has not changed for a while: who creates them asks for more
MANY_LOGS, QUIET_MS, DEFERRALS_MAX = 256, 25, 20
STEPS_AT_ONCE = 32  # of the opening of a log that a request waits for
FILES_STEP = 32  # directories that are renamed or removed per turn


def _nothing(_: Partition) -> None:
    """Placeholder until the wiring is complete."""


class ReplicaManager:
    """Creates and removes this broker's partitions. `opened` and `closed` are called with a partition whose log was
    opened or removed.
    """

    def __init__(
        self,
        turn: Turn,
        settings: Settings,
        log_directories: LogDirectories,
        partitions: Partitions,
        policies: Policies,
        metrics: Metrics,
        nodes: Nodes,
    ) -> None:
        self.turn = turn
        self.schedule = turn.schedule
        self.settings = settings
        self.log_directories = log_directories
        self.partitions = partitions
        self.policies = policies
        self.nodes = nodes
        self._following = Following(turn, partitions, policies, nodes)
        self.opened: Callable[[Partition], None] = _nothing
        self.closed: Callable[[Partition], None] = _nothing
        self.flusher = Flusher(turn, settings.config, partitions, metrics)
        self.cleaner = Cleaner(turn, settings, partitions, metrics)
        self.removal = Removal(turn, settings, log_directories)
        self.ageing = Ageing(turn, settings, partitions)
        repairs = IndexRepairs(turn, partitions)
        self._watch = LogWatch(partitions, repairs, self.flusher, self.ageing, self.cleaner)
        self.checkpoints = Checkpoints(turn, log_directories, partitions)
        self._opener = LogOpener(turn, settings, log_directories)
        self.catching_up = CatchingUp(turn, settings)
        self.leaders = Leaders(turn, partitions, nodes, self, self.catching_up)
        self.homes = Homes(log_directories, partitions, nodes)
        self.moves = LogMoves(turn, settings, self.homes, self.removal, self.cleaner, self.checkpoints)
        self.ready = False
        self.opening: deque[Generator[None, None, None]] = deque()  # of logs that are not open yet
        self._opens_later = False
        self._deferrals = self._changed_ms = 0
        self.may_open: Callable[[], bool] = lambda: True  # False while requests wait for changes of the metadata
        # by path: logs of removed partitions that still have their directories
        self._leaving: dict[str, tuple[Log, LogDirectory]] = {}
        self._started = self._stopped = False
        self.clean_stop = False
        self.stop_failure: str | None = None

    # life

    def start(self) -> None:
        """Creates the partitions of the metadata, and starts to open their logs."""
        image, self._started = self.partitions.image, True
        self.homes.found = found = {
            one.path: set(partition_directories(self.log_directories.files, one)) for one in self.log_directories.online
        }
        for topic in image.topics.values():
            for state in image.partitions_of(topic.id):
                # a log may be of a node that is not configured any more
                if self.nodes.have(state.replicas) or any((topic.name, state.index) in one for one in found.values()):
                    self._add(topic.name, state)
        set_aside_strays(self.log_directories, self.partitions.home)
        self.removal.find()
        found.clear()
        self.moves.resume()
        self.turn.soon(self.homes.assign_all)
        self._open_some()
        for rounds in (self.ageing, self.checkpoints, self.removal, self.flusher):
            rounds.start()
        self.cleaner.start(self.settings)

    def _add(self, topic: str, state: PartitionState, created: bool = False) -> Partition:
        partition = Partition(topic, state.index, state.topic_id, state.leader_epoch)
        partition.follow(state, self.nodes, self.schedule.monotonic_ms())
        directory = self.homes.choose(state, topic, created)
        self.partitions.add(partition, directory)
        self._configure(partition)
        if directory.failed:
            self.partitions.take_offline(partition)
            return partition
        steps = self._open(partition, directory, created)
        if created or directory.clean:
            partition.opening = lambda: self._open_at_once(partition, steps)
        self.opening.append(steps)
        return partition

    def _open(
        self, partition: Partition, directory: LogDirectory, created: bool, trusted: bool = True, again: bool = False
    ) -> Generator[None, None, None]:
        """Opens a partition's log in steps. `trusted`: its files are trusted after a clean shutdown. `again`: an
        earlier attempt may have created the directory.
        """
        key = partition.topic, partition.index
        path = f"{directory.path}/{partition_directory(*key)}"
        files = self.log_directories.files
        try:
            if partition not in self.partitions.directory_of and (
                key in self.partitions.by_name or not files.exists(path)
            ):
                return  # the partition was removed meanwhile; a later topic of that name handles what it finds
            created = created and not (again and files.exists(path))
            self._retire(path)  # it belongs to an earlier topic of this name
            log = yield from self._opener.open(partition, directory, path, created, trusted and not again)
        except OSError as error:
            partition.opening = None
            is_own = error.errno in NOT_PERMITTED  # of one directory, not of the disk
            if not is_own and self.log_directories.io_failed(directory, error):
                self.partitions.take_offline(partition)
            elif is_passing(error):
                self.turn.later(RETRY_MS, lambda: self._open_again(partition, directory, created))
            else:
                self._refuse(partition, f"{path}: {error}")
            return
        except Exception as error:
            self._refuse(partition, str(error) if path in str(error) else f"{path}: {error!r}")
            return
        if partition not in self.partitions.directory_of:
            if key not in self.partitions.by_name:
                self._leaving[path] = (log, directory)
                self._retire(path)
            return
        log.note_cleaned(directory.cleaner_offsets.get(key, 0))
        partition.log = log
        self._watch.follow(partition, log)
        partition.opening = None
        partition.reset_high_watermark(directory.high_watermarks.get(key, 0))
        self._following.opened(partition)
        known = None
        if trusted and not created and partition.replica_set is not None:  # the first opening since the start
            known = directory.replica_ends.of((partition.topic_id, partition.index), partition.replica_set.isr)
        if self.leaders.recall(partition, log, known):
            return
        bugs.guarded(f"what follows from opening {partition.name}", self.opened, partition)

    def _refuse(self, partition: Partition, reason: str) -> None:
        """Takes this partition, and no other one, offline until the next start."""
        self.partitions.take_offline(partition)
        logger.error("partition %s is offline: %s", partition.name, reason)

    def _open_at_once(self, partition: Partition, steps: Generator[None, None, None]) -> None:
        """Opens a log for a request, unless that takes long: then some steps are done, and the others in their turn."""
        partition.opening = None
        for _ in islice(steps, STEPS_AT_ONCE):
            continue

    def _open_again(self, partition: Partition, directory: LogDirectory, created: bool) -> None:
        if self.partitions.directory_of.get(partition) is directory and not directory.failed:
            self.opening.append(self._open(partition, directory, created, again=True))
            self._open_later()

    def reopen(self, partition: Partition) -> None:
        """Opens a log again from its files, because its state in memory cannot be trusted; until then the partition has
        no leader.
        """
        log, directory, key = partition.log, self.partitions.directory_of[partition], (partition.topic, partition.index)
        if log is None:
            return
        directory.recovery_points[key] = log.recovery_point
        directory.log_starts[key] = log.start_offset
        directory.high_watermarks[key] = partition.high_watermark
        partition.closed_end = log.end_offset
        # nothing else knows which of the small files are durable
        bugs.guarded(f"a sync of {partition.name}", log.flush_now)
        self.closed(partition)
        partition.log = None
        partition.fail_parked(ApiError(Errors.NOT_LEADER_OR_FOLLOWER))
        partition.disturb()
        self.opening.append(self._open(partition, directory, created=False, trusted=False))
        self._open_later()

    def _open_some(self) -> None:
        """Opens logs for a short time; schedules itself again while some are left."""
        if self._stopped:
            return
        schedule = self.schedule
        until_ns = schedule.work_ns() + STEP_NS
        left = OPEN_STEP
        while self.opening:
            steps = self.opening[0]
            if next(steps, self) is self:
                self.opening.popleft()
                left -= 1
            if self.opening and (not left or schedule.work_ns() >= until_ns):
                self._open_later()
                return
        self._deferrals = 0
        if not self.ready:
            self.ready = True
            for directory in self.log_directories.all:
                directory.recovery_points.clear()
            logger.info("all %d partitions are open", len(self.partitions.by_name))

    def _open_later(self) -> None:
        if not self._opens_later:
            self._opens_later = True
            self.schedule.soon(lambda: self.turn.event(self._open_on))

    def _open_on(self) -> None:
        self._opens_later = False
        if self.may_open():
            self._open_some()

    def go_on_opening(self) -> None:
        """Opens logs of new partitions: the metadata has changed, and nothing more is to change at once. Many are
        opened when it has not changed for `QUIET_MS`, or has changed very often meanwhile.
        """
        self._changed_ms = self.schedule.monotonic_ms()
        if self.opening and not self._opens_later:
            self._open_when_quiet()

    def _open_when_quiet(self) -> None:
        self._opens_later = False
        wait_ms = self._changed_ms + QUIET_MS - self.schedule.monotonic_ms()
        if self.ready and len(self.opening) > MANY_LOGS and wait_ms > 0 and self._deferrals < DEFERRALS_MAX:
            self._deferrals += 1
            self._opens_later = True
            self.turn.later(wait_ms, self._open_when_quiet)
        elif self.may_open():
            self._open_some()

    def metadata_changed(self, delta: MetadataDelta) -> Iterator[None]:
        """A generator; each step removes, configures or adds a partition."""
        image = self.partitions.image
        was_saved = False
        for topic in delta.removed:
            for index in range(topic.partitions):
                partition = self.partitions.by_id.get((topic.id, index))
                if partition is not None:
                    was_saved |= self.partitions.directory_of[partition].has_saved(partition.topic, index)
                    self._remove(partition)
                    yield
        if was_saved:  # the checkpoints of this partition must not apply to a later topic of that name
            self.checkpoints.begin_round()
        elif delta.removed:
            self.turn.later(CHECKPOINT_DELAY_MS, self.checkpoints.begin_round)
        for key in delta.changed_partitions:
            partition, state = self.partitions.by_id.get(key), image.partitions.get(key)
            if partition is not None and state is not None:
                leader = partition.leader
                self.leaders.follow(partition, state)
                if partition.leader != leader:
                    self._take_defaults(partition)
                if self.policies.by_follower:
                    self._following.configure(partition)
                self.homes.check(partition, state)
                yield
            elif self._started and state is not None and self.nodes.have(state.replicas):  # the first one here
                self._add(image.topic_names[state.topic_id], state, created=True)
                yield
        yield from self._configure_what_changed(delta)
        for key in delta.new_partitions:
            state = image.partitions.get(key)  # None if this is a retry, and a later commit has removed the topic
            if state is not None and key not in self.partitions.by_id and self.nodes.have(state.replicas):
                self._add(image.topic_names[state.topic_id], state, created=True)
                yield
        if self.homes.unassigned:
            self.turn.soon(self.homes.assign_all)
        if self._leaving:
            self.turn.background(in_steps(self.turn, self._retire_all(), FILES_STEP))

    def _configure_what_changed(self, delta: MetadataDelta) -> Iterator[None]:
        if delta.changes_all_topics:
            self.turn.background(in_steps(self.turn, self._configure_all()))
            return
        for kind, name in delta.configs:
            if kind == TOPIC:
                for partition in list(self.partitions.of_topic(name)):
                    self._configure(partition)
                    self.turn.moved(partition)
                    yield

    def _remove(self, partition: Partition) -> None:
        self.moves.drop(partition)
        directory = self.partitions.directory_of[partition]
        self.partitions.remove(partition)
        self.closed(partition)
        log, partition.log = partition.log, None
        partition.offline = False
        partition.opening = None
        partition.fail_parked(ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION))
        partition.disturb()
        if log is not None:
            self._leaving[log.directory] = (log, directory)

    def _retire_all(self) -> Iterator[None]:
        while self._leaving:
            self._retire(next(iter(self._leaving)))
            yield

    def _retire(self, path: str) -> None:
        """Renames the directory of a removed partition, if there is one at `path`."""
        log, directory = self._leaving.pop(path, (None, None))
        if log is None or directory is None:
            return
        try:
            log.move(self._retired_path(log))
        except OSError as error:
            self.log_directories.io_failed(directory, error)
            return
        self.removal.add(log, directory)

    def _retired_path(self, log: Log) -> str:
        parent = log.directory.rpartition("/")[0]
        number = self.log_directories.new_id().hex()
        return f"{parent}/{retired_directory(log.topic, log.partition, number, DIRECTORY_DELETED)}"

    def configure(self) -> None:
        """Applies changed configurations or policies to all partitions before it returns."""
        for _ in self._configure_all():
            continue

    def _configure_all(self) -> Iterator[None]:
        for partition in list(self.partitions.by_name.values()):
            if partition in self.partitions.directory_of:
                self._configure(partition)
                self.turn.moved(partition)
                yield

    def _configure(self, partition: Partition) -> None:
        self._take_defaults(partition)
        self._following.configure(partition)

    def _take_defaults(self, partition: Partition) -> None:
        """What the topic does not say, the configuration of the leader's node does."""
        settings = self.settings.at(partition.leader)
        if partition.log is not None:
            partition.log.settings = settings.of_log(partition.topic)
            self._watch.configured(partition)
        partition.min_insync_replicas = settings.of_topic(partition.topic)["min.insync.replicas"]

    def go_offline(self, directory: LogDirectory) -> None:
        """Takes the partitions of a log directory that has failed offline; whoever uses them learns of it in steps."""
        lost = [partition for partition, where in self.partitions.directory_of.items() if where is directory]
        for partition in lost:
            partition.log = None
            self.partitions.take_offline(partition)
        self.turn.background(in_steps(self.turn, self._close_all(lost)))

    def _close_all(self, lost: list[Partition]) -> Iterator[None]:
        for partition in lost:
            self.closed(partition)
            partition.fail_parked(ApiError(Errors.KAFKA_STORAGE_ERROR))
            partition.disturb()
            yield

    # ageing

    def apply_retention(self) -> None:
        """Removes the segments that retention releases from every log."""
        self.ageing.apply_retention()

    def remove_files(self) -> None:
        """Removes deleted segments and directories whose delay is over."""
        self.ageing.remove_files()
        self.removal.remove_due()

    # checkpoints

    def save_checkpoints(self) -> None:
        """Writes recovery point, log start offset and high watermark of each log to the checkpoints."""
        self.checkpoints.save_now()

    def stop(self) -> None:
        """Closes all open logs, and returns whether the shutdown was clean."""
        self._stopped = True
        self.cleaner.stop()
        for _ in self._retire_all():
            continue
        self.clean_stop = True
        for partition, error in self.flusher.close_all():
            self.stop_failure = self.stop_failure or f"closing {partition.name}: {error}"
            self.partitions.directory_of[partition].failed = True
            self.clean_stop = False
        self.save_checkpoints()

    def finish(self, broker_epoch: int) -> None:
        """Writes the marks of a clean shutdown, after the metadata log was closed too."""
        files, doubtful = self.log_directories.files, set()
        for partition, where in self.partitions.directory_of.items():
            if partition.log is None and (partition.offline or may_exist(files, f"{where.path}/{partition.name}")):
                doubtful.add(id(where))  # the next start creates the missing directory
        for directory in self.log_directories.all:
            if self.clean_stop and not directory.failed and id(directory) not in doubtful:
                mark_clean(files, directory, broker_epoch)
