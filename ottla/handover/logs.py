"""Copies the logs of partitions, and opens each copy as a start does: after a crash, what is damaged at its end is cut
off, and the indexes and the state of producers are made again.

Files are copied by the system in pieces, without their bytes in this process; a file system that can shares the blocks.
Hard links would let Kafka's truncations reach the source and the other nodes. Where the user vouches that the source is
not started again (`links`), segments that nothing appends to or cuts any more are linked.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..broker.replica.followers import Reach
from ..storage import checkpoints, layout
from ..storage.files import Files, HandlePool, OsFiles
from ..storage.layout import DELETED, LOG
from ..storage.log import Log
from ..storage.recovery import Cut, open_now
from ..storage.settings import LogSettings
from ..storage.truncation import truncate
from . import EXIT_UNUSABLE, HandoverRefused
from .source import Key, SourceDirectory

PIECE = 64 << 20
KEPT_SEGMENTS = 2  # at the end of a log: recovery after a crash may cut them
NOT_POSSIBLE = frozenset((errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM))


@dataclass(slots=True)
class Copied:
    """What was copied into one directory, with its checkpoints."""

    recovery_points: dict[Key, int] = field(default_factory=dict)
    log_starts: dict[Key, int] = field(default_factory=dict)
    high_watermarks: dict[Key, int] = field(default_factory=dict)
    cleaner_offsets: dict[Key, int] = field(default_factory=dict)
    cuts: list[str] = field(default_factory=list)


class Copier:
    """Fills one directory of the target. `links`: of closed segments there are links, where that is possible."""

    def __init__(self, path: str, files: Files | None = None, *, links: bool = False) -> None:
        self.path = path
        self.done = Copied()
        self._links = links
        self._files = files or OsFiles()
        self._pool = HandlePool(self._files)
        os.makedirs(path, mode=0o700, exist_ok=True)

    def add(
        self,
        key: Key,
        topic_id: bytes,
        home: SourceDirectory | None,
        reach: Reach | None = None,
        then: Callable[[Log], None] | None = None,
    ) -> None:
        """Copies the log of a partition; makes an empty one without `home`. `reach`: of a replica that may have less;
        `then` may append to the copy. Raises HandoverRefused, OSError.
        """
        target = f"{self.path}/{layout.partition_directory(*key)}"
        os.mkdir(target, 0o700)
        now, done = int(time.time() * 1000), self.done
        if home is None:
            log = open_now(self._pool, target, LogSettings(), now)
        else:
            _copy_directory(home.partition_path(key), target, self._links and home.is_clean)
            log = self._open(key, target, home, now)
            if reach is not None and reach.end < log.end_offset:
                log = self._cut(log, reach.end, now)
        if log.topic_id is None:
            log.set_topic_id(topic_id)
        if then is not None:
            then(log)
        log.close()
        done.recovery_points[key] = log.end_offset
        done.log_starts[key] = log.start_offset
        committed = home.high_watermarks.get(key, 0) if home is not None else 0
        known = committed if reach is None else min(committed, reach.high_watermark)
        done.high_watermarks[key] = min(max(known, log.start_offset), log.end_offset)
        if home is not None and key in home.cleaner_offsets:
            done.cleaner_offsets[key] = min(home.cleaner_offsets[key], log.end_offset)
        self._pool.close_all()

    def _open(self, key: Key, target: str, home: SourceDirectory, now: int) -> Log:
        cuts: list[Cut] = []
        try:
            log = open_now(
                self._pool,
                target,
                LogSettings(),
                now,
                clean=home.is_clean,
                recovery_point=home.recovery_points.get(key, 0),
                start_offset=home.log_starts.get(key, 0),
                before_cut=cuts.append,
            )
        except ValueError as error:
            raise HandoverRefused(f"{home.partition_path(key)}: {error}", EXIT_UNUSABLE) from None
        if home.is_clean and (cuts or log.end_offset < home.committed(key)):
            reason = str(cuts[0]) if cuts else f"the log ends at offset {log.end_offset}"
            raise HandoverRefused(
                f"{home.partition_path(key)}: {reason}, but offset {home.committed(key)} was committed; restore the "
                "files, or let a broker start on the directory and stop it",
                EXIT_UNUSABLE,
            )
        self.done.cuts += [f"{key[0]}-{key[1]}: {cut.size} bytes from offset {cut.offset} on" for cut in cuts]
        return log

    def _cut(self, log: Log, end: int, now: int) -> Log:
        """Cuts a copy where the replica ends, and opens it again."""
        start = log.start_offset
        truncate(log, end)
        log.close()
        return open_now(self._pool, log.directory, LogSettings(), now, clean=False, start_offset=start)

    def write_checkpoints(self) -> None:
        """Raises OSError."""
        files, done = self._files, self.done
        starts = {key: offset for key, offset in done.log_starts.items() if offset}
        for name, offsets in (
            (layout.RECOVERY_POINTS, done.recovery_points),
            (layout.LOG_STARTS, starts),
            (layout.HIGH_WATERMARKS, done.high_watermarks),
            (layout.CLEANER_OFFSETS, done.cleaner_offsets),
        ):
            files.replace(f"{self.path}/{name}", checkpoints.encode_offsets(offsets), durable=False)


def _copy_directory(source: str, target: str, links: bool) -> None:
    names = sorted(os.listdir(source))
    logs = [name for name in names if name.endswith(LOG)]
    linked = logs[:-KEPT_SEGMENTS] if links else []
    for name in names:
        if name.endswith((DELETED, ".tmp")) or not stat.S_ISREG(os.stat(f"{source}/{name}").st_mode):
            continue
        if name not in linked or not _link_file(f"{source}/{name}", f"{target}/{name}"):
            _copy_file(f"{source}/{name}", f"{target}/{name}")


def _link_file(source: str, target: str) -> bool:
    """Links a file; returns whether that is possible."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in NOT_POSSIBLE | {errno.EMLINK}:
            raise
        return False
    return True


def _copy_file(source: str, target: str) -> None:
    """Copies a file with its time of change, which retention uses."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(source, "rb") as read, open(os.open(target, flags, 0o600), "wb") as written:
        try:
            while os.copy_file_range(read.fileno(), written.fileno(), PIECE):
                continue
        except OSError as error:
            if error.errno not in NOT_POSSIBLE:
                raise
            while os.sendfile(written.fileno(), read.fileno(), None, PIECE):
                continue
        found = os.fstat(read.fileno())
        os.utime(written.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))


def bytes_of(homes: Iterable[tuple[Key, SourceDirectory | None]]) -> int:
    """Returns how many bytes these logs have."""
    return sum(home.partitions[key] for key, home in homes if home is not None)
