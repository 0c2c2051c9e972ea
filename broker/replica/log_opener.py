"""Opens the log of one partition, and reports what recovery truncates, what is missing,
and what belongs to another partition.

Impossible states raise exceptions, which take only this partition offline.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Generator

from ...storage import checkpoints
from ...storage.gaps import gaps
from ...storage.layout import LOG, PARTITION_METADATA, SWAP
from ...storage.log import Log
from ...storage.recovery import Cut, OtherTopic, create_log, open_log
from ...storage.settings import LogSettings
from ..settings import Settings
from ..turn import Turn
from .directories import LogDirectories, LogDirectory
from .partition import Partition
from .strays import set_aside

logger = logging.getLogger("ottla.org.apache.kafka.storage.internals.log.LogLoader")
NOT_PERMITTED = frozenset((errno.EACCES, errno.EPERM, errno.ELOOP))
RESERVED_DIRECTORY_IDS = 100  # unassigned, lost, migrating (KIP-858)


class LogOpener:
    """Opens the logs of partitions."""

    def __init__(self, turn: Turn, settings: Settings, log_directories: LogDirectories) -> None:
        self.schedule = turn.schedule
        self.settings = settings
        self.log_directories = log_directories

    def open(
        self, partition: Partition, directory: LogDirectory, path: str, created: bool, trusted: bool = True
    ) -> Generator[None, None, Log]:
        """A generator like `open_log`, for the log of a partition in `path`. `created`: the partition is new;
        `trusted`: its files are trusted after a clean shutdown.

        Raises OSError; ValueError if records are missing, or a file has an invalid format.
        """
        return _Opening(self, partition, directory, path).steps(created, trusted and (created or directory.clean))


class _Opening:
    """The opening of one log, and what the checkpoints say about it."""

    def __init__(self, opener: LogOpener, partition: Partition, directory: LogDirectory, path: str) -> None:
        key = partition.topic, partition.index
        self.opener = opener
        self.log_directories = opener.log_directories
        self.partition = partition
        self.directory = directory
        self.path = path
        self.is_strict = opener.settings.config["ottla.recovery"] == "strict"
        self.recovery_point = directory.recovery_points.get(key, 0)
        self.start_offset = directory.log_starts.get(key, 0)
        self.committed = max(self.recovery_point, directory.high_watermarks.get(key, 0))
        self.cuts: list[Cut] = []

    def steps(self, created: bool, clean: bool) -> Generator[None, None, Log]:
        """Opens the log and checks it. `clean`: the files are trusted."""
        exists = self.log_directories.files.exists(self.path)
        if created and not exists and not self.committed and not self.start_offset:
            return self._create()
        if created and exists:
            self._set_aside("the directory existed before the topic was created")
        elif not created:
            self._check_is_there(exists)
        try:
            log = yield from self._open(clean)
        except OtherTopic as other:
            self._set_aside(str(other))
            log = yield from self._open(clean=True)
        for gap in (yield from gaps(log)):
            logger.error("%s; the missing records are lost", gap)
        self._check_end(log)
        if log.epochs.truncate_from_start(log.start_offset):
            log.save_epochs()
        if log.topic_id is None:
            log.set_topic_id(self.partition.topic_id)
        log.assign_epoch(self.partition.leader_epoch, log.end_offset)
        return log

    def _create(self) -> Log:
        partition = self.partition
        return create_log(
            self.log_directories.pool,
            self.path,
            self._settings(),
            self.opener.schedule.now_ms(),
            partition.topic_id,
            partition.leader_epoch,
        )

    def _settings(self) -> LogSettings:
        return self.opener.settings.at(self.partition.leader).of_log(self.partition.topic)

    def _open(self, clean: bool) -> Generator[None, None, Log]:
        return open_log(
            self.log_directories.pool,
            self.path,
            self._settings(),
            self.opener.schedule.now_ms(),
            clean=clean,
            recovery_point=self.recovery_point,
            start_offset=self.start_offset,
            before_cut=self._before_cut,
            topic_id=self.partition.topic_id,
        )

    def _set_aside(self, why: str) -> None:
        """Renames a directory of another topic; the checkpoints are of that topic too."""
        self.log_directories.pool.close_under(self.path)
        set_aside(self.log_directories.files, self.path, self.log_directories.new_id, why)
        self.committed = self.recovery_point = self.start_offset = 0

    # missing data

    def _before_cut(self, cut: Cut) -> None:
        self.cuts.append(cut)
        if cut.offset < self.committed:
            self._lost(f"{cut} would be truncated, but offset {self.committed} was committed")
        else:
            logger.warning("%s were truncated", cut)

    def _check_end(self, log: Log) -> None:
        if log.end_offset < self.committed and not self.cuts:
            self._lost(
                f"{log.active.path(LOG)}: the log ends at offset {log.end_offset}, but offset {self.committed} was "
                "committed"
            )
        elif self.directory.clean and 0 < self.recovery_point < log.end_offset:
            self._lost(
                f"{log.active.path(LOG)}: the log ends at offset {log.end_offset}, but it ended at "
                f"{self.recovery_point} when it was closed"
            )

    def _lost(self, what: str) -> None:
        """Reports missing records. Raises ValueError if no crash explains the loss, unless recovery is `salvage`."""
        if self.is_strict and self.directory.clean:
            raise ValueError(
                f"{what}; restore the file, or start with ottla.recovery=salvage to continue with the data that remains"
            )
        logger.error(what)

    def _check_is_there(self, exists: bool) -> None:
        """Raises ValueError if the log must exist, or may be in a log directory that is not in `log.dirs`."""
        names = self.log_directories.files.names(self.path) if exists else []
        is_empty = PARTITION_METADATA in names and not any(name.endswith((LOG, LOG + SWAP)) for name in names)
        if is_empty and not self._is_of_another_topic():
            wrong = f"{self.path}: the directory holds {PARTITION_METADATA} but no segment"
        elif exists:
            return
        elif self.committed:
            wrong = f"{self.path} is missing; it held records up to offset {self.committed}"
        elif elsewhere := self._unknown_directory():
            wrong = f"{self.path} is missing: the log directory of the partition, {elsewhere}, is not in log.dirs"
        else:
            return
        if self.is_strict:
            raise ValueError(
                f"{wrong}; restore the directory, or start with ottla.recovery=salvage to start the partition empty"
            )
        logger.error("%s; the partition starts empty (ottla.recovery=salvage)", wrong)

    def _is_of_another_topic(self) -> bool:
        """Whether the directory will be set aside (`OtherTopic`): its segments need not be there."""
        try:
            found = checkpoints.decode_partition_metadata(
                self.log_directories.files.read(f"{self.path}/{PARTITION_METADATA}")
            )
        except checkpoints.CorruptCheckpoint:
            return False
        return found != self.partition.topic_id

    def _unknown_directory(self) -> str:
        known = {id for one in self.log_directories.all for id in one.ids}  # as any node has them
        key = self.partition.topic_id, self.partition.index
        for directory_id in self.opener.settings.image.partitions[key].directories:
            if directory_id not in known and int.from_bytes(directory_id, "big") >= RESERVED_DIRECTORY_IDS:
                return checkpoints.uuid_to_text(directory_id)
        return ""
