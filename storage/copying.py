"""Copies a log to another directory while it is read, appended to and shortened (KIP-113).

Segments are copied in pieces, each as far as its file reaches when the piece is taken. When little is left, `finish`
copies the rest at once. The log then goes on in the copy (`switch`) with all that it has in memory: nothing is opened
again. Pieces and jobs are taken on the loop and run in a thread.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import suppress
from typing import NamedTuple

from . import checkpoints
from .files import Files
from .flush import FlushJob
from .layout import INDEX, LEADER_EPOCHS, LOG, PARTITION_METADATA, SNAPSHOT, TIME_INDEX, TXN_INDEX, file_name
from .log import Log
from .segment import IndexDamaged, Segment

PIECE_BYTES = 1 << 20


class Piece(NamedTuple):
    """A range of a segment's file."""

    files: Files
    segment: Segment
    source: str
    target: str
    position: int
    length: int

    def run(self) -> int:
        """Copies the range; returns its length. Raises OSError."""
        source = self.files.open(self.source)
        try:
            data = source.read_at(self.position, self.length)
        finally:
            source.close()
        target = self.files.open(self.target, create=True)
        try:
            target.write_at(self.position, data)
        finally:
            target.close()
        return len(data)


class SettleJob(NamedTuple):
    """Small files to copy as a whole, and what is to be synced."""

    files: Files
    whole: list[tuple[str, str]]
    paths: list[str]
    directory: str

    def run(self) -> None:
        """Raises OSError."""
        copied = []
        for source, target in self.whole:
            with suppress(FileNotFoundError):  # retention removes files, and not every segment has all indexes
                self.files.replace(target, self.files.read(source), durable=False)
                copied.append(target)
        FlushJob(self.files, 0, [*copied, *self.paths], [self.directory]).run()


def offset_at(segment: Segment, position: int) -> int:
    """Returns the offset of the batch that holds the byte at `position`."""
    try:
        batches = segment.scan(segment.batch_before(position))
        return next(one.base_offset for one in batches if one.position + one.size > position)
    except (IndexDamaged, StopIteration):
        return segment.base_offset


class LogCopy:
    """The copy of a log in `directory`."""

    def __init__(self, log: Log, directory: str) -> None:
        self.log = log
        self.directory = directory
        self._files = log.files
        self._at = -1  # the base offset of the segment that is being copied
        self._copied: dict[int, int] = {}  # bytes, by the base offset of their segment
        self._settled: set[str] = set()  # names of small files that were copied and do not change any more
        self._unsynced: set[str] = set()  # paths in the copy

    def create(self) -> None:
        """Makes the directory. Raises OSError."""
        self._files.make_directory(self.directory)
        topic_id = self.log.topic_id
        if topic_id is not None:
            self._files.replace(
                f"{self.directory}/{PARTITION_METADATA}", checkpoints.encode_partition_metadata(topic_id)
            )

    # what is left

    @property
    def size(self) -> int:
        """The bytes in the copy."""
        return sum(self._copied.values())

    @property
    def left(self) -> int:
        """The bytes that are not in the copy yet."""
        segments = self.log.segments[bisect_left(self.log.bases, self._at) :]
        return sum(one.size - self._copied.get(one.base_offset, 0) for one in segments)

    @property
    def end_offset(self) -> int:
        """The offset up to which whole batches are in the copy."""
        log = self.log
        slot = bisect_left(log.bases, self._at)
        segment = log.segments[slot]
        position = self._copied.get(segment.base_offset, 0)
        if position >= segment.size:
            return log.end_offset if segment is log.active else log.bases[slot + 1]
        return offset_at(segment, position)

    def next_piece(self, limit: int) -> Piece | None:
        """Returns the next piece, of at most `limit` bytes; None if everything is in the copy."""
        log = self.log
        for segment in log.segments[bisect_left(log.bases, self._at) :]:
            self._at = segment.base_offset
            position = self._copied.get(segment.base_offset, 0)
            if position < segment.size:
                target = f"{self.directory}/{file_name(segment.base_offset, LOG)}"
                return Piece(
                    self._files, segment, segment.path(LOG), target, position, min(limit, segment.size - position)
                )
        return None

    def copied(self, piece: Piece, length: int) -> None:
        """Notes that a piece is in the copy."""
        self._copied[piece.segment.base_offset] = piece.position + length
        self._unsynced.add(piece.target)

    # the end

    def settle_job(self) -> SettleJob:
        """Returns the job that copies indexes and small files, and makes the copy durable as far as it goes.
        Raises OSError.
        """
        log = self.log
        names = [LEADER_EPOCHS, PARTITION_METADATA]
        done = [one for one in log.segments[:-1] if self._copied.get(one.base_offset, 0) >= one.size]
        for segment in done:
            names += [file_name(segment.base_offset, kind) for kind in (INDEX, TIME_INDEX, TXN_INDEX)]
        names += [file_name(offset, SNAPSHOT) for offset in log.small_files.snapshot_offsets()]
        names = [name for name in names if name not in self._settled]
        self._settled.update(name for name in names if name not in (LEADER_EPOCHS, PARTITION_METADATA))
        paths, self._unsynced = sorted(self._unsynced), set()
        whole = [(log.path(name), f"{self.directory}/{name}") for name in names]
        return SettleJob(self._files, whole, paths, self.directory)

    def finish(self) -> None:
        """Copies what is left, and makes the copy durable, before it returns. Raises OSError."""
        log = self.log
        while (piece := self.next_piece(PIECE_BYTES)) is not None:
            self.copied(piece, piece.run())
        for base in [base for base in self._copied if base not in log.bases]:  # retention has removed them
            del self._copied[base]
            for kind in (LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT):
                with suppress(FileNotFoundError):
                    self._files.remove(f"{self.directory}/{file_name(base, kind)}")
        log.active.load_indexes()  # those of the others were saved when the log rolled
        active = f"{self.directory}/{file_name(log.active.base_offset, LOG)}"
        self._files.open(active, create=True).close()
        self._unsynced.add(active)
        self.settle_job().run()

    def switch(self, directory: str) -> None:
        """The log goes on in the copy, which is in `directory` now."""
        self.log.removed = {}  # they stay in the directory that is left behind
        self.log.move(directory, is_copied=True)
