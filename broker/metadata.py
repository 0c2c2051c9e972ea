"""Joins the controller's shard to the metadata log: loading, committing, snapshots.

An append is made durable in a thread before it commits. What is committed is read back from the log and applied to the broker's
image, and only then do the replies that waited for it leave.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..coordinator.metadata.controller import Controller, Defaults
from ..coordinator.metadata.format import CLUSTER_METADATA, MetadataFormat
from ..coordinator.metadata.state import Broker as BrokerState
from ..coordinator.metadata.state import Endpoint
from ..coordinator.runtime import Runtime, State
from ..coordinator.shard import Result
from ..coordinator.timeline import Timeline
from ..protocol import messages, records
from ..protocol.errors import ApiError, Errors
from ..protocol.features import defaults, supported
from ..protocol.records import Record
from ..storage.layout import snapshot_name
from ..storage.log import FlushJob
from ..storage.recovery import open_now
from ..storage.settings import LogSettings
from . import metadata_log
from .later import Later
from .metadata_log import DIRECTORY, TOPIC_ID, Voter
from .partition import Partition

if TYPE_CHECKING:
    from .broker import Broker

logger = logging.getLogger("ottla")


def check_time(timeout_ms: int | None) -> None:
    """ApiError(REQUEST_TIMED_OUT) for a request to the controller that leaves it no time."""
    if timeout_ms is not None and timeout_ms <= 0:
        raise ApiError(Errors.REQUEST_TIMED_OUT)


def _bootstrap_records() -> list[Any]:
    """What a new cluster's log begins with. Kafka reads the feature levels from here, not from the first snapshot."""
    features = [messages.FeatureLevelRecord(name=name, feature_level=level) for name, level in defaults().items()]
    isr = messages.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1")
    return [messages.BeginTransactionRecord(name="Bootstrap records"), *features, isr, messages.EndTransactionRecord()]


@dataclass(slots=True)
class _Entry:
    """A loaded metadata record, as the runtime takes it."""

    offset: int
    record: Record
    producer_id: int = -1
    producer_epoch: int = -1
    committed: bool | None = None
    coordinator_epoch: int = -1


class _Writer:
    """The metadata partition under the runtime."""

    def __init__(self, owner: MetadataController) -> None:
        self.owner = owner

    def append(self, batch: bytearray, now_ms: int) -> tuple[int, int]:
        partition = self.owner.partition
        try:
            done = partition.append(batch, list(records.batches(batch)), now_ms)
        except OSError as error:
            self.owner.broker.directory_failed(self.owner.broker.directories[0], error)
            raise ApiError(Errors.KAFKA_STORAGE_ERROR) from None
        self.owner.sync()
        return done.base_offset, done.next_offset

    def max_batch_bytes(self) -> int:
        return 8 << 20  # as a KRaft batch in Kafka


