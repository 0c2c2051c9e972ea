"""One shard of a coordinator on one partition: its loading, its timers, its writes and reads."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter_ns
from typing import Generic, Protocol, TypeVar

from ...coordinator.lifecycle import State
from ...coordinator.loading import Entry
from ...coordinator.shard import Decided, RecordFormat, Result, Shard
from ...coordinator.shard_runtime import ShardRuntime
from ...coordinator.timeline import Timeline, freed
from ...coordinator.timers import Timers
from ...protocol import records
from ...protocol.compression import NONE
from ...protocol.errors import ApiError, Errors
from ...protocol.records import BatchAt, Template
from ...storage.log import Log
from ...storage.segment import IndexDamaged
from .. import bugs
from ..alarm import Alarm
from ..event_times import EventTimes
from ..later import Later
from ..replica.appender import Appender, check_replicas
from ..replica.partition import Partition
from ..replica.partitions import Partitions
from ..settings import Settings
from ..steps import in_steps
from ..turn import Turn
from .loader import Skip

logger = logging.getLogger("ottla.org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime")
LOAD_STEP_NS = 2_000_000
LOST_BYTES_MAX = 16 << 20
PAUSED_MS = 100  # how often the timers of a paused node look whether it goes on
RELOAD_DELAY_MS, RELOAD_DELAY_MAX_MS = 100, 30_000  # doubled each time that loading fails
STEP_WAITING = 32  # writes that waited for a long one and are made in one step
SKIPPED_TOLD_MAX = 10  # logged records per log that could not be loaded
S = TypeVar("S", bound=Shard)
R = TypeVar("R")
T = TypeVar("T")


class _Writer:
    """The runtime's writer for the partition of a shard."""

    def __init__(self, appender: Appender, partition: Partition, required_acks: int, now_ms: Callable[[], int]) -> None:
        self.appender = appender
        self.partition = partition
        self.required_acks = required_acks
        self.now_ms = now_ms

    def append(self, batch: bytearray, now_ms: int) -> tuple[int, int]:
        check_replicas(self.partition, self.required_acks)
        done = self.appender.store(self.partition, batch, [BatchAt(0, records.header_at(batch))], now_ms)
        return done.base_offset, done.next_offset

    def max_batch_bytes(self) -> int:
        return self.partition.open_log().settings.max_message_bytes


class _LostWriter:
    """The runtime's writer of a coordinator that goes on while another one was elected: what it writes is lost. It
    takes `LOST_BYTES_MAX`, as its effects stay in memory and are never committed.
    """

    def __init__(self, end_offset: int, batch_bytes_max: int, now_ms: Callable[[], int]) -> None:
        self.end_offset = end_offset
        self.batch_bytes_max = batch_bytes_max
        self.now_ms = now_ms
        self.left_bytes = LOST_BYTES_MAX

    def append(self, batch: bytearray, now_ms: int) -> tuple[int, int]:
        if len(batch) > self.left_bytes:
            raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)
        self.left_bytes -= len(batch)
        first = self.end_offset
        self.end_offset += sum(at.header.last_offset_delta + 1 for at in records.batches(batch))
        return first, self.end_offset

    def max_batch_bytes(self) -> int:
        return self.batch_bytes_max


class Owner(Protocol[S]):
    """The part of the table of all shards that each of them uses (`hosts.ShardHosts`)."""

    turn: Turn
    settings: Settings
    partitions: Partitions
    appender: Appender
    hosts: dict[int, ShardHost[S]]
    failed_loads: dict[int, int]
    times: EventTimes
    timeout_key: str
    codec_key: str | None
    base_sequence: int
    required_acks: int

    def make_shard(self, host: ShardHost[S], timeline: Timeline, timers: Timers) -> S: ...

    def format(self) -> RecordFormat: ...

    def entries(self, log: Log, skip: Skip) -> Iterator[Entry | None]: ...

    def advanced(self, host: ShardHost[S]) -> None: ...

    def reload(self, partition: Partition) -> None: ...

    def serves(self, partition: Partition) -> bool: ...

    def collector_rests(self, host: ShardHost[S]) -> None: ...

    def collector_wakes(self, host: ShardHost[S]) -> None: ...


