"""The log of one partition: segments, indexes, leader epochs and producers, in Kafka's files.

Nothing here waits: fsync is the caller's, off its loop (`flush_job` says what, `flushed` that it is done). The list of segments
is replaced and never changed, so a reader keeps what it began with; a `FileSlice` keeps its segment's file.
Checks of what clients send are in `validation`, what a log does when it is opened in `recovery`.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..protocol import records
from ..protocol.errors import MalformedMessage
from ..protocol.records import BatchAt, BatchHeader, set_max_timestamp, set_offset_and_epoch
from . import checkpoints, legacy_read
from .epochs import LeaderEpochs
from .files import Files, HandlePool, time_ns
from .index import AbortedTransaction
from .layout import (
    DELETED,
    LEADER_EPOCHS,
    LOG,
    PARTITION_METADATA,
    SNAPSHOT,
    file_name,
    offset_of,
    parse_partition_directory,
)
from .producers import Marker, Producers
from .segment import BatchInfo, FileSlice, Segment
from .settings import LogSettings

MAX_RELATIVE_OFFSET = 2**31 - 1
_MARKER_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")
MARKER_ABORT, MARKER_COMMIT = 0, 1


class Appended(NamedTuple):
    """Where an append went. `append_time` is -1 unless the log's own time counts."""

    base_offset: int
    next_offset: int
    append_time: int


class FlushJob(NamedTuple):
    """Files and names to make durable; needs nothing of the log while it runs."""

    files: Files
    end_offset: int
    paths: list[str]
    directories: list[str]

    def run(self) -> int:
        """Syncs; returns how many nanoseconds it took. OSError; a file that went meanwhile is passed over."""
        began = time_ns()
        for path in self.paths:
            try:
                handle = self.files.open(path)
            except FileNotFoundError:
                continue
            try:
                handle.sync()
            finally:
                handle.close()
        for directory in self.directories:
            self.files.sync_directory(directory)
        return time_ns() - began


class FoundOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def marker_of(record: records.Record) -> Marker | None:
    """The transaction marker that a control record is, None for another kind (a leader change, a snapshot's header)."""
    if record.key is None or record.value is None or len(record.key) < _MARKER_KEY.size:
        return None
    _, kind = _MARKER_KEY.unpack_from(record.key)
    if kind not in (MARKER_ABORT, MARKER_COMMIT):
        return None
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value)
    return Marker(kind == MARKER_COMMIT, coordinator_epoch)


