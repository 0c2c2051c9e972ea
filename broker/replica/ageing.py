"""Retention: takes segments out of the logs, and removes their files after `file.delete.delay.ms`; forgets producers.

All are rounds over all logs in steps. Files are removed in a thread, one segment after the other: a file system may
take long for a large file.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from functools import partial
from itertools import repeat

from ...storage import retention
from ...storage.files import Files
from ...storage.log import Log
from ...storage.segment import Segment
from .. import bugs
from ..clock import monotonic_at
from ..settings import Settings
from ..steps import in_steps, off_loop
from ..turn import Turn
from .partition import Partition
from .partitions import Partitions

SEGMENTS_STEP = 8  # segments that a log loses at a time
LOOKS = 4  # at segments and producers, that take as long as a part of what a round looks at
REMOVE_FILES_MS = 10_000
ROUND_STEP = 1024  # logs that are checked per turn of the loop


def remove_all(files: Files, paths: list[str]) -> None:
    """Removes files; some may be gone already. Raises OSError."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            files.remove(path)


class Ageing:
    """The rounds of retention."""

    def __init__(self, turn: Turn, settings: Settings, partitions: Partitions) -> None:
        self.turn = turn
        self.settings = settings
        self.partitions = partitions
        self._removes = False
        self._with_removed: dict[Partition, None] = {}  # those whose logs have segments whose files are to be removed

    def start(self) -> None:
        config = self.settings.config
        interval_ms, first_ms = config["log.retention.check.interval.ms"], config["log.initial.task.delay.ms"]
        expire_ms = config["producer.id.expiration.check.interval.ms"]
        self.turn.every(lambda: interval_ms, self.apply_retention, due_ms=self._due_ms)
        self.turn.every(lambda: expire_ms, self.expire_producers, due_ms=self._expired_ms)
        self.turn.every(lambda: REMOVE_FILES_MS, self.remove_files, first_ms, self._removable_ms)

    def _due_ms(self) -> Iterator[float]:
        """Yields the monotonic times at which retention may have something to do in each log."""
        schedule = self.turn.schedule
        for partition, log in self.partitions.open_logs():
            if partition.high_watermark < log.start_offset:
                yield -math.inf
                return
            yield monotonic_at(schedule, retention.next_ms(log, partition.high_watermark, schedule.now_ms()))
            yield from repeat(math.inf, len(log.segments) // LOOKS)

    def apply_retention(self) -> None:
        """Begins a round that takes out the segments that retention releases."""
        self.turn.background(in_steps(self.turn, self._apply_retention()))

    def _apply_retention(self) -> Iterator[None]:
        """Each part is a log, or a segment that was taken out."""
        for partition, log in self.partitions.open_logs():
            try:
                yield from self._retain(partition, log)
            except Exception as error:
                bugs.report(f"retention of {partition.name}", error)
            yield

    def _retain(self, partition: Partition, log: Log) -> Iterator[None]:
        now = self.turn.schedule.now_ms()
        try:
            while gone := retention.due(log, partition.high_watermark, now)[:SEGMENTS_STEP]:
                log.remove_segments(gone, now)
                for _ in gone:
                    yield
                if partition.log is not log or log.segments[0] is gone[0]:
                    return
        except OSError as error:
            if self.partitions.io_failed(partition, error):
                return
        if partition.high_watermark < log.start_offset:
            partition.advance(log.start_offset)

    def _expired_ms(self) -> Iterator[float]:
        """Yields the monotonic times at which the first producer of each log may be forgotten."""
        schedule, expiration_ms = self.turn.schedule, self.settings.value("producer.id.expiration.ms")
        for _, log in self.partitions.open_logs():
            yield monotonic_at(schedule, log.producers.next_expiry_ms(expiration_ms))
            yield from repeat(math.inf, (len(log.producers.by_id) + len(log.producers.verifying)) // LOOKS)

    def expire_producers(self) -> None:
        """Begins a round that forgets the producers that have been silent for too long."""
        self.turn.background(in_steps(self.turn, self._expire_producers()))

    def _expire_producers(self) -> Iterator[None]:
        for _, log in self.partitions.open_logs():
            log.producers.expire(self.turn.schedule.now_ms(), self.settings.value("producer.id.expiration.ms"))
            yield

    def note(self, partition: Partition) -> None:
        """Segments were taken out of a partition's log."""
        self._with_removed[partition] = None

    def remove_files(self) -> None:
        """Begins a round that removes the files of segments whose delay is over, unless the one before still runs."""
        if self._with_removed and not self._removes:
            self._removes = True
            self.turn.background(self._remove_files())

    def _removable_ms(self) -> Iterator[float]:
        """Yields the monotonic times at which files of each log may be removed."""
        for partition in list(self._with_removed):
            times = () if partition.log is None else partition.log.removed.values()
            first_ms = min(times, default=-math.inf)  # of none, a round forgets it
            yield monotonic_at(self.turn.schedule, first_ms)

    async def _remove_files(self) -> None:
        try:
            found: list[tuple[Partition, Log, Segment]] = []
            await in_steps(self.turn, self._find_removable(found), ROUND_STEP)
            for partition, log, segment in found:
                if self.turn.stopped:
                    return
                paths = segment.close_for_removal()
                try:
                    await off_loop(self.turn, partial(remove_all, log.files, paths))
                except OSError as error:
                    self.partitions.io_failed(partition, error)  # again in the next round
                else:
                    log.forget(segment)
        finally:
            self._removes = False

    def _find_removable(self, found: list[tuple[Partition, Log, Segment]]) -> Iterator[None]:
        now = self.turn.schedule.now_ms()
        for partition in list(self._with_removed):
            log = partition.log
            if log is None or not log.removed:
                self._with_removed.pop(partition, None)
                continue
            found += [(partition, log, segment) for segment in log.removable(now)]
            yield
