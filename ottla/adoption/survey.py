"""Looks at the log of a partition and changes nothing: where it ends, what a start would cut off, which formats it has.

After a clean shutdown the end of the last segment is read, after a crash everything from the recovery point on, as
`storage.recovery` does when it opens the log.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..protocol.errors import ApiError
from ..storage import checkpoints, layout
from ..storage.batch_info import BatchInfo
from ..storage.files import HandlePool, OsFiles, OsHandle
from ..storage.producers import CorruptSnapshot, Producers
from ..storage.rebuilding import MAX_OFFSET
from ..storage.recovery import swaps_that_count, what_is_wrong
from ..storage.segment import Segment

PASSING = (layout.DELETED, layout.CLEANED, layout.SWAP)


class ReadOnlyFiles(OsFiles):
    """The machine's file system, of which files are opened for reading only."""

    def open(self, path: str, create: bool = False) -> OsHandle:
        return OsHandle(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path)


@dataclass(slots=True)
class SegmentFound:
    """A segment. `newest_ms`: the largest timestamp in it, or when its file changed last, as retention has it."""

    base_offset: int
    size: int
    newest_ms: int


@dataclass(slots=True)
class Survey:
    """What the log of a partition holds. `end`: the offset after its last whole batch, `cut`: the bytes after that;
    `formats`: those that were seen; `epoch`, `producer_id`: the largest ones; `passing`: files of a deletion or a
    compaction that was not over.
    """

    segments: list[SegmentFound]
    end: int = 0
    cut: int = 0
    formats: set[int] = field(default_factory=set)
    epoch: int = -1
    producer_id: int = -1
    topic_id: bytes | None = None
    passing: int = 0
    has_time_indexes: bool = True

    def note(self, batch: BatchInfo) -> None:
        self.formats.add(batch.magic)
        if batch.header is not None:
            self.epoch = max(self.epoch, batch.header.partition_leader_epoch)
            self.producer_id = max(self.producer_id, batch.header.producer_id)


def survey(path: str, *, is_clean: bool, recovery_point: int) -> Survey:
    """Raises OSError; ValueError for a file whose form is wrong."""
    files = ReadOnlyFiles()
    pool = HandlePool(files)
    try:
        segments = segments_of(pool, path)
        found = Survey([SegmentFound(one.base_offset, one.size, _newest(one)) for one in segments])
        names = files.names(path)
        found.passing = sum(name.endswith(PASSING) for name in names)
        found.has_time_indexes = not segments or any(name.endswith(layout.TIME_INDEX) for name in names)
        found.topic_id = _topic_id(files, path)
        found.epoch = _latest_epoch(files, path)
        for one in segments:
            first = next(one.scan(), None)
            if first is not None:
                found.note(first)
        _find_end(found, segments, is_clean, recovery_point)
        _find_producers(found, segments, files, path)
        return found
    finally:
        pool.close_all()


def segments_of(pool: HandlePool, path: str) -> list[Segment]:
    """Returns the segments of a partition's directory in their order: those that a start leaves, which finishes a
    compaction that had its segments ready. Raises OSError, ValueError.
    """
    names = pool.files.names(path)
    found = [_segment(pool, path, layout.offset_of(name)) for name in names if name.endswith(layout.LOG)]
    for base in swaps_that_count(names):
        ready = _segment(pool, path, base, layout.SWAP)
        last = max((batch.last_offset for batch in ready.scan()), default=base)
        found = [one for one in found if not base <= one.base_offset <= last]
        found.append(ready)
    return sorted(found, key=lambda one: one.base_offset)


def _segment(pool: HandlePool, path: str, base: int, suffix: str = "") -> Segment:
    file = f"{path}/{layout.file_name(base, layout.LOG)}{suffix}"
    made = Segment(pool, path, base, pool.files.modified_ms(file), pool.files.size(file))
    made.suffix = suffix
    return made


def batches_from(segments: list[Segment], offset: int, end: int = MAX_OFFSET) -> Iterator[tuple[Segment, BatchInfo]]:
    """Yields the batches that hold offsets from `offset` to `end`. Raises OSError."""
    for number, one in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1].base_offset <= offset:
            continue
        for batch in one.scan():
            if batch.base_offset >= end:
                return
            if batch.last_offset >= offset:
                yield one, batch


def _newest(segment: Segment) -> int:
    newest, _ = segment.times.last()
    return newest if newest >= 0 else segment.created_ms


def _topic_id(files: OsFiles, path: str) -> bytes | None:
    try:
        return checkpoints.decode_partition_metadata(files.read(f"{path}/{layout.PARTITION_METADATA}"))
    except (FileNotFoundError, checkpoints.CorruptCheckpoint):  # old Kafkas have none; a crash may have torn it
        return None


def _latest_epoch(files: OsFiles, path: str) -> int:
    try:
        entries = checkpoints.decode_epochs(files.read(f"{path}/{layout.LEADER_EPOCHS}"))
    except (FileNotFoundError, checkpoints.CorruptCheckpoint):  # the batches have them, too
        return -1
    return entries[-1][0] if entries else -1


def _find_end(found: Survey, segments: list[Segment], is_clean: bool, recovery_point: int) -> None:
    """Sets where the log ends, and how many bytes are cut off there."""
    if not segments:
        return
    bases = [one.base_offset for one in segments]
    first = len(segments) - 1
    while not is_clean and first > 0 and bases[first] > max(recovery_point - 1, 0):
        first -= 1
    end = bases[first]
    for slot in range(first, len(segments)):
        segment, position = segments[slot], 0
        for batch in segment.scan(_start(segment) if is_clean else 0):
            if not is_clean and what_is_wrong(segment, batch, end, True) is not None:
                break
            found.note(batch)
            end, position = batch.last_offset + 1, batch.position + batch.size
        left = segment.size - position
        if left and (position or not is_clean or segment.size):
            found.cut = left + sum(one.size for one in segments[slot + 1 :])
            break
    found.end = end


def _start(segment: Segment) -> int:
    """Returns where a scan for the segment's end begins."""
    try:
        return segment.position_before(MAX_OFFSET)
    except ApiError:  # the index is damaged, or of before 0.11, where it has the first offset of a message set
        return 0


def _find_producers(found: Survey, segments: list[Segment], files: OsFiles, path: str) -> None:
    """Sets the largest producer id that the state of producers has after a start: of the snapshots, and the batches
    after the newest.
    """
    if found.formats <= {0, 1}:
        return
    newest = 0
    for name in files.names(path):
        if not name.endswith(layout.SNAPSHOT):
            continue
        offset, known = layout.offset_of(name), Producers()
        try:
            known.load_snapshot(files.read(f"{path}/{name}"), offset)
        except CorruptSnapshot:  # more of the log is read in its place
            continue
        newest = max(newest, offset)
        found.producer_id = max(found.producer_id, *known.by_id, -1)
    for _, batch in batches_from(segments, newest, found.end):
        found.note(batch)
