"""A data directory as partitions, segments and slices of segments; indexes give the bounds of slices."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np

from ..protocol.buffers import Data
from ..storage import checkpoints, layout
from .batches import Array, scan, size_at
from .files import Files

_SEGMENT = re.compile(rf"\d{{20}}{re.escape(layout.LOG)}", re.ASCII)
FIRST, LAST = -(1 << 62), 1 << 62
# A slice is in memory while it is read. Memory that is larger than a few of these goes back to the system each time,
# and takes longer to get again than the file to read.
SLICE_BYTES_MIN, SLICE_BYTES_MAX = 4 << 20, 16 << 20
LITTLE_BYTES = 64 << 20
WINDOW_BYTES = 4 << 20
SWAP_LOOKS = 50

_INDEX = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_INDEX = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
TXN_INDEX = np.dtype([("version", ">i2"), ("producer_id", ">i8"), ("first", ">i8"), ("last", ">i8"), ("stable", ">i8")])


@dataclass(frozen=True)
class Bounds:
    """The wanted part of a partition, both ends included: offsets, and timestamps in ms.

    `whole_batches`: a batch belongs to the range that contains its last offset, so that a stream reads it exactly once.
    """

    first_offset: int = FIRST
    last_offset: int = LAST
    first_timestamp: int = FIRST
    last_timestamp: int = LAST
    whole_batches: bool = False


EVERYTHING = Bounds()


class Place(NamedTuple):
    """The origin of batches: the values that are the same in all their rows."""

    topic: str
    partition: int
    segment: str


@dataclass(frozen=True)
class Segment:
    """One segment of a partition, and the base offset of the next segment."""

    topic: str
    partition: int
    base_offset: int
    next_base_offset: int
    size: int

    def name(self, suffix: str = layout.LOG) -> str:
        return f"{layout.partition_directory(self.topic, self.partition)}/{layout.file_name(self.base_offset, suffix)}"

    @property
    def place(self) -> Place:
        return Place(self.topic, self.partition, layout.file_name(self.base_offset, layout.LOG))

    @property
    def is_last(self) -> bool:
        """Whether the segment may still be written."""
        return self.next_base_offset == LAST


@dataclass(frozen=True)
class Snapshot(Segment):
    """A snapshot: the state of a log at an offset, as records in a file. All its records count as of the last offset
    before it, `base_offset`.
    """

    file: str

    def name(self, suffix: str = layout.LOG) -> str:
        file = self.file if suffix == layout.LOG else self.file + suffix
        return f"{layout.partition_directory(self.topic, self.partition)}/{file}"

    @property
    def place(self) -> Place:
        return Place(self.topic, self.partition, self.file)


@dataclass(frozen=True)
class Slice:
    """A part of a segment's file that one task reads.

    `start` and `end` are hints, because the cleaner may rewrite the file. The slice contains the batches whose last
    offset is in `batches_from` (included) to `batches_to` (excluded). `reach`: how many bytes after `end` may have some
    of them: an index entry is of one append, with the offset of its last batch, which is where the next slice begins.
    """

    segment: Segment
    start: int
    end: int
    batches_from: int
    batches_to: int
    bounds: Bounds
    # the aborted transactions that may affect the slice; None unless only committed records are read
    aborted: Array | None = None
    reach: int = 0


class Window(NamedTuple):
    """Complete batches of a part of a segment that begins at `start`; positions are those in `data`."""

    data: Data
    table: Array
    start: int


class Directory:
    """A data directory of ottla or Kafka. `partitions` raises FileNotFoundError if it does not exist, ValueError if it
    contains no partition.
    """

    def __init__(self, root: str) -> None:
        self.files = Files(root)
        self._offsets: dict[str, dict[tuple[str, int], int]] = {}

    @cached_property
    def partitions(self) -> list[tuple[str, int]]:
        found = [
            one
            for name in self.files.of_kind("", "directory")
            if (one := layout.parse_partition_directory(name)) is not None
        ]
        if not found:
            raise ValueError(f"{self.files.root} is not the data directory of a broker: it contains no partition")
        return found

    def chosen(self, topics: Iterable[str] | None) -> list[tuple[str, int]]:
        """Returns the partitions of these topics; of all topics if None.
        Raises ValueError for a topic that does not exist.
        """
        if topics is None:
            return self.partitions
        wanted = set(topics)
        missing = wanted - {topic for topic, _ in self.partitions}
        if missing:
            raise ValueError(f"{self.files.root} does not contain the topics {', '.join(sorted(missing))}")
        return [one for one in self.partitions if one[0] in wanted]

    def segments(self, topic: str, partition: int) -> list[Segment]:
        """Returns the segments in order, without those that are being deleted; empty if the partition was deleted."""
        try:
            names = self._names(layout.partition_directory(topic, partition))
        except FileNotFoundError:
            return []
        bases = [layout.offset_of(name) for name in names if _SEGMENT.fullmatch(name)]
        found = []
        for base, following in zip(bases, [*bases[1:], LAST], strict=False):
            segment = Segment(topic, partition, base, following, 0)
            try:
                found.append(replace(segment, size=self.files.size(segment.name())))
            except FileNotFoundError:
                continue  # retention has removed it since
        return found

    def _names(self, directory: str) -> list[str]:
        """Lists a partition; again while a cleaned segment waits for its place, which a broker gives it at once when it
        has put away the one before. What a crash has left there keeps its name.
        """
        for _ in range(SWAP_LOOKS):
            # a directory in place of a segment is damage, which reading it reports; a pipe is left alone
            names = sorted([*self.files.of_kind(directory, "file"), *self.files.of_kind(directory, "directory")])
            there = set(names)
            if all(one.removesuffix(layout.SWAP) in there for one in names if one.endswith(layout.LOG + layout.SWAP)):
                break
        return names

    def merged_into(self, segment: Segment) -> Segment | None:
        """Returns the segment that the cleaner has put the batches of a removed one into; None if there is none before
        it: then retention has removed it.
        """
        if isinstance(segment, Snapshot):
            return None
        found = self.segments(segment.topic, segment.partition)
        return next((one for one in reversed(found) if one.base_offset < segment.base_offset), None)

    def is_little(self) -> bool:
        """Whether its logs are less than LITTLE_BYTES; looks at no more of them than are needed to tell."""
        left = LITTLE_BYTES
        for topic, partition in self.partitions:
            left -= sum(one.size for one in self.segments(topic, partition))
            if left <= 0:
                return False
        return True

    def snapshot(self, topic: str, partition: int) -> Snapshot | None:
        """Returns the snapshot that precedes the log's first segment (`__cluster_metadata` has snapshots), else the
        first one that covers the removed start.
        """
        segments, directory = self.segments(topic, partition), layout.partition_directory(topic, partition)
        if not segments:
            return None
        found = [
            one for one in map(layout.parse_snapshot_name, self.files.of_kind(directory, "file")) if one is not None
        ]
        before = [one for one in found if one[0] <= segments[0].base_offset]
        if not found:
            return None
        end, epoch = before[-1] if before else found[0]
        name = layout.snapshot_name(end, epoch)
        return Snapshot(topic, partition, end - 1, end, self.files.size(f"{directory}/{name}"), name)

    def offsets(self, name: str) -> dict[tuple[str, int], int]:
        """Returns the offsets in a checkpoint of the directory, read once; none if the file is missing or damaged."""
        if name not in self._offsets:
            try:
                self._offsets[name] = checkpoints.decode_offsets(self.files.whole(name))
            except ValueError:
                self._offsets[name] = {}
        return self._offsets[name]

    def log_start_offset(self, first: Segment) -> int:
        """Returns where the log with this first segment begins: records at its beginning may have been deleted."""
        return max(first.base_offset, self.offsets(layout.LOG_STARTS).get((first.topic, first.partition), 0))

    def leader_epochs(self, topic: str, partition: int) -> list[tuple[int, int]]:
        """Returns leader epochs and their start offsets from the partition's checkpoint."""
        try:
            return checkpoints.decode_epochs(
                self.files.whole(f"{layout.partition_directory(topic, partition)}/{layout.LEADER_EPOCHS}")
            )
        except ValueError:
            return []

    def topic_id(self, topic: str, partition: int) -> str | None:
        """Returns the topic id as Kafka writes it; None if the partition does not record it."""
        data = self.files.whole(f"{layout.partition_directory(topic, partition)}/{layout.PARTITION_METADATA}")
        try:
            return checkpoints.uuid_to_text(checkpoints.decode_partition_metadata(data))
        except ValueError:
            return None

    def offset_index(self, segment: Segment) -> tuple[Array, Array]:
        """Returns the last offsets of indexed batches, and their positions."""
        rows = self._index(segment, layout.INDEX, _INDEX)
        rows = rows[: int(np.flatnonzero(rows["position"])[-1]) + 1] if rows["position"].any() else rows[:0]
        return rows["offset"].astype(np.int64) + segment.base_offset, rows["position"].astype(np.int64)

    def _index(self, segment: Segment, suffix: str, kind: np.dtype[np.void]) -> Array:
        """Reads the entries of an index; returns none if it cannot be read, because logs can be read without indexes.
        The index of an active segment ends with zeros, in Kafka with 10 MB of them.
        """
        try:
            data = self.files.entries(segment.name(suffix), kind.itemsize)
        except OSError:
            data = b""
        return np.frombuffer(data, kind, len(data) // kind.itemsize)

    def time_index(self, segment: Segment) -> tuple[Array, Array]:
        """Returns the largest timestamps so far, and the offsets of their records."""
        rows = self._index(segment, layout.TIME_INDEX, _TIME_INDEX)
        rows = rows[: int(np.flatnonzero(rows["timestamp"])[-1]) + 1] if rows["timestamp"].any() else rows[:0]
        return rows["timestamp"].astype(np.int64), rows["offset"].astype(np.int64) + segment.base_offset

    def aborted(self, segments: Iterable[Segment]) -> Array:
        """Returns the aborted transactions that the indexes of segments have, in log order. Raises OSError if an index
        exists and cannot be read: aborted records would be taken for committed ones.
        """
        rows = [np.empty(0, TXN_INDEX)]
        for one in segments:
            data = self.files.whole_of_segment(one.name(layout.TXN_INDEX), one.name())
            rows.append(np.frombuffer(data, TXN_INDEX, len(data) // TXN_INDEX.itemsize))
        return np.concatenate(rows)

    def noted(self, segment: Segment) -> Array:
        """Returns the entries of a segment's transaction index; none if it cannot be read."""
        with suppress(OSError):
            return self.aborted([segment])
        return np.empty(0, TXN_INDEX)

    def slices(
        self, segments: list[Segment], bounds: Bounds, slice_bytes: int, aborted: Array | None = None
    ) -> Iterator[Slice]:
        """Yields the parts of a partition's segments that may contain wanted records,
        none much longer than `slice_bytes`.
        """
        for segment in segments:
            if (
                segment.next_base_offset <= bounds.first_offset
                or segment.base_offset > bounds.last_offset
                or not segment.size
            ):
                continue
            if bounds == EVERYTHING and segment.size <= _uncut(slice_bytes):
                yield Slice(segment, 0, segment.size, FIRST, LAST, bounds, aborted)
                continue
            offsets, positions = self.offset_index(segment)
            start, end = self._limits(segment, bounds, offsets, positions)
            if start >= end:
                continue
            cuts = [start, *_cuts(positions, start, end, slice_bytes), end]
            at = dict(zip(positions.tolist(), offsets.tolist(), strict=True))
            for begin, behind in zip(cuts, cuts[1:], strict=False):
                since, until = at.get(begin, FIRST) if begin else FIRST, at.get(behind, LAST)
                mine = None if aborted is None else aborted[(aborted["last"] >= since) & (aborted["first"] < until)]
                following = int(np.searchsorted(positions, behind, side="right"))
                reached = end if following == len(positions) else min(end, int(positions[following]))
                yield Slice(segment, begin, behind, since, until, bounds, mine, reached - behind)

    def _limits(self, segment: Segment, bounds: Bounds, offsets: Array, positions: Array) -> tuple[int, int]:
        first = bounds.first_offset
        if bounds.first_timestamp > FIRST:
            timestamps, at = self.time_index(segment)
            if timestamps.size:
                if not segment.is_last and timestamps[-1] < bounds.first_timestamp:
                    return 0, 0
                older = int(np.searchsorted(timestamps, bounds.first_timestamp)) - 1
                first = max(first, int(at[older]) if older >= 0 else FIRST)
        start, end = 0, segment.size
        before = int(np.searchsorted(offsets, first, side="right")) - 1
        if before >= 0:
            start = int(positions[before])
        behind = int(np.searchsorted(offsets, bounds.last_offset))  # this batch may still begin with wanted records
        if behind + 1 < len(offsets):
            end = int(positions[behind + 1])
        return start, end

    def end_offset(self, topic: str, partition: int) -> int:
        """Returns the offset after the last complete batch; -1 if there is no segment."""
        segments = self.segments(topic, partition)
        if not segments:
            return -1
        last = [int(window.table["last_offset"][-1]) for window in self.tail(segments[-1])]
        return last[-1] + 1 if last else segments[-1].base_offset

    def tail(self, segment: Segment, since: int | None = None) -> Iterator[Window]:
        """Yields the batches after the last index entry, or those from an offset on; none if the segment cannot be
        read, which reading its records reports.
        """
        offsets, positions = self.offset_index(segment)
        slot = len(offsets) - 1 if since is None else int(np.searchsorted(offsets, since, side="right")) - 1
        with suppress(OSError):
            if slot >= 0:
                windows = self.windows(segment, int(positions[slot]), segment.size)
                first = next(windows, None)
                if first is not None and (first.table["last_offset"] == offsets[slot]).any():
                    yield first
                    yield from windows
                    return
            yield from self.windows(segment, 0, segment.size)  # there is no index, or it is wrong

    def windows(self, segment: Segment, start: int, end: int) -> Iterator[Window]:
        """Yields the complete batches of a part of a segment, of which few MiB are in memory at a time; stops at bytes
        that are not a batch. Raises OSError.
        """
        size = WINDOW_BYTES
        while start < end:
            data, got = self.files.part(segment.name(), start, min(end, start + size))
            found = scan(data, 0, got)
            if not len(found.table):
                size = size_at(data, 0) if got == size == WINDOW_BYTES else 0
                if not WINDOW_BYTES < size <= end - start:
                    return
                continue  # a batch that is larger than a window
            yield Window(data, found.table, start)
            start, size = start + found.end, WINDOW_BYTES


def _uncut(slice_bytes: int) -> int:
    """Returns the size up to which a part is not cut into two."""
    return slice_bytes * 3 // 2


def _cuts(positions: Array, start: int, end: int, slice_bytes: int) -> list[int]:
    cuts, last = [], start
    while end - last > _uncut(slice_bytes):
        slot = int(np.searchsorted(positions, last + slice_bytes))
        if slot >= len(positions) or positions[slot] >= end:
            break
        last = int(positions[slot])
        cuts.append(last)
    return cuts


def dealt(slices: list[Slice], count: int) -> list[list[Slice]]:
    """Distributes slices over at most `count` lists, in order, with about the same number of bytes of each topic, so
    that slow topics are in all lists.
    """
    lists: list[list[Slice]] = [[] for _ in range(min(count, len(slices)))]
    filled = [0] * len(lists)
    for _, of_topic in groupby(slices, lambda one: one.segment.topic):
        heap = [(0, total, i) for i, total in enumerate(filled)]
        heapq.heapify(heap)
        for one in of_topic:
            mine, total, i = heap[0]
            size = one.end - one.start
            lists[i].append(one)
            filled[i] += size
            heapq.heapreplace(heap, (mine + size, total + size, i))
    return lists
