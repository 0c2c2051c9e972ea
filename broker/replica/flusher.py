"""Syncs logs to disk: after an append that makes a flush due, in rounds, and at shutdown.

`flush.messages` delays replies: the high watermark waits for the flushed offset. `flush.ms` does not, as in Kafka,
where a background task uses it (`LogManager.flushDirtyLogs`): a round looks for logs whose oldest unflushed record has
waited that long.

A failed sync is never retried, because it is unknown which data reached the disk; the directory goes offline. A failure
before any sync that is not the disk's is retried soon (`storage.failures`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

from ...storage.flush import FlushJob
from ...storage.log import Log
from ...storage.settings import FOREVER
from .. import bugs
from ..clock import monotonic_at
from ..config.config import Config
from ..metrics import Metrics
from ..steps import in_steps
from ..turn import Turn
from .partition import Partition
from .partitions import Partitions

RETRY_MS = 1000
ROUND_MS_MAX = 1000
ROUND_STEP = 1024  # logs that are looked at per turn of the loop
Done = Callable[[int | None, BaseException | None], None]
RunJob = Callable[[Partition, FlushJob, Done], None]


class Flusher:
    """Syncs the logs of all partitions."""

    def __init__(self, turn: Turn, config: Config, partitions: Partitions, metrics: Metrics) -> None:
        self.turn = turn
        self.config = config
        self.partitions = partitions
        self.metrics = metrics
        self.run: RunJob = self.run_in_thread  # the lab may delay the jobs
        self._ageing: dict[Partition, None] = {}  # those with records that `flush.ms` is to make durable

    def run_in_thread(self, partition: Partition, job: FlushJob, done: Done) -> None:
        self.turn.in_thread(job.run, done)

    def start(self) -> None:
        self.turn.every(self.round_ms, self.begin_round, due_ms=self._due_ms)

    def round_ms(self) -> int:
        """How often a round runs: every `log.flush.scheduler.interval.ms`, and at least every second."""
        configured: int = self.config["log.flush.scheduler.interval.ms"]
        return min(ROUND_MS_MAX, configured)

    def flush(self, partition: Partition) -> None:
        """Syncs a partition's log in a thread; appends that wait for it share the sync."""
        log = partition.log
        if partition.flushing or log is None:
            return
        partition.flushing = True
        try:
            job = log.flush_job()
        # the reply of the append that requested the flush must be parked before the directory fails
        except Exception as error:
            failure = error
            return self.turn.soon(lambda: self._failed(partition, log, failure, is_sure=True))

        def done(took_ns: int | None, error: BaseException | None) -> None:
            if error is not None:
                return self._failed(partition, log, error, is_sure=False)
            try:
                log.flushed(job, self.turn.schedule.now_ms())
            except Exception as failure:  # everything is synced; a second sync does no harm
                return self._failed(partition, log, failure, is_sure=True)
            partition.flushing = False
            self.metrics.fsyncs += 1
            self.metrics.fsync_ns += took_ns or 0
            if partition.log is log:
                self.turn.moved(partition)

        self.run(partition, job, done)

    def _failed(self, partition: Partition, log: Log, error: BaseException, is_sure: bool) -> None:
        """`is_sure`: whether it is certain which data is durable: all of it, or none was synced."""
        if partition.log is not log:
            partition.flushing = False
            return
        if not isinstance(error, OSError):
            bugs.report(f"flushing {partition.name}", error)
        if isinstance(error, OSError) or not is_sure:
            failure = error if isinstance(error, OSError) else OSError(str(error))
            if self.partitions.io_failed(partition, failure):
                partition.flushing = False
                return

        def again() -> None:
            partition.flushing = False
            self.flush(partition)

        self.turn.later(RETRY_MS, again)

    def note(self, partition: Partition) -> None:
        """Looks at a log in each round from now on, if it has records that wait for `flush.ms`. Called when it has the
        first one, and when its settings change.
        """
        if _waits(partition):
            self._ageing[partition] = None

    def _due_ms(self) -> Iterator[float]:
        """Yields the monotonic times at which the oldest record of each log has waited for `flush.ms`."""
        for partition in list(self._ageing):
            log = partition.log
            since_ms = None if log is None else log.unflushed_since_ms
            if log is None or since_ms is None:
                yield -math.inf  # a round forgets it
            else:
                yield monotonic_at(self.turn.schedule, since_ms + log.settings.flush_ms)

    def begin_round(self) -> None:
        """Begins a round that flushes the logs whose oldest unflushed record has waited for `flush.ms`."""
        if self._ageing:
            self.turn.background(in_steps(self.turn, self._flush_due(), ROUND_STEP))

    def _flush_due(self) -> Iterator[None]:
        now = self.turn.schedule.now_ms()
        for partition in list(self._ageing):
            log = partition.log
            if log is None or not _waits(partition):
                self._ageing.pop(partition, None)
                continue
            since = log.unflushed_since_ms
            if since is not None and log.end_offset > log.recovery_point and now - since >= log.settings.flush_ms:
                self.flush(partition)
            yield

    def close_all(self) -> Iterator[tuple[Partition, BaseException]]:
        """Closes every open log, several at a time; unchanged logs have nothing to sync. Yields the failures."""
        jobs: list[tuple[Partition, Log, FlushJob]] = []
        for partition, log in self.partitions.open_logs():
            try:
                jobs.append((partition, log, log.close_job()))
            except Exception as error:
                yield partition, _reported(partition, error)
        failed = self._sync_all([(partition, job) for partition, _, job in jobs if not job.is_empty])
        for partition, log, job in jobs:
            failure = failed.get(partition)
            if failure is None:
                log.flushed(job, 0)
            else:
                yield partition, _reported(partition, failure)
            log.close_files()

    def _sync_all(self, jobs: list[tuple[Partition, FlushJob]]) -> dict[Partition, BaseException]:
        """Runs jobs, and returns the failures. A directory that many logs are in is synced once, after all of them."""
        run_all = self.turn.schedule.run_all
        errors = run_all([job.of_log.run for _, job in jobs])
        shared = {path: job.files for _, job in jobs for path in job.shared}
        of_shared = run_all([partial(files.sync_directory, path) for path, files in shared.items()])
        failed_at = {path: error for path, error in zip(shared, of_shared, strict=True) if error is not None}
        found = {}
        for (partition, job), error in zip(jobs, errors, strict=True):
            failure = error or next((failed_at[path] for path in job.shared if path in failed_at), None)
            if failure is not None:
                found[partition] = failure
        return found


def _waits(partition: Partition) -> bool:
    """Whether a partition has records that `flush.ms` is to make durable."""
    log = partition.log
    return log is not None and log.unflushed_since_ms is not None and log.settings.flush_ms < FOREVER


def _reported(partition: Partition, error: BaseException) -> BaseException:
    if not isinstance(error, OSError):
        bugs.report(f"closing {partition.name}", error)
    return error