class Log:
    """An open log. Offsets: `start_offset` is the first readable one, `end_offset` the next to be written."""

    def __init__(self, pool: HandlePool, directory: str, settings: LogSettings) -> None:
        self.pool = pool
        self.files = pool.files
        self.directory = directory
        self.settings = settings
        name = directory.rpartition("/")[2]
        self.name = name
        self.topic, self.partition = parse_partition_directory(name) or (name, 0)
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        self.start_offset = 0
        self.end_offset = 0
        self.recovery_point = 0  # everything below is durable
        self.epochs = LeaderEpochs()
        self.producers = Producers(name)
        self.topic_id: bytes | None = None
        self.unflushed_since_ms: int | None = None
        self.has_new_names = True  # a file was made, and its name may not be durable
        self._unsynced: set[str] = set()  # small files whose contents may not be
        self._jobs: list[FlushJob] = []  # those that have not been reported done
        self.wants_flush_to = 0  # a roll asks for the closed segment to become durable
        self.removed: list[tuple[int, Segment]] = []  # when they may go, and segments on their way out
        self.first_dirty_offset = 0  # compaction has seen everything below
        self.is_cleanable = True  # until its compaction fails

    def __repr__(self) -> str:
        return f"Log({self.name}, {self.start_offset}..{self.end_offset})"

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    def set_segments(self, segments: list[Segment]) -> None:
        self.segments = segments
        self.bases = [segment.base_offset for segment in segments]

    def path(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def _write(self, name: str, data: bytes) -> None:
        """Replaces one of the small files; the next flush makes it durable."""
        self.files.replace(self.path(name), data, durable=False)
        self._unsynced.add(name)
        self.has_new_names = True

    # appending

    def append(
        self, data: Any, batches: list[BatchAt], leader_epoch: int, now_ms: int, assign_offsets: bool = True, marker: Marker | None = None
    ) -> Appended:
        """Appends whole batches; their offsets and leader epoch are written into `data` (writable) first.

        `batches` are those of `data`, in order; `marker` is what a control batch among them says, where the caller knows it. OSError leaves
        the log as it was.
        """
        first = next_offset = self.end_offset if assign_offsets else batches[0].header.base_offset
        append_time = now_ms if self.settings.is_append_time and assign_offsets else -1
        infos: list[BatchInfo] = []
        largest, span = append_time, 0
        for at in batches:
            span += at.header.last_offset_delta + 1
            if append_time < 0 and at.header.max_timestamp > largest:
                largest = at.header.max_timestamp
        self.roll_if_due(len(data), largest, first + span - 1, now_ms)
        position = self.active.size
        for at in batches:
            header = at.header
            if assign_offsets:
                set_offset_and_epoch(data, at.position, next_offset, leader_epoch)
                max_timestamp = header.max_timestamp
                if append_time >= 0 and not header.is_control:
                    set_max_timestamp(data, at.position, header, True, append_time)
                    max_timestamp = append_time
                last = next_offset + header.last_offset_delta
            else:
                max_timestamp, last = header.max_timestamp, header.last_offset
                next_offset = header.base_offset
            infos.append(BatchInfo(position, header.size, next_offset, last, max_timestamp, 2, header))
            position += header.size
            next_offset = last + 1
        if leader_epoch > self.epochs.latest:
            self.assign_epoch(leader_epoch, first)
        self.active.append(data, infos, self.settings.index_interval_bytes)
        if self.unflushed_since_ms is None:
            self.unflushed_since_ms = now_ms
        self.end_offset = next_offset
        for at, info in zip(batches, infos, strict=True):
            if at.header.producer_id >= 0:
                self._note_producer(at.header, info.base_offset, data, at, marker)
        return Appended(first, next_offset, append_time)

    def _note_producer(self, header: BatchHeader, base_offset: int, data: Any, at: BatchAt, known: Marker | None) -> None:
        if not header.is_control:
            self.producers.update(header, base_offset)
            return
        for marker in [known] if known is not None else map(marker_of, records.decode(data, at)):
            if marker is not None:
                aborted = self.producers.end_transaction(header, marker, base_offset)
                if aborted is not None:
                    self.add_aborted(aborted)

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        self.active.add_aborted(transaction)

    def replay_batch(self, segment: Segment, batch: BatchInfo) -> AbortedTransaction | None:
        """Notes the producer of a batch found in the log."""
        header = batch.header
        if header is None or header.producer_id < 0:
            return None
        if not header.is_control:
            self.producers.update(header, batch.base_offset)
            return None
        data = segment.read_batch(batch)
        aborted = None
        for record in records.decode(data, BatchAt(0, header)):
            marker = marker_of(record)
            if marker is not None:
                aborted = self.producers.end_transaction(header, marker, batch.base_offset)
        return aborted

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        if self.epochs.assign(epoch, start_offset):
            self.save_epochs()

    def save_epochs(self) -> None:
        self._write(LEADER_EPOCHS, checkpoints.encode_epochs(self.epochs.entries))

    # rolling

    def roll_if_due(self, size: int, timestamp: int, last_offset: int, now_ms: int) -> None:
        active, settings = self.active, self.settings
        if active.size == 0 and active.rolling_timestamp is None:
            if last_offset - active.base_offset > MAX_RELATIVE_OFFSET:
                self.roll(now_ms)
            return
        if active.rolling_timestamp is not None and timestamp >= 0:
            waited = timestamp - active.rolling_timestamp
        else:
            waited = now_ms - active.created_ms
        if (
            active.size > settings.segment_bytes - size
            or (active.size > 0 and waited > settings.segment_ms - self._jitter())
            or active.index.is_full(settings.segment_index_bytes)
            or active.times.is_full(settings.segment_index_bytes)
            or last_offset - active.base_offset > MAX_RELATIVE_OFFSET
        ):
            self.roll(now_ms)

    def _jitter(self) -> int:
        """A part of `segment.jitter.ms` that is the same for the same segment, so that runs can be repeated."""
        jitter = self.settings.segment_jitter_ms
        return hash((self.topic_id, self.partition, self.active.base_offset)) % jitter if jitter else 0

    def roll(self, now_ms: int) -> Segment:
        """Closes the active segment, which stays readable, and begins a new one at the log's end."""
        old = self.active
        if old.base_offset == self.end_offset:  # nothing was written to it
            old.created_ms, old.rolling_timestamp = now_ms, None
            return old
        old.finish()
        old.save_indexes()
        segment = Segment(self.pool, self.directory, self.end_offset, now_ms)
        segment.create(self.settings.bytes_in_advance)
        self.has_new_names = True
        self.set_segments([*self.segments, segment])
        self.save_producers()
        self.wants_flush_to = self.end_offset
        return segment

    def save_producers(self) -> None:
        """Writes a producer snapshot for the log's end, where the newest one speaks of less."""
        if self.producers.snapshot_offset < self.end_offset:
            self._write(file_name(self.end_offset, SNAPSHOT), self.producers.snapshot())
            self.producers.snapshot_offset = self.end_offset

    # reading

    def floor(self, offset: int) -> int:
        """The number of the segment that holds `offset`."""
        return bisect_right(self.bases, offset) - 1

    def read(self, offset: int, max_bytes: int, limit: tuple[Segment, int] | None, at_least_one: bool) -> FileSlice | None:
        """The batches from the one that holds `offset` on, up to `limit` (a segment and a position in it) and `max_bytes`.

        A slice ends within one segment and may end in the middle of a batch, as Kafka's do; with `at_least_one` its first
        batch is whole. None where nothing can be read. `offset` is within the log: the caller has checked it.
        """
        segments = self.segments
        slot = bisect_right(self.bases, offset) - 1
        while slot < len(segments):
            segment = segments[slot]
            end = segment.size
            if limit is not None:
                if segment.base_offset > limit[0].base_offset:
                    return None
                if segment.base_offset == limit[0].base_offset:
                    end = min(end, limit[1])
            batch = segment.find(offset, end)
            if batch is not None:
                length = end - batch.position
                allowed = max(max_bytes, batch.size) if at_least_one else max_bytes
                if allowed <= 0:
                    return None
                return FileSlice(segment, batch.position, min(length, allowed))
            slot += 1
        return None

    def position_of(self, offset: int) -> tuple[Segment, int]:
        """Where `offset` begins or, at the log's end, would begin."""
        if offset >= self.end_offset:
            return self.active, self.active.size
        slot = max(self.floor(offset), 0)
        segment = self.segments[slot]
        batch = segment.find(offset)
        return (segment, segment.size if batch is None else batch.position)

    def batches_from(self, offset: int) -> Iterator[tuple[Segment, BatchInfo]]:
        """All batches from the one that holds `offset` to the end."""
        for segment in self.segments[max(self.floor(offset), 0) :]:
            start = segment.index.position_before(offset)
            for batch in segment.scan(start):
                if batch.last_offset >= offset:
                    yield segment, batch

    def aborted_between(self, offset: int, upper: int) -> list[AbortedTransaction]:
        """Aborted transactions that overlap the offsets from `offset` to `upper`, by first offset."""
        found: list[AbortedTransaction] = []
        for segment in self.segments[max(self.floor(offset), 0) :]:
            some, is_all = segment.aborted.overlapping(offset, upper)
            found += some
            if is_all:
                break
        found.sort(key=lambda one: one.first_offset)
        return found

    def offset_behind(self, piece: FileSlice) -> int:
        """An offset behind all records of a slice: the next that an index knows, or where the next segment begins."""
        segments = self.segments
        found = piece.segment.index.offset_behind(piece.position + piece.length)
        if found is not None:
            return found
        slot = bisect_right(self.bases, piece.segment.base_offset)
        return segments[slot].base_offset if slot < len(segments) else self.end_offset

    def offset_for_timestamp(self, timestamp: int) -> FoundOffset | None:
        """The first record at or after `timestamp`."""
        for segment in self.segments:
            if segment.max_timestamp < timestamp:
                continue
            start = segment.index.position_before(segment.times.offset_before(timestamp))
            for batch in segment.scan(start):
                if batch.max_timestamp < timestamp or batch.last_offset < self.start_offset:
                    continue
                for found_timestamp, offset in self._timestamps(segment, batch):
                    if found_timestamp >= timestamp and offset >= self.start_offset:
                        return FoundOffset(found_timestamp, offset, self._epoch_of(batch))
        return None

    def largest_timestamp(self) -> FoundOffset | None:
        """The first record that has the log's largest timestamp."""
        best = max(self.segments, key=lambda s: s.max_timestamp)
        if best.max_timestamp < 0:
            return None
        batch = best.find(best.max_timestamp_offset)
        if batch is None:
            return None
        for timestamp, offset in self._timestamps(best, batch):
            if timestamp == best.max_timestamp:
                return FoundOffset(timestamp, offset, self._epoch_of(batch))
        return None

    def _timestamps(self, segment: Segment, batch: BatchInfo) -> list[tuple[int, int]]:
        try:
            data = segment.read_batch(batch)
            if batch.header is None:
                return [(m.timestamp, m.offset) for m in legacy_read.messages(data)]
            return [(r.timestamp, r.offset) for r in records.decode(data, BatchAt(0, batch.header))]
        except MalformedMessage:  # not validated when it was written: the header is all there is
            return [(batch.max_timestamp, batch.base_offset)]

    def _epoch_of(self, batch: BatchInfo) -> int:
        return -1 if batch.header is None else batch.header.partition_leader_epoch

    # shortening

    def advance_start(self, offset: int) -> bool:
        """Records below `offset` are gone; False when that is known. Whole segments go with the next retention."""
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        if self.epochs.truncate_from_start(offset):
            self.save_epochs()
        self.first_dirty_offset = max(self.first_dirty_offset, offset)
        return True

    def remove_segments(self, gone: list[Segment], now_ms: int) -> None:
        """Takes segments from the front of the log; their files go after `file.delete.delay.ms`."""
        if not gone:
            return
        if len(gone) == len(self.segments):
            self.roll(now_ms)
            if gone[-1] is self.active:  # an empty one stays
                gone = gone[:-1]
        self.set_segments([s for s in self.segments if s not in gone])
        self.discard(gone, now_ms)
        self.advance_start(max(self.start_offset, self.segments[0].base_offset))

    def discard(self, gone: list[Segment], now_ms: int) -> None:
        for segment in gone:
            snapshot = self.path(file_name(segment.base_offset, SNAPSHOT))
            if self.files.exists(snapshot) and segment.base_offset != self.end_offset:
                self.files.rename(snapshot, snapshot + DELETED)
            segment.save_indexes()
            segment.mark_deleted()
            self.removed.append((now_ms + self.settings.file_delete_delay_ms, segment))

    def remove_files(self, now_ms: int) -> None:
        """Removes what is due of the segments on their way out and read by nobody."""
        kept = []
        for when, segment in self.removed:
            if when > now_ms or segment.holds:
                kept.append((when, segment))
            else:
                segment.remove()
        self.removed = kept

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Cuts the log's end back to `offset`; all state follows."""
        if offset >= self.end_offset:
            return
        if offset <= self.bases[0]:
            return self.begin_anew(offset, now_ms)
        slot = self.floor(offset)
        kept, gone = self.segments[: slot + 1], self.segments[slot + 1 :]
        self.set_segments(kept)
        self.discard(gone, now_ms)
        self.active.truncate(offset)
        self.end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        if self.epochs.truncate_from_end(offset):
            self.save_epochs()
        self.rebuild_producers()

    def begin_anew(self, offset: int, now_ms: int) -> None:
        """Drops everything; the log is empty from `offset` on."""
        gone = self.segments
        self.set_segments([])
        for segment in gone:
            segment.remove()
        segment = Segment(self.pool, self.directory, offset, now_ms)
        segment.create(self.settings.bytes_in_advance)
        self.set_segments([segment])
        self.start_offset = self.end_offset = self.recovery_point = self.first_dirty_offset = offset
        self.epochs.entries.clear()
        self.save_epochs()
        self.producers = Producers(self.name)

    def rebuild_producers(self) -> None:
        """Producer state from the newest snapshot not above the log's end, and the batches behind it."""
        for _ in self.rebuild_producers_steps(self.end_offset):
            continue

    def rebuild_producers_steps(self, end: int) -> Iterator[None]:
        """As `rebuild_producers`, up to `end`, where a batch begins; snapshots of what lies behind it are removed."""
        start = self._load_producers(end)
        if start >= end:
            return
        for number, (segment, batch) in enumerate(self.batches_from(start)):
            if batch.base_offset >= end:
                return
            self.replay_batch(segment, batch)
            if number % 256 == 255:
                yield

    def _load_producers(self, end: int) -> int:
        """Takes what the newest good snapshot says; returns up to where it speaks."""
        producers = self.producers = Producers(self.name)
        for offset in sorted(self.snapshot_offsets(), reverse=True):
            path = self.path(file_name(offset, SNAPSHOT))
            if offset > end or offset < self.start_offset:
                self.files.remove(path)
                continue
            try:
                producers.load_snapshot(self.files.read(path), offset)
            except ValueError:  # damaged: an older one, or the log itself
                self.files.remove(path)
                continue
            return offset
        return self.start_offset

    def snapshot_offsets(self) -> list[int]:
        found = [n for n in self.files.names(self.directory) if n.endswith(SNAPSHOT)]
        return [offset_of(name) for name in found]

    # durability

    def flush_job(self, clean: bool = False) -> FlushJob:
        """What makes the log durable as it is now. Run it, in a thread if need be, and call `flushed` with its end then.

        The indexes of the active segment are rebuilt after a crash, and only synced for a `clean` end.
        """
        first = max(self.floor(self.recovery_point - 1), 0)  # its index may not have been, while it was active
        paths = [path for job in self._jobs for path in job.paths]
        paths += [self.path(name) for name in sorted(self._unsynced)]
        self._unsynced.clear()
        for segment in self.segments[first:]:
            if segment.size:
                segment.save_indexes()
                paths.append(segment.path(LOG))
                if clean or segment is not self.active:  # what is below the recovery point is believed, indexes too
                    paths += segment.take_unsynced()
        new_names = self.has_new_names or any(job.directories for job in self._jobs)
        directories = [self.directory, self.directory.rpartition("/")[0]] if new_names else []
        self.has_new_names = False
        job = FlushJob(self.files, self.end_offset, list(dict.fromkeys(paths)), directories)
        self._jobs.append(job)
        return job

    def flushed(self, job: FlushJob, now_ms: int) -> None:
        """What a job says has been done; until then later ones say it too."""
        self._jobs = [one for one in self._jobs if one is not job]
        self.recovery_point = max(self.recovery_point, job.end_offset)
        self.unflushed_since_ms = None if self.recovery_point >= self.end_offset else now_ms

    def flush_now(self) -> None:
        """Makes everything durable before it returns."""
        job = self.flush_job(clean=True)
        job.run()
        self.flushed(job, 0)

    def close(self) -> None:
        """A clean end: everything on disk, with a producer snapshot."""
        self.active.finish()
        self.save_producers()
        self.flush_now()
        for segment in self.segments:
            segment.close_files()

    def set_topic_id(self, topic_id: bytes) -> None:
        self.topic_id = topic_id
        self._write(PARTITION_METADATA, checkpoints.encode_partition_metadata(topic_id))

    def move(self, directory: str) -> None:
        """Renames the log's directory."""
        self.files.rename(self.directory, directory)
        for segment in self.segments:
            segment.moved(directory)
        self.directory = directory