class ShardHost(Generic[S]):
    """One shard on one partition, with its timers."""

    def __init__(self, owner: Owner[S], partition: Partition) -> None:
        self.owner = owner
        self.turn = turn = owner.turn
        self.schedule = turn.schedule
        self.config = owner.settings.config
        self.partition = partition
        timeline = Timeline()
        timers = Timers(timeline.journal)
        self.shard: S = owner.make_shard(self, timeline, timers)
        self.runtime = ShardRuntime(
            partition.name,
            self.shard,
            owner.format(),
            _Writer(owner.appender, partition, owner.required_acks, turn.now_ms),
            timeline,
            timers,
        )
        codec = self.config[owner.codec_key] if owner.codec_key else NONE
        self.runtime.template = Template(codec=codec, base_sequence=owner.base_sequence)
        self.runtime.timeout_code = int(Errors.COORDINATOR_NOT_AVAILABLE)
        self.runtime.bugs.on_bug = lambda name, bug: bugs.report(f"{partition.name}: {name}", bug)
        self.runtime.replay.on_skipped = self._skipped
        self.runtime.on_failed = self._reload_later
        timeline.free = lambda changes: turn.background(in_steps(turn, freed(changes), 1))
        self.load_ms = 0
        self.is_left = False  # goes on alone
        self._lingers_since_ms: int | None = None  # when the first write of the present batch was made
        self._is_encoding = False  # the next step comes
        self.is_busy = False  # a long write is under way, or others that wait for it have not been made yet
        self._waiting: deque[Callable[[], None]] = deque()
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
        """Appends the writes of this event; very many once they are encoded, in later turns of the loop."""
        runtime, schedule = self.runtime, self.schedule
        if self._is_encoding or runtime.long is not None:
            return
        if runtime.encode_some():
            self._is_encoding = True
            return self.turn.next().when_done(self._encode_more)
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

    def _encode_more(self, _: Later[None]) -> None:
        self._is_encoding = False
        self.turn.wrote(self)

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
        if not self.is_left and not self.owner.serves(self.partition):  # its node is paused, and so are its timers
            self.turn.later(PAUSED_MS, self._tick)
        elif self.is_busy:
            self._waiting.append(self._tick)
        elif self.runtime.state is State.ACTIVE:
            self.turn.wrote(self)
            self.runtime.tick(self.schedule.monotonic_ms())

    def write_later(self, name: str, handler: Callable[[], Result]) -> None:
        """Makes a write that no request waits for."""
        if self.is_busy:
            self._waiting.append(partial(self.write_later, name, handler))
        elif self.runtime.state is State.ACTIVE:
            self.runtime.write(name, handler, lambda reply, error: None, self.schedule.monotonic_ms())
            self.turn.wrote(self)

    def write(
        self,
        name: str,
        handler: Callable[[S], Decided[R]],
        on_done: Callable[[R | None, ApiError | None], None],
        timeout_ms: int | None = None,
        template: Template | None = None,
    ) -> None:
        """Runs a handler as a write, after the long writes before it. `name`: as in Kafka, for logs and metrics.
        `timeout_ms`: how long its reply may wait, if not the default of the family.
        """
        if self.is_busy:
            return self._waiting.append(partial(self.write, name, handler, on_done, timeout_ms, template))
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
        if self.runtime.long is not None:
            self.hold()

    # long writes

    def when_free(self, call: Callable[[], None]) -> None:
        """Calls `call` at once, or after the long write that is under way and the writes that wait for it."""
        if self.is_busy:
            self._waiting.append(call)
        else:
            call()

    def hold(self) -> None:
        """Goes on with the long write, and then with those that wait for it, in later turns of the loop."""
        if not self.is_busy:
            self.is_busy = True
            self.turn.next().when_done(self._take_step)

    def _take_step(self, _: Later[None]) -> None:
        runtime, left = self.runtime, STEP_WAITING
        self.is_busy = False
        if runtime.long is not None:
            runtime.go_on()
            self.turn.wrote(self)
        while self._waiting and left and runtime.long is None:
            left -= 1
            bugs.guarded("a write that waited", self._waiting.popleft())
        if runtime.long is not None or self._waiting:
            self.hold()

    def read(self, handler: Callable[[S, int], T]) -> T:
        return self.runtime.read(lambda as_of: handler(self.shard, as_of))

    @property
    def name(self) -> str:
        return self.partition.name

    @property
    def is_active(self) -> bool:
        """Whether it is loaded, and has not failed."""
        return self.runtime.state is State.ACTIVE

    def leave(self) -> None:
        """Goes on while another coordinator is elected, with what is in memory. It commits nothing more."""
        self.is_left = True
        self.partition.on_committed = None
        runtime = self.runtime
        runtime.writer = _LostWriter(
            runtime.last_written_offset, runtime.writer.max_batch_bytes(), runtime.writer.now_ms
        )

    def close(self) -> None:
        if not self.is_left:
            self.partition.on_committed = None
        self._alarm.end()
        self.runtime.close()
        self.is_busy = False
        while self._waiting:
            bugs.guarded("a write that waited", self._waiting.popleft())
        self.owner.collector_wakes(self)
