"""Connects the controller's shard to the metadata log: loading and committing.

An append is synced in a thread before it commits. Committed records are read back from the log and applied to the
broker's image (`commits`); only then are the replies sent that waited for them.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from ...coordinator.lifecycle import State
from ...coordinator.metadata import brokers
from ...coordinator.metadata import directories as metadata_directories
from ...coordinator.metadata.controller import Controller, Defaults
from ...coordinator.metadata.format import CLUSTER_METADATA, MetadataFormat
from ...coordinator.metadata.new_partitions import decoded
from ...coordinator.metadata.registration import Broker as BrokerState
from ...coordinator.metadata.registration import Endpoint
from ...coordinator.metadata.staged import Staged
from ...coordinator.runtime import Runtime
from ...coordinator.shard import Result
from ...coordinator.timeline import Timeline
from ...protocol import messages, records
from ...protocol.errors import ApiError, Errors
from ...protocol.features import defaults
from ...protocol.structs import Struct
from ...storage.flush import FlushJob
from ...storage.layout import QUORUM_STATE
from ...storage.log import Log
from .. import bugs
from ..config.nodes import Node, Nodes
from ..later import Later
from ..replica.directories import DirectoryError, LogDirectories
from ..replica.partition import Partition
from ..replica.strays import held_partitions, offline_partitions
from ..settings import Settings
from ..turn import Turn
from ..watermark_policies import Policies
from . import metadata_log
from .commits import Commits
from .events import EVENT, Events, Handler
from .metadata_log import DIRECTORY, TOPIC_ID, ReplicaKey, Voter
from .metadata_opening import FlushedOffset, Opened, open_metadata
from .quorum import Quorum, Standing
from .registering import record_of
from .snapshots import Snapshots
from .watchers import Changed

R = TypeVar("R")
logger = logging.getLogger("ottla.org.apache.kafka.controller.QuorumController")
RETRY_MS = 1000
NOTE_SYNC_MS = 1000


def check_time(timeout_ms: int | None) -> None:
    """Raises ApiError(REQUEST_TIMED_OUT) if a controller request has no time left."""
    if timeout_ms is not None and timeout_ms <= 0:
        raise ApiError(Errors.REQUEST_TIMED_OUT)


def _bootstrap_records() -> list[Struct]:
    """The first records of a new cluster's log. Kafka reads the feature levels from here,
    not from the first snapshot.
    """
    features = [messages.FeatureLevelRecord(name=name, feature_level=level) for name, level in defaults().items()]
    isr = messages.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1")
    return [messages.BeginTransactionRecord(name="Bootstrap records"), *features, isr, messages.EndTransactionRecord()]


class _Writer:
    """The runtime's writer for the metadata partition."""

    def __init__(self, owner: MetadataController) -> None:
        self.owner = owner

    def now_ms(self) -> int:
        return self.owner.schedule.now_ms()

    def append(self, batch: bytearray, now_ms: int) -> tuple[int, int]:
        partition = self.owner.partition
        try:
            done = partition.append(batch, list(records.batches(batch)), now_ms)
        except OSError as error:
            self.owner.io_failed(error)
            raise ApiError(Errors.KAFKA_STORAGE_ERROR) from None
        except ApiError:
            raise
        except Exception as error:  # it is unknown what reached the log, and there is no other controller to take over
            bugs.report("an append to the metadata log", error)
            self.owner.turn.fatal(f"the metadata log cannot be written: {error!r}")
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR) from None
        self.owner.sync()
        return done.base_offset, done.next_offset

    def max_batch_bytes(self) -> int:
        return 8 << 20  # the limit of a KRaft batch in Kafka


