"""Snapshots of the metadata: the committed image as records, in a file, so that the log before it can be removed.

A snapshot has the image of one moment: its tables are copied at once, which is quick because their values are never
changed. The copy is encoded in steps and stored in a thread, while requests go on and commits change the image. The
snapshot before it is kept, with the log from that one on, in case the new one is damaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from ...coordinator.metadata.state import MetadataState
from ...storage.files import Files
from ...storage.layout import snapshot_name
from ...storage.log import Log
from ..replica.directories import LogDirectories
from ..replica.partition import Partition
from ..steps import Work, all_at_once, opened_in_steps
from ..turn import Turn
from . import metadata_log
from .commits import Commits
from .metadata_log import Voter

SNAPSHOTS_KEPT = 2


def store(files: Files, directory: str, name: str, data: bytes) -> int:
    """Stores a snapshot durably and removes the oldest ones;
    returns the end offset of the oldest that is kept. Raises OSError.
    """
    files.replace(f"{directory}/{name}", data)
    held = metadata_log.snapshots(files.names(directory))
    for older in held[SNAPSHOTS_KEPT:]:
        files.remove(f"{directory}/{snapshot_name(*older)}")
    return held[:SNAPSHOTS_KEPT][-1][0]


class Snapshots:
    """The snapshots of a metadata log. `offset`: the end of the newest one."""

    def __init__(
        self,
        turn: Turn,
        image: MetadataState,
        partition: Partition,
        commits: Commits,
        log_directories: LogDirectories,
        voter: Callable[[], Voter],
    ) -> None:
        self.turn = turn
        self.image = image
        self.partition = partition
        self.commits = commits
        self.log_directories = log_directories
        self.voter = voter
        self.offset = 0
        self._bytes = 0  # of the log when the newest one was taken
        self._busy = False

    def begin_at(self, log: Log, offset: int) -> None:
        """The newest snapshot ends at `offset`."""
        self.offset = offset
        segment, position = log.position_of(offset)
        self._bytes = sum(s.size for s in log.segments if s.base_offset < segment.base_offset) + position

    def start(self) -> None:
        """Takes a snapshot every `metadata.log.max.snapshot.interval.ms` if there are new records."""
        interval_ms = self.log_directories.config["metadata.log.max.snapshot.interval.ms"]
        if interval_ms:
            self.turn.every(
                lambda: interval_ms, self._take_if_old, due_ms=lambda: -math.inf if self._is_old() else math.inf
            )

    def _is_old(self) -> bool:
        return self.partition.log is not None and self.commits.applied_offset > self.offset

    def _take_if_old(self) -> None:
        if self._is_old():
            self._begin()

    def take_if_due(self) -> None:
        """Begins a snapshot if the log has grown enough since the last one."""
        limit: int = self.log_directories.config["metadata.log.max.record.bytes.between.snapshots"]
        if self.partition.open_log().size - self._bytes >= limit:
            self._begin()

    def _begin(self) -> None:
        if not self._busy:
            self._busy = True
            self.turn.background(self._take())

    async def _take(self) -> None:
        try:
            await opened_in_steps(self.turn, self._work())
        except OSError as error:
            self.log_directories.io_failed(self.log_directories.all[0], error)
        finally:
            self._busy = False

    def take_now(self) -> None:
        """Takes a snapshot before it returns. Raises OSError."""
        all_at_once(self._work())

    def _work(self) -> Work[None]:
        log, now = self.partition.open_log(), self.turn.schedule.now_ms()
        image, end, epoch, size = (
            self.image.copied(),
            self.commits.applied_offset,
            self.partition.leader_epoch,
            log.size,
        )
        log.roll(now)
        data = yield from metadata_log.build_snapshot([self.voter()], image.as_records(), epoch, now, now)
        oldest: int = yield partial(store, log.files, log.directory, snapshot_name(end, epoch), data)
        if self.partition.log is not log:  # the broker stopped meanwhile
            return
        self.offset = end
        gone = [s for s, after in zip(log.segments, log.bases[1:], strict=False) if after <= oldest]
        log.remove_segments(gone, now)
        self._bytes = size - sum(segment.size for segment in gone)
