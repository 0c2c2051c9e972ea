"""Runs compaction: chooses the dirtiest log, lets a thread or a worker process write the cleaned segments, and swaps
them in.

Each node compacts what it leads, one log at a time. A compaction goes on in pieces, as fast as the node's
`log.cleaner.io.max.bytes.per.second` allows; without a limit there is one piece. A log that is gone, cut or copied
meanwhile is left as it is, and one whose cleaning failed for another reason than the disk is skipped until it is opened
again, as in Kafka.

What compacts is imported for the first log that is compacted: a start does without it.
"""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...storage.files import time_ns
from ...storage.flush import FlushJob
from ...storage.log import Log
from ...storage.segment import IndexDamaged
from ...storage.settings import FOREVER
from ..clock import monotonic_at
from ..metrics import Metrics
from ..settings import Settings
from ..steps import off_loop
from ..turn import Turn
from .cleaning_pace import PIECES_PER_SECOND, Pace
from .partition import Partition
from .partitions import Partitions

if TYPE_CHECKING:
    from ...storage.cleaning import Outcome, Plan
    from ...storage.cleaning_pieces import Piece
    from .cleaning_works import InThread, InWorker, Workers

logger = logging.getLogger("ottla.org.apache.kafka.storage.internals.log.LogCleaner")
IN_PROCESS_BYTES = 1 << 20
RATE = "log.cleaner.io.max.bytes.per.second"


@dataclass
class Figures:
    """Figures of the last round and the last compaction, for Kafka's cleaner metrics."""

    last_run_ms: int = 0
    max_dirty_ratio: float = 0.0
    clean_time_ns: int = 0
    recopy_ratio: float = 0.0
    delay_ms: int = 0


@dataclass(eq=False)
class Run:
    """A compaction of a log that has begun. `settings`: of the node that led it then."""

    partition: Partition
    log: Log
    plan: Plan
    flush: FlushJob | None  # until that is done
    work: InThread | InWorker
    settings: Settings
    pace: Pace
    directory: str
    began_ns: int
    is_in_thread: bool = False

    @property
    def is_stale(self) -> bool:
        """Whether the log is another one now, or has lost segments that were to be read."""
        return self.partition.log is not self.log or any(one.suffix for one in self.plan.segments)