class MetadataController:
    """The metadata of this broker: the controller, its log, and the committed image."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.partition = Partition(CLUSTER_METADATA, 0, TOPIC_ID, 0)
        self.partition.on_advance = self._committed
        timeline = Timeline()
        config = broker.config
        defaults = Defaults(config["num.partitions"], config["default.replication.factor"], config.topic_defaults(), broker.groups.config)
        self.controller = Controller(timeline, defaults, broker.new_id)
        self.runtime = Runtime(DIRECTORY, self.controller, MetadataFormat(), _Writer(self), timeline)
        self.runtime.on_bug = lambda bug: logger.error("metadata handler failed", exc_info=bug)
        self.applied_offset = 0
        self.snapshot_offset = 0
        self.snapshot_bytes = 0
        self.broker_epoch = -1
        self._syncing = False
        self._watchers: list[Callable[[Any], None]] = []

    # start

    def start(self) -> None:
        broker = self.broker
        directory = broker.directories[0]
        path = f"{directory.path}/{DIRECTORY}"
        voter = self._voter()
        if not broker.files.exists(f"{path}"):
            metadata_log.format_directory(broker.files, directory.path, voter, broker.schedule.now_ms())
        first = self._load_snapshot(path)
        settings = LogSettings(retention_ms=-1, segment_bytes=1 << 30, cleanup_policy=())
        now = broker.schedule.now_ms()
        log = open_now(broker.pool, path, settings, now, clean=False, recovery_point=first, start_offset=0)
        if log.end_offset < first:
            log.begin_anew(first, now)
        if log.topic_id is None:
            log.set_topic_id(TOPIC_ID)
        epoch = max(metadata_log.read_quorum_epoch(broker.files, path), log.epochs.latest, 0) + 1
        self.partition.log = log
        self.partition.leader_epoch = epoch
        for _, record in metadata_log.metadata_records(log, first):
            decoded = self.runtime.format.decode(record)
            if decoded is not None:
                broker.image.apply(decoded[1])
        for _ in self.runtime.load(self._entries(first), epoch, broker.schedule.monotonic_ms(), log.end_offset, log.end_offset):
            continue
        self._begin_epoch(path, voter, epoch, now)
        self._register()

    def _voter(self) -> Voter:
        listener = self.broker.config.controller_listener
        return Voter(self.broker.config.node_id, self.broker.directories[0].id, listener.name, listener.host, listener.port)

    def _load_snapshot(self, path: str) -> int:
        """Applies the newest snapshot that is whole; returns the offset behind it."""
        files = self.broker.files
        for end_offset, epoch in metadata_log.snapshots(files, path):
            found, complete = metadata_log.read_snapshot(files.read(f"{path}/{snapshot_name(end_offset, epoch)}"))
            if not complete:
                logger.warning("metadata snapshot %d-%d is damaged, an older one serves", end_offset, epoch)
                continue
            for record in found:
                self.broker.image.apply(record)
                self.controller.state.apply(record)
            self.applied_offset = self.snapshot_offset = end_offset
            return end_offset
        return 0

    def _entries(self, first: int) -> Iterator[_Entry]:
        log = self.partition.open_log()
        for offset, record in metadata_log.metadata_records(log, first):
            yield _Entry(offset, record)

    def _begin_epoch(self, path: str, voter: Voter, epoch: int, now: int) -> None:
        log = self.partition.open_log()
        metadata_log.write_quorum_state(self.broker.files, path, voter.id, epoch)
        control = [metadata_log.leader_change_record(voter)]
        fresh = log.end_offset == 0
        if fresh:
            control += [metadata_log.kraft_version_record(), metadata_log.voters_record(voter)]
        metadata_log.append_control(log, control, epoch, now)
        self._resume_at_end()
        if fresh:
            self.submit(lambda: Result(_bootstrap_records()))
            self.runtime.flush(now)

    def _resume_at_end(self) -> None:
        """Control batches were appended behind the runtime's back."""
        log = self.partition.open_log()
        log.flush_now()
        self.partition.reset_high_watermark(log.end_offset)
        self.runtime.last_written_offset = log.end_offset
        self.runtime.timeline.snapshot(log.end_offset)
        self.runtime.advance(log.end_offset)
        self.applied_offset = log.end_offset

    def _register(self) -> None:
        config, directory_ids = self.broker.config, tuple(d.id for d in self.broker.directories)
        log = self.partition.open_log()
        self.broker_epoch = log.end_offset + 1
        endpoints = tuple(Endpoint(one.name, one.host, one.port) for one in config.advertised.values())
        request = BrokerState(config.node_id, self.broker_epoch, self.broker.new_id(), endpoints, config["broker.rack"], False, False, directory_ids)
        self.submit(lambda: self.controller.register_broker(request, self._controller_record()))
        self.runtime.flush(self.broker.schedule.now_ms())
        log.flush_now()
        self.partition.advance(log.end_offset)

    def _controller_record(self) -> Any:
        r = messages.RegisterControllerRecord
        listener = self.broker.config.controller_listener
        return r(
            controller_id=self.broker.config.node_id,
            incarnation_id=self.broker.new_id(),
            end_points=[r.ControllerEndpoint(name=listener.name, host=listener.host, port=listener.port)],
            features=[
                r.ControllerFeature(name=name, min_supported_version=low, max_supported_version=high) for name, (low, high) in supported().items()
            ],
        )

    # writing

    def submit(self, handler: Callable[[], Result], timeout_ms: int | None = None) -> Later[Any]:
        """Runs a handler of the controller; finished with its reply once its records are committed. ApiError.

        `timeout_ms`: how long that may take; without any time the handler is not run.
        """
        check_time(timeout_ms)
        later: Later[Any] = Later()
        now = self.broker.schedule.monotonic_ms()
        deadline = None if timeout_ms is None else now + timeout_ms
        self.runtime.write(handler, later.settle, now, deadline_ms=deadline)
        self.broker.wrote(self)
        if deadline is not None and not later.done:
            self.broker.schedule.later(timeout_ms or 0, lambda: self.broker.event(self._tick))
        return later

    def flush(self) -> None:
        """Appends what this event's writes decided."""
        self.runtime.flush(self.broker.schedule.now_ms())

    def _tick(self) -> None:
        self.runtime.tick(self.broker.schedule.monotonic_ms())

    def sync(self) -> None:
        """Makes the log durable in a thread; the high watermark follows."""
        if self._syncing or self.broker_epoch < 0:
            return
        self._syncing = True
        log = self.partition.open_log()
        job = log.flush_job()

        def done(_: Any, error: BaseException | None) -> None:
            self._syncing = False
            self.broker.event(lambda: self._synced(job, error))

        self.broker.schedule.in_thread(job.run, done)

    def _synced(self, job: FlushJob, error: BaseException | None) -> None:
        if error is not None:
            failure = error if isinstance(error, OSError) else OSError(str(error))
            self.broker.directory_failed(self.broker.directories[0], failure)
            return
        log = self.partition.open_log()
        end = job.end_offset
        log.flushed(job, self.broker.schedule.monotonic_ms())
        lag = self.broker.policies.by_topic.get(CLUSTER_METADATA)
        if lag is not None and lag.kind == "lag":
            self.broker.schedule.later(lag.lag_ms, lambda: self.broker.event(lambda: self.partition.advance(end)))
        else:
            self.partition.advance(end)
        if log.end_offset > end:
            self.sync()

    # committing

    def _committed(self, high_watermark: int) -> None:
        image = self.broker.image
        log = self.partition.open_log()
        for _, record in metadata_log.metadata_records(log, self.applied_offset):
            if self.applied_offset >= high_watermark:
                break
            self.applied_offset += 1
            decoded = self.runtime.format.decode(record)
            if decoded is None:
                continue
            before = image.topic_names.get(getattr(decoded[1], "topic_id", None))
            image.apply(decoded[1])
            self.broker.partitions.metadata_changed(decoded[1], before)
        self.applied_offset = high_watermark
        if self.runtime.state is State.ACTIVE:
            self.runtime.advance(high_watermark)
        self._maybe_snapshot()

    def _maybe_snapshot(self) -> None:
        log = self.partition.open_log()
        size = log.size - self.snapshot_bytes
        if size >= self.broker.config["metadata.log.max.record.bytes.between.snapshots"]:
            self.take_snapshot()

    def take_snapshot(self) -> None:
        """Writes a snapshot of the committed image; the log before it and older snapshots may go."""
        log = self.partition.open_log()
        now, files = self.broker.schedule.now_ms(), self.broker.files
        end, epoch = self.applied_offset, self.partition.leader_epoch
        data = metadata_log.build_snapshot(self._voter(), list(self.broker.image.as_records()), epoch, now, now)
        files.replace(log.path(snapshot_name(end, epoch)), data)
        self.snapshot_offset = end
        log.roll(now)
        gone = [s for s, after in zip(log.segments, log.bases[1:], strict=False) if after <= end]
        log.remove_segments(gone, now)
        self.snapshot_bytes = log.size
        for older in metadata_log.snapshots(files, log.directory)[1:]:
            files.remove(log.path(snapshot_name(*older)))

    def stop(self) -> None:
        """Fences the node, as Kafka's controller does when a node stops, and closes the log."""
        if self.runtime.state is State.ACTIVE and self.broker_epoch >= 0:
            self.submit(lambda: self.controller.fence_broker(self.broker.config.node_id))
            self.flush()
        self.runtime.close()
        if self.partition.log is not None:
            self.partition.log.close()
