"""Directories of deleted partitions: renamed to `topic-0.<id>-delete` at once, removed after `file.delete.delay.ms`,
one at a time in a thread.

Those of an earlier process are found at start, as in Kafka.
"""

from __future__ import annotations

import logging
import math

from ...storage.layout import is_deleted_directory
from ...storage.log import Log
from ..clock import monotonic_at
from ..settings import Settings
from ..turn import Turn
from .directories import LogDirectories, LogDirectory
from .strays import may_exist

logger = logging.getLogger("ottla.org.apache.kafka.storage.internals.log.LogManager")
ROUND_MS = 10_000


class Removal:
    """Directories to remove, in the order of their renaming."""

    def __init__(self, turn: Turn, settings: Settings, log_directories: LogDirectories) -> None:
        self.turn = turn
        self.settings = settings
        self.log_directories = log_directories
        # due time, path, directory, and the log if it was open here
        self._waiting: list[tuple[int, str, LogDirectory, Log | None]] = []
        self._busy = False

    def start(self) -> None:
        first_ms = self.settings.config["log.initial.task.delay.ms"]
        self.turn.every(lambda: ROUND_MS, self.remove_due, first_ms, self._due_ms)

    def _due_ms(self) -> float:
        """Returns the monotonic time at which the first directory is due."""
        first_ms = min((due_ms for due_ms, *_ in self._waiting), default=math.inf)
        return monotonic_at(self.turn.schedule, first_ms)

    def __len__(self) -> int:
        return len(self._waiting)

    def find(self) -> None:
        """Adds the directories that an earlier process left. Raises OSError."""
        due_ms = self.turn.schedule.now_ms() + self.settings.of_log("").file_delete_delay_ms
        for directory in self.log_directories.online:
            left = [name for name in self.log_directories.files.names(directory.path) if is_deleted_directory(name)]
            self._waiting += [(due_ms, f"{directory.path}/{name}", directory, None) for name in left]
            if left:
                logger.info(
                    "%s: %d directories of deleted partitions remain and will be removed", directory.path, len(left)
                )

    def add(self, log: Log, directory: LogDirectory) -> None:
        """Adds a log whose directory was renamed."""
        self._waiting.append(
            (self.turn.schedule.now_ms() + log.settings.file_delete_delay_ms, log.directory, directory, log)
        )

    def add_left(self, path: str, directory: LogDirectory) -> None:
        """Adds a directory that was renamed, of which nothing is open."""
        due_ms = self.turn.schedule.now_ms() + self.settings.of_log("").file_delete_delay_ms
        self._waiting.append((due_ms, path, directory, None))

    def remove_due(self) -> None:
        """Removes directories that are due, one after another. A log that a reply still reads waits."""
        now_ms = self.turn.schedule.now_ms()
        for number, (due_ms, path, directory, log) in enumerate(self._waiting):
            if self._busy or self.turn.stopped:
                return
            if due_ms <= now_ms and not (log and any(segment.holds for segment in log.segments)):
                del self._waiting[number]
                self._remove(path, directory, log)
                return

    def _remove(self, path: str, directory: LogDirectory, log: Log | None) -> None:
        for segment in log.segments if log else ():
            segment.close_files()
        if directory.failed:
            return
        self._busy = True
        files = self.log_directories.files

        def done(_: None, error: BaseException | None) -> None:
            self._busy = False
            if (
                isinstance(error, OSError)
                and may_exist(files, path)
                and not self.log_directories.io_failed(directory, error)
            ):
                self._waiting.append((self.turn.schedule.now_ms(), path, directory, None))  # in the next round
                return
            self.remove_due()

        self.turn.in_thread(lambda: files.remove_tree(path), done)
