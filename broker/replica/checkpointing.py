"""Writes the offset checkpoints of the log directories: the offsets are collected in steps, the files written in a
thread. At the end, the marks of a clean shutdown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial

from ...storage.files import Files
from ...storage.layout import CLEAN_SHUTDOWN
from ..steps import in_steps, off_loop
from ..turn import Turn
from . import directories
from .directories import LogDirectories, LogDirectory
from .partition import Partition
from .partitions import Partitions

ROUND_STEP = 1024  # logs whose offsets are collected per turn of the loop


class Checkpoints:
    """The rounds of checkpoints, one at a time."""

    def __init__(self, turn: Turn, log_directories: LogDirectories, partitions: Partitions) -> None:
        self.turn = turn
        self.log_directories = log_directories
        self.partitions = partitions
        self._busy = self._again = False

    def start(self) -> None:
        interval_ms = self.log_directories.config["log.flush.offset.checkpoint.interval.ms"]
        self.turn.every(lambda: interval_ms, self.begin_round, due_ms=self._due_ms)

    def _due_ms(self) -> Iterator[float]:
        """Yields when the checkpoints differ from the offsets, or may differ: now or never."""
        if self._busy:
            yield -math.inf
            return
        for directory in self.log_directories.online:
            for _ in self._collect(directory):
                yield math.inf
            yield math.inf if directories.are_stored(directory) else -math.inf

    def begin_round(self) -> None:
        """Begins a round; after the one that runs, if there is one."""
        self._again = True
        if not self._busy:
            self._busy = True
            self.turn.background(self._rounds())

    async def _rounds(self) -> None:
        try:
            while self._again and not self.turn.stopped:
                self._again = False
                for directory in self.log_directories.online:
                    await self._save(directory)
        finally:
            self._busy = False

    async def _save(self, directory: LogDirectory) -> None:
        await in_steps(self.turn, self._collect(directory), ROUND_STEP)
        if directory.failed or self.turn.stopped:
            return
        job = directories.checkpoint_job(directory)
        try:
            await off_loop(self.turn, partial(directories.store, self.log_directories.files, directory, job))
        except OSError as error:
            self.log_directories.io_failed(directory, error)

    def save_now(self) -> None:
        """Writes the checkpoints of all directories before it returns."""
        for directory in self.log_directories.online:
            for _ in self._collect(directory):
                continue
            try:
                directories.store(self.log_directories.files, directory, directories.checkpoint_job(directory))
            except OSError as error:
                self.log_directories.io_failed(directory, error)

    def _collect(self, directory: LogDirectory) -> Iterator[None]:
        """Notes recovery point, log start offset, high watermark and replicas of each log in the directory."""
        for partition, log in self.partitions.open_logs():
            if self.partitions.directory_of.get(partition) is directory:
                key = (partition.topic, partition.index)
                directory.recovery_points[key] = log.recovery_point
                directory.log_starts[key] = log.start_offset
                directory.high_watermarks[key] = partition.high_watermark
                if log.settings.is_compacted:
                    directory.cleaner_offsets[key] = log.first_dirty_offset
                self._note_ends(directory, partition)
            yield
        present = self.partitions.by_name
        for offsets in (
            directory.recovery_points,
            directory.log_starts,
            directory.high_watermarks,
            directory.cleaner_offsets,
        ):
            for key in [k for k in offsets if k not in present]:
                del offsets[key]
        ends, homes, by_id = directory.replica_ends.by_key, self.partitions.directory_of, self.partitions.by_id
        for held in [k for k in ends if k not in by_id or homes[by_id[k]] is not directory]:
            del ends[held]

    @staticmethod
    def _note_ends(directory: LogDirectory, partition: Partition) -> None:
        """Notes where the replicas of a partition are that do not have the whole log."""
        replicas, key = partition.replica_set, (partition.topic_id, partition.index)
        known = {} if replicas is None else replicas.lasting(partition.end_offset, partition.followers_reach)
        directory.replica_ends.note(key, known)


def mark_clean(files: Files, directory: LogDirectory, broker_epoch: int) -> None:
    """Writes the mark of a clean shutdown, and that the replicas are where they were then. Raises OSError."""
    held = directory.replica_ends
    directories.store_ends(files, directory, held.by_key, held.crashed, broker_epoch)
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    files.replace(f"{directory.path}/{CLEAN_SHUTDOWN}", content.encode())
