"""Opens `__cluster_metadata-0`: chooses the snapshot, finds the end of the log,
and checks that no committed record is missing.

Records are synced before they commit, so a crash can damage only what follows the flushed offset, which is stored in
its own file. Anything missing below that offset is damage. Then the broker refuses to start, with file and position,
because topics that are missing from a shorter log would be treated as deleted. With `ottla.recovery=salvage` it logs
the damage and continues with the data that remains.

Kafka's directories have no file for the flushed offset. There a clean shutdown proves that the whole log is durable;
after a crash, a complete batch after the damage proves that the damage is not an incomplete end.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from ...protocol.checksum import crc32c
from ...protocol.records import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC_AT, BatchHeader, computed_crc
from ...protocol.structs import Struct
from ...storage.files import Files, HandlePool
from ...storage.layout import FLUSHED_OFFSET, LOG, METADATA_DAMAGED, snapshot_name
from ...storage.log import Log
from ...storage.recovery import Cut, open_now
from ...storage.settings import LogSettings
from ..replica.directories import DirectoryError
from . import metadata_log

logger = logging.getLogger("ottla.org.apache.kafka.raft.internals.KafkaRaftLog")
SETTINGS = LogSettings(retention_ms=-1, segment_bytes=1 << 30, cleanup_policy=())


class FlushedOffset:
    """The offset below which the metadata log is durable, in two slots that are written alternately.

    A slot is a line of offset and CRC. It is written in place after every flush, so that it survives the process, and
    is synced from time to time. If a power failure damages a slot, the other one holds a lower, valid offset.
    """

    SLOT_SIZE = 32

    def __init__(self, pool: HandlePool, directory: str) -> None:
        self._pool = pool
        self.path = f"{directory}/{FLUSHED_OFFSET}"
        self._slot = 0
        self.offset: int | None = None  # None if no slot can be read

    def load(self) -> None:
        """Reads the larger slot; logs a warning if neither can be read. Raises OSError."""
        if not self._pool.files.exists(self.path):
            return
        data = self._pool.files.read(self.path)
        for slot in (0, 1):
            found = self._decode(data[slot * self.SLOT_SIZE : (slot + 1) * self.SLOT_SIZE])
            if found is not None and (self.offset is None or found > self.offset):
                self.offset, self._slot = found, 1 - slot
        if self.offset is None:
            logger.warning(
                "%s: neither slot can be read; the committed end of the metadata log is derived from its batches",
                self.path,
            )

    def create(self, log: Log) -> None:
        """Writes both slots for a log that is durable; an empty one is with its first records. Raises OSError."""
        slots = self._encode(log.end_offset) * 2
        self._pool.close(self.path)
        if log.end_offset:
            self._pool.files.replace(self.path, slots)
        else:
            log.small_files.write(FLUSHED_OFFSET, slots)
        self.offset = log.end_offset

    def note(self, offset: int) -> None:
        """Stores that the log is durable up to `offset`. Raises OSError."""
        self._pool.open(self.path).write_at(self._slot * self.SLOT_SIZE, self._encode(offset))
        self._slot = 1 - self._slot
        self.offset = offset

    def sync(self) -> None:
        """Syncs the stored offset; may run in a thread. Raises OSError."""
        handle = self._pool.files.open(self.path)
        try:
            handle.sync()
        finally:
            handle.close()

    def _encode(self, offset: int) -> bytes:
        digits = b"%020d" % offset
        return b"%s  %08x\n\n" % (digits, crc32c(digits))

    def _decode(self, slot: bytes) -> int | None:
        digits = slot[:20]
        return int(digits) if digits.isdigit() and slot == self._encode(int(digits)) else None


class Opened(NamedTuple):
    log: Log
    first: int  # the offset after the snapshot, where the log begins
    contents: list[Struct]  # the records of the snapshot
    is_salvaged: bool  # data is missing, and `salvage` is set


class _Snapshot(NamedTuple):
    path: str
    end_offset: int
    contents: list[Struct]
    wrong: str | None  # where and how it is damaged


def open_metadata(
    pool: HandlePool, path: str, flushed: FlushedOffset, now_ms: int, *, clean: bool, salvage: bool, held: list[str]
) -> Opened:
    """Opens the metadata log in `path`; creates it if it does not exist and nothing indicates an earlier one.

    `flushed` has been loaded. `clean`: the last shutdown was clean. `held`: partition directories next to it.

    Raises DirectoryError if committed data is missing and `salvage` is not set; OSError.
    """
    return _Opening(pool, path, flushed, clean, salvage).run(now_ms, held)


class _Opening:
    def __init__(self, pool: HandlePool, path: str, flushed: FlushedOffset, clean: bool, salvage: bool) -> None:
        self.pool = pool
        self.path = path
        self.committed = flushed.offset
        self.clean = clean
        self.salvage = salvage
        self.is_salvaged = False
        self.first = 0

    def run(self, now_ms: int, held: list[str]) -> Opened:
        whole, damaged = self._read_snapshots(self.pool.files)
        self._check_there_is_a_log(whole, damaged, held)
        contents = whole.contents if whole is not None else []
        self.first = whole.end_offset if whole is not None else 0
        log = open_now(
            self.pool,
            self.path,
            SETTINGS,
            now_ms,
            clean=False,
            recovery_point=self.first,
            before_cut=self._before_cut,
            has_holes=False,
        )
        if log.start_offset > self.first:
            contents = self._bridge(log, damaged, contents)
        elif log.end_offset < self.first:
            self._begin_at_snapshot(log, whole, now_ms)
        if self.committed is not None and log.end_offset < self.committed:
            self._lost(
                f"{log.active.path(LOG)}: the metadata log ends at offset {log.end_offset}, but offset "
                f"{self.committed} was committed"
            )
        if log.end_offset == 0 and held and not self.is_salvaged:
            self._lost(f"{log.active.path(LOG)}: the metadata log is empty, but {_count(held)}")
        self._set_aside(damaged)
        return Opened(log, self.first, contents, self.is_salvaged)

    def _check_there_is_a_log(self, whole: _Snapshot | None, damaged: list[_Snapshot], held: list[str]) -> None:
        """Checks, before anything is written, whether a directory without segments is new, or has lost its log."""
        if any(name.endswith(LOG) for name in self._names()):
            return
        if any(one.end_offset for one in damaged) or (whole is not None and whole.end_offset) or self.committed or held:
            self._lost(f"{self.path}: the metadata log is missing, but {_count(held)}")

    def _names(self) -> list[str]:
        files = self.pool.files
        return files.names(self.path) if files.exists(self.path) else []

    def _lost(self, what: str) -> None:
        """Reports that committed data is missing. Raises DirectoryError unless `salvage` is set."""
        if not self.salvage:
            advice = (
                "restore it from a backup, or copy the directory and start with ottla.recovery=salvage to "
                "continue with the data that remains"
            )
            raise DirectoryError(f"{what}; {advice}")
        self.is_salvaged = True
        logger.error("%s; continuing with the data that remains (ottla.recovery=salvage)", what)

    def _read_snapshots(self, files: Files) -> tuple[_Snapshot | None, list[_Snapshot]]:
        """Returns the newest complete snapshot, and newer ones, which are damaged."""
        damaged: list[_Snapshot] = []
        for end_offset, epoch in metadata_log.snapshots(self._names()):
            path = f"{self.path}/{snapshot_name(end_offset, epoch)}"
            found = _Snapshot(path, end_offset, *metadata_log.read_snapshot(files.read(path)))
            if found.wrong is None:
                return found, damaged
            damaged.append(found)
        return None, damaged

    def _bridge(self, log: Log, damaged: list[_Snapshot], contents: list[Struct]) -> list[Struct]:
        """No complete snapshot reaches the log: continues with the records of the newest damaged one."""
        reason = "; ".join(f"{one.path}: {one.wrong}" for one in damaged) or f"{self.path}: a snapshot is missing"
        self._lost(
            f"{reason}; the log begins at offset {log.start_offset}, and the snapshots before it are complete only up "
            f"to {self.first}"
        )
        self.first = log.start_offset
        return damaged[0].contents if damaged else contents

    def _begin_at_snapshot(self, log: Log, whole: _Snapshot | None, now_ms: int) -> None:
        """The snapshot ends after the log, which then begins again at the end of the snapshot, as in Kafka."""
        assert whole is not None
        what = f"{log.active.path(LOG)}: the log ends at offset {log.end_offset}, before the snapshot {whole.path} ends"
        if self.committed is None or self.committed > self.first:
            self._lost(what)
        else:
            logger.warning("%s; all committed records are present", what)
        log.start_over_at(self.first, now_ms)

    def _before_cut(self, cut: Cut) -> None:
        if self.committed is not None:
            is_lost = cut.offset < self.committed
        else:
            is_lost = (
                self.clean
                or cut.later_segments > 0
                or _has_whole_batch(self.pool.files.read(cut.path), cut.position + 1)
            )
        if is_lost or cut.offset < self.first:
            known = f", and offset {self.committed} was committed" if self.committed is not None else ""
            self._lost(f"{cut}{known}")
        else:
            logger.warning("%s were truncated: an incomplete end after a crash, without committed records", cut)

    def _set_aside(self, damaged: list[_Snapshot]) -> None:
        for one in damaged:
            logger.warning(
                "%s: %s; using an older snapshot and the log after it; the file was renamed to %s",
                one.path,
                one.wrong,
                METADATA_DAMAGED,
            )
            self.pool.files.rename(one.path, one.path + METADATA_DAMAGED)


def _count(held: list[str]) -> str:
    return (
        f"there are {len(held)} partition directories, for example {held[0]}"
        if held
        else "there is no partition directory"
    )


def _has_whole_batch(data: bytes, position: int) -> bool:
    """Whether a batch with a right CRC begins at or after `position`."""
    at = data.find(b"\2", position + MAGIC_AT)
    while at >= 0:
        start = at - MAGIC_AT
        if start + HEADER_SIZE <= len(data):
            header = BatchHeader._make(HEADER.unpack_from(data, start))
            fits = header.length >= HEADER_SIZE - LOG_OVERHEAD and start + header.size <= len(data)
            if fits and computed_crc(data, start, header.size) == header.crc:
                return True
        at = data.find(b"\2", at + 1)
    return False