class Cleaner:
    """Runs compactions. Each node has rounds and a pace of its own, for the logs that it leads."""

    def __init__(self, turn: Turn, settings: Settings, partitions: Partitions, metrics: Metrics) -> None:
        self.turn = turn
        self.settings = settings
        self.partitions = partitions
        self.metrics = metrics
        self.paused: set[Partition] = set()  # those whose logs are being copied
        self.figures = Figures(last_run_ms=turn.schedule.monotonic_ms())
        self._runs: dict[str, Run] = {}  # by directory of the log
        self._compacted: dict[Partition, None] = {}  # those whose logs are compacted
        self._workers: Workers | None = None
        self._paces: dict[Settings, Pace] = {}
        self._stopped = False

    def start(self, settings: Settings) -> None:
        """Begins the rounds of a node. `settings`: its own."""
        if settings not in self._paces and self.settings.config["log.cleaner.enable"]:
            self._paces[settings] = Pace()
            self.turn.every(
                lambda: settings.value("log.cleaner.backoff.ms"),
                partial(self._round, settings),
                due_ms=partial(self._due_ms, settings),
            )

    def stop(self) -> None:
        """Ends the compactions that wait; what others write until they notice is removed when the log is opened."""
        self._stopped = True
        self._stop_workers()
        for run in self._runs.values():
            if not run.is_in_thread:
                with suppress(OSError):  # a log that is opened again removes the files, too
                    self._drop(run)

    def _stop_workers(self) -> None:
        if self._workers is not None:
            self._workers.stop()

    def is_busy(self, partition: Partition) -> bool:
        """Whether a compaction of a partition's log has begun."""
        return any(run.partition is partition for run in self._runs.values())

    def _due_ms(self, settings: Settings) -> float:
        """Returns the monotonic time at which there is a log to clean, or may be."""
        if any(plan.is_due for _, plan in self._found(settings)):
            return -math.inf
        waiting = [log for one in self._compacted if (log := one.log) is not None and _waits(log)]
        if not waiting:
            return math.inf
        from ...storage import cleaning

        schedule = self.turn.schedule
        now_ms = schedule.now_ms()
        return monotonic_at(schedule, min(cleaning.next_ms(log, now_ms) for log in waiting))

    def idle_ms(self) -> int:
        """Returns how long ago it looked for a log to clean last, or would have without a rest."""
        since_ms = self.turn.schedule.monotonic_ms() - self.figures.last_run_ms
        return since_ms if self._runs else since_ms % max(1, self.settings.value("log.cleaner.backoff.ms"))

    def _round(self, settings: Settings) -> None:
        is_free = all(run.settings is not settings for run in self._runs.values())
        if is_free and not self._wait_ms(settings, self._paces[settings]):
            self.clean_one(settings)

    def _wait_ms(self, settings: Settings, pace: Pace) -> int:
        return pace.wait_ms(settings.value(RATE), self.turn.schedule.monotonic_ms())

    def clean_one(self, of: Settings | None = None) -> bool:
        """Starts to clean the dirtiest log that is due; returns False if none is due. `of`: of the node that leads it,
        if not of any.
        """
        due = [one for one in self._found(of) if one[1].is_due]
        if not due:
            return False
        self._begin(*max(due, key=lambda one: one[1].dirty_ratio))
        return True

    def _found(self, of: Settings | None) -> list[tuple[Partition, Plan]]:
        """Returns what can be cleaned, whether due or not."""
        found = [one for one in self._plans() if of is None or self._leads(one[0]) is of]
        self.figures.last_run_ms = self.turn.schedule.monotonic_ms()
        self.figures.max_dirty_ratio = max((plan.dirty_ratio for _, plan in found), default=0.0)
        return found

    def _leads(self, partition: Partition) -> Settings:
        """Returns the settings of the node that leads a partition."""
        return self.settings.at(partition.leader)

    def note(self, partition: Partition) -> None:
        """A log was opened, or has other settings."""
        if partition.log is not None and partition.log.settings.is_compacted:
            self._compacted[partition] = None

    def _plans(self) -> list[tuple[Partition, Plan]]:
        """Returns what can be cleaned in each compacted log."""
        if not self._compacted:
            return []
        from ...storage import cleaning

        now = self.turn.schedule.now_ms()
        found = []
        for partition in list(self._compacted):
            log = partition.log
            if log is None or not log.settings.is_compacted:
                del self._compacted[partition]
                continue
            if not log.is_cleanable or partition in self.paused or log.directory in self._runs:
                continue
            plan = cleaning.plan(log, partition.last_stable_offset, now)
            if plan is not None:
                found.append((partition, plan))
        return found

    def keys_max(self, settings: Settings) -> int:
        """Returns how many keys a compaction takes. The nodes, which share a process, share the buffer."""
        from ...storage.cleaning import keys_of

        shares = max(1, settings.value("log.cleaner.threads")) * max(1, len(self._paces))
        buffer_bytes = settings.value("log.cleaner.dedupe.buffer.size")
        return keys_of(buffer_bytes // shares, settings.value("log.cleaner.io.buffer.load.factor"))

    def _begin(self, partition: Partition, plan: Plan) -> None:
        from .cleaning_works import InThread, Workers

        log = partition.log
        assert log is not None
        began = time_ns()
        self.figures.delay_ms = plan.delay_ms
        settings = self._leads(partition)
        pace = self._paces.setdefault(settings, Pace())
        files = self.partitions.log_directories.files
        try:
            flush = log.flush_job()  # only durable segments are replaced
            job = plan.job(partition.high_watermark, self.keys_max(settings))
        except IndexDamaged:
            return  # it is being rebuilt; a later round cleans the log
        except Exception as error:
            return self._failed(partition, log, error)
        self._workers = self._workers or Workers()
        is_small = plan.bytes <= IN_PROCESS_BYTES or not hasattr(files, "lock")
        work = InThread(files, job) if is_small else self._workers.work(job)
        run = self._runs[log.directory] = Run(partition, log, plan, flush, work, settings, pace, log.directory, began)
        self.turn.background(self._clean(run))

    async def _clean(self, run: Run) -> None:
        try:
            outcome = await self._pieces(run)
            if outcome is not None and not self._stopped:
                self._finish(run, outcome)
            elif not self._stopped:
                await off_loop(self.turn, partial(self._drop, run))
        except Exception as error:
            if not (self._stopped or run.is_stale or run.work.is_lost):
                self._failed(run.partition, run.log, error)
        finally:
            del self._runs[run.directory]

    async def _pieces(self, run: Run) -> Outcome | None:
        """Does the work. Returns None if it does not go on. Raises OSError."""
        while run.partition.log is run.log and not run.work.is_lost and not self._stopped:
            wait_ms = self._wait_ms(run.settings, run.pace)
            if not wait_ms:
                piece = await self._piece(run)
                if piece.outcome is not None:
                    return piece.outcome
            elif run.partition in self.paused:
                return None
            else:
                await self.turn.pause(wait_ms)
        return None

    async def _piece(self, run: Run) -> Piece:
        flush, bytes_max, began = run.flush, run.settings.value(RATE) / PIECES_PER_SECOND, time_ns()
        run.flush, run.is_in_thread = None, True

        def work() -> Piece:
            if flush is not None:
                flush.run()
            return run.work.go_on(max(1, bytes_max))

        try:
            piece: Piece = await off_loop(self.turn, work)
        finally:
            run.is_in_thread = False
            self.metrics.cleaning_ns += time_ns() - began
        run.pace.owed_bytes += piece.bytes
        if flush is not None and run.partition.log is run.log and not self._stopped:
            run.log.flushed(flush, self.turn.schedule.now_ms())
        return piece

    def _drop(self, run: Run) -> None:
        """Leaves a log as it is. One that is opened again removes the files by itself."""
        from ...storage.cleaning_pieces import remove_cleaned

        run.work.close()
        if run.partition.log is run.log:
            remove_cleaned(self.partitions.log_directories.files, run.directory)

    def _finish(self, run: Run, outcome: Outcome) -> None:
        from ...storage.cleaning import swap

        partition, log, plan = run.partition, run.log, run.plan
        self.figures.clean_time_ns = time_ns() - run.began_ns
        if partition.log is not log:
            return
        try:
            # after a crash a hole below it is known to come from compaction
            self.partitions.save_recovery_point(partition)
            swap(log, plan, outcome, self.turn.schedule.now_ms())
        except Exception as failure:
            return self._failed(partition, log, failure)
        self.metrics.cleanings += 1
        written = sum(size for _, _, size in outcome.groups)
        self.figures.recopy_ratio = written / plan.bytes
        partition.forget_positions()

    def _failed(self, partition: Partition, log: Log, error: BaseException) -> None:
        """A failed disk takes its directory offline; after another exception the log is skipped, and the next one gets
        a new worker.
        """
        logger.error("cleaning %s failed: %s", log.name, error)
        if not isinstance(error, OSError):
            log.give_up_cleaning()
            self._stop_workers()
        elif partition.log is log:
            self.partitions.io_failed(partition, error)


def _waits(log: Log) -> bool:
    """Whether a log may have to be cleaned because time has passed."""
    if len(log.segments) == 1 or not log.is_cleanable:
        return False
    return log.settings.min_compaction_lag_ms > 0 or log.settings.max_compaction_lag_ms < FOREVER