class MetadataController:
    """The metadata of this broker: the controller, its log, and the committed image."""

    is_reached = True  # from a node; one that is cut off has another view of it (`cut_off.py`)

    def __init__(
        self,
        turn: Turn,
        settings: Settings,
        log_directories: LogDirectories,
        policies: Policies,
        nodes: Nodes,
        chance: random.Random,
    ) -> None:
        self.turn = turn
        self.schedule = turn.schedule
        self.settings = settings
        self.config = config = settings.config
        self.image = settings.image
        self.log_directories = log_directories
        self.policies = policies
        self.nodes = nodes
        self.partition = Partition(CLUSTER_METADATA, 0, TOPIC_ID, 0)
        self.commits = Commits(turn, self.image, self.partition, self._applied)
        self.partition.on_committed = self.commits.committed
        timeline = Timeline()
        defaults = Defaults(
            config["num.partitions"],
            config["default.replication.factor"],
            config.topic_defaults(),
            settings.value,
            config.emulates,
        )
        self.controller = Controller(timeline, defaults, log_directories.new_id, chance.randrange)
        self.runtime = Runtime(DIRECTORY, self.controller, MetadataFormat(), _Writer(self), timeline)
        self.runtime.bugs.on_bug = lambda name, bug: bugs.report(f"{DIRECTORY}: {name}", bug)
        self.runtime.on_failed = lambda: turn.fatal("the metadata in memory is not what its log says")
        self.quorum = Quorum(turn, config, nodes, self._next_epoch, self.partition)
        self.events = Events(turn, self.runtime, self.controller.state, self, self.quorum)
        self.snapshots = Snapshots(turn, self.image, self.partition, self.commits, log_directories, self.voter)
        self.broker_epoch = -1
        self._syncing = False
        self._notes = False  # an offset was written to its file and is not durable yet

    def io_failed(self, error: OSError) -> bool:
        """Handles an I/O error in the metadata log directory; returns whether the directory is offline."""
        return self.log_directories.io_failed(self.log_directories.all[0], error)

    # start

    flushed: FlushedOffset

    def start(self) -> None:
        """Loads the committed records, begins a leader epoch and registers the broker.
        Raises DirectoryError or OSError.
        """
        path = f"{self.log_directories.all[0].path}/{DIRECTORY}"
        try:
            self._start(path)
        except (DirectoryError, OSError):
            raise
        # records with a right CRC that are not valid metadata, or a file with an invalid format
        except Exception as error:
            logger.debug("the metadata cannot be loaded", exc_info=error)
            raise DirectoryError(f"{path}: the metadata cannot be loaded: {error}") from error

    def _start(self, path: str) -> None:
        directory, files, pool = self.log_directories.all[0], self.log_directories.files, self.log_directories.pool
        voter, now = self.voter(), self.schedule.now_ms()
        is_new = not files.exists(path)
        self.flushed = FlushedOffset(pool, path)
        self.flushed.load()
        salvage = self.config["ottla.recovery"] == "salvage"
        opened = open_metadata(
            pool,
            path,
            self.flushed,
            now,
            clean=directory.clean and not is_new,
            salvage=salvage,
            held=held_partitions(self.log_directories),
        )
        if opened.log.end_offset == 0 and not metadata_log.snapshots(files.names(path)):
            metadata_log.format_directory(files, directory.path, voter, now)
        self._load(opened, path, voter, now)
        if opened.is_salvaged:
            self.snapshots.take_now()  # the next start finds a complete snapshot
        self.snapshots.start()

    def _load(self, opened: Opened, path: str, voter: Voter, now: int) -> None:
        log, first = opened.log, opened.first
        self.commits.begin_at(first)
        self.snapshots.begin_at(log, first)
        if log.topic_id is None:
            log.set_topic_id(TOPIC_ID)
        epoch = max(metadata_log.read_quorum_epoch(self.log_directories.files, path), log.epochs.latest, 0) + 1
        self.partition.log = log
        self.partition.leader_epoch = epoch
        self._replay(opened)
        for _ in self.runtime.load((), epoch, self.schedule.monotonic_ms(), log.end_offset, log.end_offset):
            continue
        self.log_directories.end_trust()
        if log.end_offset:  # an empty log becomes durable with its first records
            log.flush_now()
        self.flushed.create(log)
        self._begin_epoch(voter, epoch, now)
        self._register()

    def _replay(self, opened: Opened) -> None:
        """Puts the committed records into the image and into the controller's state."""
        loaded = Staged(self.image)
        for kept in opened.contents:
            loaded.apply(kept)
        for _, record in decoded(metadata_log.metadata_records(opened.log, opened.first)):
            loaded.apply(record)
        loaded.show()
        for own, table in zip(self.controller.state.tables(), self.image.tables(), strict=True):
            own.update(dict(table.items()))

    def voter(self) -> Voter:
        """Returns the only voter of the metadata log."""
        listener = self.config.controller_listener
        return Voter(self.config.node_id, self.log_directories.all[0].id, listener.name, listener.host, listener.port)

    def replica_key(self, node: int) -> ReplicaKey:
        """Returns which replica of the metadata log a node is."""
        return ReplicaKey(node, self.log_directories.all[0].node_ids[node])

    def _begin_epoch(self, voter: Voter, epoch: int, now: int) -> None:
        log = self.partition.open_log()
        log.small_files.write(QUORUM_STATE, metadata_log.quorum_state(voter.id, epoch))
        control = [metadata_log.leader_change_record(voter)]
        fresh = log.end_offset == 0
        if fresh:
            control += [metadata_log.kraft_version_record(), metadata_log.voters_record(voter)]
        metadata_log.append_control(log, control, epoch, now)
        self._resume_at_end()
        if fresh or not self.image.features:  # without features: the salvaged log has lost its beginning
            self._write_at_start(lambda: Result(_bootstrap_records()))

    def _next_epoch(self) -> None:
        """Another node is the active controller: what is written from now on has the next epoch."""
        self.flush()
        self.partition.leader_epoch += 1

    def _resume_at_end(self) -> None:
        """Updates the runtime after control batches were appended without it."""
        log = self.partition.open_log()
        log.flush_now()
        self.flushed.note(log.end_offset)
        self.partition.reset_high_watermark(log.end_offset)
        self.runtime.last_written_offset = log.end_offset
        self.runtime.timeline.snapshot(log.end_offset)
        self.runtime.advance(log.end_offset)
        self.commits.begin_at(log.end_offset)

    def _register(self) -> None:
        log = self.partition.open_log()
        self.broker_epoch = log.end_offset + 1
        requests = [self.registration(node, self.broker_epoch + number) for number, node in enumerate(self.nodes)]
        offline, controller = (
            offline_partitions(self.log_directories, self.image),
            record_of(self.config, self.log_directories.new_id()),
        )
        crashed = self.log_directories.crashed.intersection(node.id for node in self.nodes)
        self._write_at_start(lambda: self.controller.register_brokers(requests, controller, offline, crashed))
        for node in sorted(crashed):
            self._write_at_start(partial(brokers.unfence_now, self.controller, node))
        self.log_directories.crashed.difference_update(crashed)
        log.flush_now()
        self.flushed.note(log.end_offset)
        self.partition.advance(log.end_offset)

    def registration(self, node: Node, epoch: int) -> BrokerState:
        """Returns what a node registers with; `epoch` is the offset of the record."""
        config = node.config
        endpoints = tuple(
            Endpoint(one.name, one.host, one.port, config.security_protocol(one.name))
            for one in config.advertised.values()
        )
        directories = tuple(self.log_directories.ids_of(node.id))
        incarnation = self.log_directories.new_id()
        cordoned = self.log_directories.cordoned(self.settings.of_node(config).value("cordoned.log.dirs"), node.id)
        return BrokerState(node.id, epoch, incarnation, endpoints, node.rack, False, False, directories, cordoned)

    def next_offset(self) -> int:
        """Returns the offset of the next record, after what this turn has written."""
        self.flush()
        return self.partition.end_offset

    def _write_at_start(self, handler: Callable[[], Result]) -> None:
        """Makes a write that the start needs. Raises DirectoryError."""
        written = self._write_now(handler)
        if written.error is not None:
            raise DirectoryError(f"the metadata log cannot be written: {written.error}")

    # writing

    def submit(self, handler: Handler[R], timeout_ms: int | None = None, *, validate_only: bool = False) -> Later[R]:
        """Runs a handler of the controller, in steps if it is a generator; completes with its reply when its records
        are committed. Fails with ApiError.

        `timeout_ms`: how long that may take; with 0 the handler is not run. `validate_only`: nothing is written.
        """
        check_time(timeout_ms)
        return self.events.submit(handler, timeout_ms, validate_only)

    def reached(self) -> Later[None]:
        """Completes when there is an active controller. Fails with ApiError(REQUEST_TIMED_OUT) after a minute."""
        return self.quorum.reached()

    async def answers(self) -> Standing:
        """Like `reached`, for what changes nothing: returns the controller that answers (`Quorum.is_lonely`)."""
        await self.quorum.answers()
        return self.quorum.standing()

    async def forward(
        self, handler: Handler[R], timeout_ms: int | None = None, *, validate_only: bool = False, is_void: bool = False
    ) -> R:
        """As `submit`, for a client. Fails with REQUEST_TIMED_OUT if no active controller is reached for a minute.

        `is_void`: the request can change nothing, so that a controller that is alone answers it (`answers`).
        """
        if is_void and (await self.answers()).is_lonely:
            return await self.events.asked(handler)
        await self.reached()
        return await self.submit(handler, timeout_ms, validate_only=validate_only)

    def _write_now(self, handler: Callable[[], Result]) -> Later[None]:
        """Writes before the first event, or after the last."""
        later: Later[None] = Later()
        self.runtime.write(EVENT, handler, later.settle, self.schedule.monotonic_ms())
        self.flush()
        return later

    def directory_failed(self, lost: set[tuple[bytes, int]]) -> None:
        """Writes that a log directory, with the partitions `lost`, has failed while the broker runs."""

        def write() -> None:
            if not self.turn.stopped and not self.log_directories.all[0].failed:
                left = {node.id: self.log_directories.ids_of(node.id) for node in self.nodes}
                self.submit(lambda: self.controller.directory_failed(left, lost))

        self.turn.soon(write)

    def assign_directories(self, assigned: Mapping[tuple[bytes, int], Mapping[int, bytes]]) -> Later[None]:
        """Writes in which directories replicas are; completes when that is committed."""
        return self.submit(lambda: metadata_directories.assign(self.controller.state, assigned))

    def flush(self) -> None:
        """Appends the writes of this event."""
        self.runtime.flush()

    def sync(self) -> None:
        """Syncs the log in a thread; then advances the high watermark. Does nothing after the log was closed."""
        log = self.partition.log
        if self._syncing or log is None or self.broker_epoch < 0:
            return
        try:
            job = log.flush_job()
        except Exception as error:
            return self._sync_failed(error)
        self._syncing = True

        def done(_: object, error: BaseException | None) -> None:
            self._syncing = False
            if self.partition.log is not log:  # closing it has made it durable
                return
            if error is not None:
                return self._sync_failed(error if isinstance(error, OSError) else OSError(str(error)))
            try:
                self._synced(log, job)
            except Exception as failure:
                self._sync_failed(failure)

        self.turn.in_thread(job.run, done)

    def _sync_failed(self, error: Exception) -> None:
        """A failed disk takes its directory offline; after another failure the sync is repeated."""
        if not isinstance(error, OSError):
            bugs.report("a sync of the metadata", error)
        elif self.io_failed(error):
            return
        self.turn.later(RETRY_MS, self.sync)

    def _synced(self, log: Log, job: FlushJob) -> None:
        end = job.end_offset
        log.flushed(job, self.schedule.monotonic_ms())
        self._note_flushed(end)
        lag_ms = self.policies.metadata_lag_ms()
        if lag_ms:
            self.turn.later(lag_ms, lambda: self.partition.advance(end))
        else:
            self.partition.advance(end)
        if log.end_offset > end:
            self.sync()

    def _note_flushed(self, end: int) -> None:
        """Stores the flushed offset; it reaches the disk soon after."""
        try:
            self.flushed.note(end)
        except OSError as error:
            self.io_failed(error)
            return
        if not self._notes:
            self._notes = True
            self.schedule.later(NOTE_SYNC_MS, self._sync_note)

    def _sync_note(self) -> None:
        def done(_: object, error: BaseException | None) -> None:
            if error is not None:
                failure = error if isinstance(error, OSError) else OSError(str(error))
                self.io_failed(failure)

        self._notes = False
        if not self.turn.stopped:
            self.turn.in_thread(self.flushed.sync, done)

    # committing

    def watch(self, changed: Changed) -> None:
        """Registers a watcher that is called once per commit, after the image is updated; watchers are called in order
        of registration.
        """
        self.commits.watchers.add(changed)

    @property
    def applied_offset(self) -> int:
        """The end of the records that are in the image."""
        return self.commits.applied_offset

    def _applied(self, offset: int) -> None:
        if self.runtime.state is State.ACTIVE:
            self.runtime.advance(offset)
        self.snapshots.take_if_due()

    def stop(self) -> None:
        """Fences the nodes, as Kafka's controller does when a node stops, and closes the log."""
        if self.runtime.state is State.ACTIVE and self.broker_epoch >= 0:
            self._write_now(lambda: self.controller.stop_brokers([node.id for node in self.nodes]))
        self.runtime.close()
        log, self.partition.log = self.partition.log, None
        if log is not None:
            log.close()
            self.flushed.note(log.end_offset)
            self.flushed.sync()
