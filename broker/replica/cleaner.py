"""Runs compaction: chooses the dirtiest log, lets a worker process write the cleaned segments, and swaps them in.

A log whose cleaning failed for another reason than the disk is skipped until it is opened again, as in Kafka.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...storage import cleaning
from ...storage.files import time_ns
from ...storage.flush import FlushJob
from ...storage.log import Log
from ...storage.segment import IndexDamaged
from ..metrics import Metrics
from ..settings import Settings
from ..turn import Turn
from .partition import Partition
from .partitions import Partitions

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

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


@dataclass
class Pace:
    """When the last compaction of a node's logs began, and what it read and wrote."""

    began_ms: int = 0
    io_bytes: int = 0


class Cleaner:
    """Runs one compaction at a time. Each node has rounds and a rate of its own, for the logs that it leads."""

    def __init__(self, turn: Turn, settings: Settings, partitions: Partitions, metrics: Metrics) -> None:
        self.turn = turn
        self.settings = settings
        self.partitions = partitions
        self.metrics = metrics
        self.busy: Partition | None = None
        self.paused: set[Partition] = set()  # those whose logs are being copied
        self.figures = Figures(last_run_ms=turn.schedule.monotonic_ms())
        self._workers: ProcessPoolExecutor | None = None
        self._paces: dict[Settings, Pace] = {}
        self._stopped = False

    def start(self, settings: Settings) -> None:
        """Begins the rounds of a node. `settings`: its own."""
        if settings not in self._paces and self.settings.config["log.cleaner.enable"]:
            self._paces[settings] = Pace()
            self.turn.every(lambda: settings.value("log.cleaner.backoff.ms"), lambda: self._round(settings))

    def stop(self) -> None:
        self._stopped = True
        if self._workers is not None:
            self._workers.shutdown(wait=False, cancel_futures=True)

    def _round(self, settings: Settings) -> None:
        if self.busy is None and not self._is_paced(settings):
            self.clean_one(settings)

    def _is_paced(self, settings: Settings) -> bool:
        """Whether a node's last compaction would still go on at the rate of `log.cleaner.io.max.bytes.per.second`: one
        reads and writes at full speed, and the next one waits, where Kafka's go on slowly.
        """
        pace = self._paces[settings]
        elapsed_ms = self.turn.schedule.monotonic_ms() - pace.began_ms
        return bool(elapsed_ms * settings.value(RATE) < pace.io_bytes * 1000)

    def clean_one(self, of: Settings | None = None) -> bool:
        """Starts to clean the dirtiest log that is due; returns False if none is due. `of`: of the node that leads it,
        if not of any.
        """
        found = [one for one in self._plans() if of is None or self._leads(one[0]) is of]
        self.figures.last_run_ms = self.turn.schedule.monotonic_ms()
        self.figures.max_dirty_ratio = max((plan.dirty_ratio for _, plan in found), default=0.0)
        due = [one for one in found if one[1].is_due]
        if not due:
            return False
        self._begin(*max(due, key=lambda one: one[1].dirty_ratio))
        return True

    def _leads(self, partition: Partition) -> Settings:
        """Returns the settings of the node that leads a partition."""
        return self.settings.at(partition.leader)

    def _plans(self) -> list[tuple[Partition, cleaning.Plan]]:
        """Returns what can be cleaned in each compacted log."""
        now = self.turn.schedule.now_ms()
        found = []
        for partition in self.partitions.by_name.values():
            log = partition.log
            if log is None or not log.settings.is_compacted or not log.is_cleanable or partition in self.paused:
                continue
            plan = cleaning.plan(log, partition.last_stable_offset, now)
            if plan is not None:
                found.append((partition, plan))
        return found

    def _begin(self, partition: Partition, plan: cleaning.Plan) -> None:
        log = partition.log
        assert log is not None
        began = time_ns()
        self.figures.delay_ms = plan.delay_ms
        small = plan.bytes <= IN_PROCESS_BYTES
        files = self.partitions.log_directories.files
        try:
            flush = log.flush_job()  # only durable segments are replaced
            job = plan.job(partition.high_watermark)
        except IndexDamaged:
            return  # it is being rebuilt; a later round cleans the log
        except Exception as error:
            return self._failed(partition, log, error)
        workers = None if small or not hasattr(files, "lock") else self._pool()
        self.busy = partition
        pace = self._paces.setdefault(self._leads(partition), Pace())
        pace.began_ms, pace.io_bytes = self.turn.schedule.monotonic_ms(), plan.bytes

        def done(outcome: cleaning.Outcome | None, error: BaseException | None) -> None:
            self.busy = None
            self.figures.clean_time_ns = time_ns() - began
            self.metrics.cleaning_ns += self.figures.clean_time_ns
            if not self._stopped:
                self._finish(partition, log, plan, flush, pace, outcome, error)

        def work() -> cleaning.Outcome:
            flush.run()
            return cleaning.run(files, job) if workers is None else workers.submit(cleaning.run_on_disk, job).result()

        self.turn.in_thread(work, done)

    def _pool(self) -> ProcessPoolExecutor:
        if self._workers is None:
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            self._workers = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        return self._workers

    def _finish(
        self,
        partition: Partition,
        log: Log,
        plan: cleaning.Plan,
        flush: FlushJob,
        pace: Pace,
        outcome: cleaning.Outcome | None,
        error: BaseException | None,
    ) -> None:
        if error is not None:
            return self._failed(partition, log, error)
        assert outcome is not None
        if partition.log is not log:
            return
        log.flushed(flush, self.turn.schedule.now_ms())
        try:
            # after a crash a hole below it is known to come from compaction
            self.partitions.save_recovery_point(partition)
            cleaning.swap(log, plan, outcome, self.turn.schedule.now_ms())
        except Exception as failure:
            return self._failed(partition, log, failure)
        self.metrics.cleanings += 1
        written = sum(size for _, _, size in outcome.groups)
        pace.io_bytes += written
        self.figures.recopy_ratio = written / plan.bytes
        partition.forget_positions()

    def _failed(self, partition: Partition, log: Log, error: BaseException) -> None:
        """A failed disk takes its directory offline; after another exception the log is skipped, and the next one gets
        a new worker.
        """
        logger.error("cleaning %s failed: %s", log.name, error)
        if not isinstance(error, OSError):
            log.give_up_cleaning()
            if self._workers is not None:
                self._workers.shutdown(wait=False, cancel_futures=True)
                self._workers = None
        elif partition.log is log:
            self.partitions.io_failed(partition, error)
