"""Drives compaction: chooses the log that needs it most, has a worker process write the cleaned segments, and swaps them in.

A log whose cleaning failed for another reason than the disk is left alone until it is opened anew, as by Kafka.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..storage import cleaning
from ..storage.files import time_ns
from ..storage.log import FlushJob, Log
from .partition import Partition

if TYPE_CHECKING:
    from .broker import Broker

logger = logging.getLogger("ottla")
IN_PROCESS_BYTES = 1 << 20


@dataclass
class Figures:
    """Of the last round, and of the last compaction: what Kafka's metrics of its cleaner are."""

    last_run_ms: int = 0
    max_dirty_ratio: float = 0.0
    clean_time_ns: int = 0
    recopy_ratio: float = 0.0
    delay_ms: int = 0


class Cleaner:
    """One compaction at a time."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.busy: Partition | None = None
        self.figures = Figures(last_run_ms=broker.schedule.monotonic_ms())
        self._workers: Any = None
        self._stopped = False

    def start(self) -> None:
        if self.broker.config["log.cleaner.enable"]:
            self.broker.schedule.later(self.broker.config["log.cleaner.backoff.ms"], self._round)

    def stop(self) -> None:
        self._stopped = True
        if self._workers is not None:
            self._workers.shutdown(wait=False, cancel_futures=True)

    def _round(self) -> None:
        if self._stopped:
            return
        if self.busy is None:
            self.clean_one()
        self.broker.schedule.later(self.broker.config["log.cleaner.backoff.ms"], self._round)

    def clean_one(self) -> bool:
        """Begins cleaning the dirtiest log that is due; False where none is."""
        found = self._plans()
        self.figures.last_run_ms = self.broker.schedule.monotonic_ms()
        self.figures.max_dirty_ratio = max((plan.dirty_ratio for _, plan in found), default=0.0)
        due = [one for one in found if one[1].is_due]
        if not due:
            return False
        self._begin(*max(due, key=lambda one: one[1].dirty_ratio))
        return True

    def _plans(self) -> list[tuple[Partition, cleaning.Plan]]:
        """What there is to clean in each compacted log."""
        now = self.broker.schedule.now_ms()
        found = []
        for partition in self.broker.partitions.by_name.values():
            log = partition.log
            if log is None or not log.settings.is_compacted or not log.is_cleanable:
                continue
            plan = cleaning.plan(log, partition.last_stable_offset, now)
            if plan is not None:
                found.append((partition, plan))
        return found

    def _begin(self, partition: Partition, plan: cleaning.Plan) -> None:
        log = partition.log
        assert log is not None
        self.busy = partition
        began = time_ns()
        self.figures.delay_ms = plan.delay_ms
        small = plan.bytes <= IN_PROCESS_BYTES

        flush = log.flush_job()  # only what is durable is replaced

        def done(outcome: Any, error: BaseException | None) -> None:
            self.busy = None
            self.figures.clean_time_ns = time_ns() - began
            self.broker.metrics.cleaning_ns += self.figures.clean_time_ns
            if not self._stopped:
                self.broker.event(lambda: self._finish(partition, log, plan, flush, outcome, error))

        job, files = plan.job(partition.high_watermark), self.broker.files
        workers = None if small or not hasattr(files, "lock") else self._pool()

        def work() -> cleaning.Outcome:
            flush.run()
            return cleaning.run(files, job) if workers is None else workers.submit(cleaning.run_on_disk, job).result()

        self.broker.schedule.in_thread(work, done)

    def _pool(self) -> Any:
        if self._workers is None:
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            self._workers = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        return self._workers

    def _finish(self, partition: Partition, log: Log, plan: cleaning.Plan, flush: FlushJob, outcome: Any, error: BaseException | None) -> None:
        if error is not None:
            logger.error("cleaning %s failed: %s", log.name, error)
            if not isinstance(error, OSError):
                log.is_cleanable = False
            return
        if partition.log is not log:
            return
        log.flushed(flush, self.broker.schedule.monotonic_ms())
        try:
            self.broker.partitions.save_recovery_point(partition)  # after a crash a hole below it is known to be one that cleaning made
            cleaning.swap(log, plan, outcome, self.broker.schedule.now_ms())
        except OSError as failure:
            self.broker.directory_failed(self.broker.partitions.directory_of[partition], failure)
            return
        self.broker.metrics.cleanings += 1
        self.figures.recopy_ratio = sum(size for _, _, size in outcome.groups) / plan.bytes
        partition.forget_positions()
