"""The log of one partition: segments, indexes, leader epochs and producers, in Kafka's files. `recovery` opens it.

No method blocks on fsync: `flush_job` returns the files to sync, the caller syncs them in a thread, and `flushed`
records the result. The list of segments is replaced and never changed, so that readers keep a consistent list; a
`FileSlice` keeps its segment's file open.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from ..protocol import records
from ..protocol.buffers import Data, WritableData
from ..protocol.control import Marker, marker_of
from ..protocol.errors import ApiError, Errors
from ..protocol.records import BatchAt, BatchHeader, set_max_timestamp, set_offset_and_epoch
from .batch_info import Appended, BatchInfo, appended, batch_info
from .epochs import LeaderEpochs
from .file_slice import FileSlice, is_whole_from
from .files import HandlePool
from .flush import FlushJob, FlushJobs
from .index import AbortedTransaction
from .layout import LOG, parse_partition_directory
from .producers import Producers
from .rolling import is_due
from .segment import IndexDamaged, Segment
from .settings import LogSettings
from .small_files import SmallFiles
from .watch import UNWATCHED, Watch

logger = logging.getLogger("ottla.org.apache.kafka.storage.internals.log.UnifiedLog")


class Log:
    """An open log. `start_offset` is the first readable offset, `end_offset` the offset of the next record."""

    def __init__(self, pool: HandlePool, directory: str, settings: LogSettings, has_new_names: bool = True) -> None:
        self.pool = pool
        self.files = pool.files
        self.directory = directory
        self.settings = settings
        name = self.name = directory.rpartition("/")[2]
        self.topic, self.partition = parse_partition_directory(name) or (name, 0)
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        self.start_offset = self.end_offset = 0
        self.recovery_point = 0  # everything below it is durable
        self.epochs = LeaderEpochs()
        self.producers = Producers(name)
        self.topic_id: bytes | None = None
        self.unflushed_since_ms: int | None = None
        self.small_files = SmallFiles(pool.files, directory, has_new_names)
        self._jobs = FlushJobs()
        self.wants_flush_to = 0  # set by a roll: the closed segment should become durable
        self.removed: dict[Segment, int] = {}  # removed segments, with the time of their deletion
        self.first_dirty_offset = 0  # compaction has read everything below it
        self.is_cleanable = True  # until a compaction fails
        self.damaged: dict[tuple[Segment, str], IndexDamaged] = {}  # by segment and index, until they are rebuilt
        self._watch: Watch = UNWATCHED

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
        for segment in segments:
            segment.on_damaged = self._note_damaged

    def report_to(self, watch: Watch) -> None:
        """Sets who is notified of what the log needs."""
        self._watch = watch

    def _note_damaged(self, damage: IndexDamaged) -> None:
        key = damage.segment, damage.suffix
        if key not in self.damaged:
            self.damaged[key] = damage
            logger.warning("%s: %s; rebuilding the index", damage.segment.path(damage.suffix), damage.wrong)
            self._watch.damaged(self.topic, self.partition)

    def path(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def note_cleaned(self, offset: int) -> None:
        """Records that compaction has read everything below `offset`."""
        self.first_dirty_offset = max(self.first_dirty_offset, offset)

    def give_up_cleaning(self) -> None:
        """Excludes the log from compaction until it is opened again, after a compaction failed."""
        self.is_cleanable = False

    # opening, see `recovery`

    def begin_with(self, topic_id: bytes, leader_epoch: int) -> None:
        """Writes the small files of a new log. Raises OSError."""
        self.topic_id = topic_id
        self.epochs.assign(leader_epoch, 0)
        self.small_files.create(topic_id, self.epochs)

    def load_small_files(self, clean: bool) -> bool:
        """Reads topic id and leader epochs; returns whether the file of the epochs exists but cannot be read.

        Raises CorruptCheckpoint for an invalid `partition.metadata`.
        """
        self.topic_id = self.small_files.load_topic_id(clean)
        epochs = self.small_files.load_epochs(clean)
        self.epochs = epochs or LeaderEpochs()
        return epochs is None

    def begin_at(self, offset: int) -> None:
        """Sets the start offset; no record after it has been compacted."""
        self.start_offset = self.first_dirty_offset = offset

    def end_at(self, offset: int, recovery_point: int) -> None:
        """Sets the end offset; the records below the recovery point are durable, as far as the log reaches."""
        self.end_offset = offset
        self.recovery_point = min(max(recovery_point, self.start_offset), offset)

    # appending

    def append(
        self, data: WritableData, batches: list[BatchAt], leader_epoch: int, now_ms: int, marker: Marker | None = None
    ) -> Appended:
        """Appends whole batches, after writing their offsets and leader epoch into `data` (writable).

        `batches` are those of `data`, in order; `marker` is the content of a control batch among them, if the caller
        knows it. After an OSError the log is unchanged.
        """
        first = next_offset = self.end_offset
        append_time = now_ms if self.settings.is_append_time else -1
        if append_time >= 0:
            batches = [BatchAt(at.position, at.header._replace(max_timestamp=append_time)) for at in batches]
        infos: list[BatchInfo] = []
        largest, span, has_producers = -1, 0, False
        for _, header in batches:
            span += header.last_offset_delta + 1
            largest = max(largest, header.max_timestamp)
            if header.producer_id >= 0:
                has_producers = True
        active = self.with_room(len(data), largest, first + span - 1, now_ms)
        position = active.size
        for start, header in batches:
            if header.attributes & records.CONTROL_MASK:
                active.load_aborted()
            set_offset_and_epoch(data, start, next_offset, leader_epoch)
            if append_time >= 0:
                set_max_timestamp(data, start, header, True, append_time)
            info = batch_info(position, next_offset, header)
            infos.append(info)
            position += info.size
            next_offset = info.last_offset + 1
        if leader_epoch > self.epochs.latest:
            self.assign_epoch(leader_epoch, first)
        self.write(active, [data], infos, now_ms)
        if has_producers:
            for at, info in zip(batches, infos, strict=True):
                if at.header.producer_id >= 0:
                    self._note_producer(at.header, info.base_offset, data, at, marker)
        return appended(first, next_offset, append_time)

    def with_room(self, size: int, timestamp: int, last_offset: int, now_ms: int) -> Segment:
        """Returns the segment for an append up to `last_offset`, which may be a new one; see `is_due`."""
        active, owner = self.segments[-1], (self.topic_id, self.partition)
        is_full = is_due(active, self.settings, owner, size, timestamp, last_offset, now_ms)
        return self.roll(now_ms) if is_full else active

    def write(self, active: Segment, pieces: Sequence[Data], infos: list[BatchInfo], now_ms: int) -> None:
        """Writes batches, which follow the log end, to the segment that has room for them."""
        active.append(pieces, infos, self.settings.index_interval_bytes)
        active.modified_ms = now_ms
        if self.unflushed_since_ms is None:
            self.unflushed_since_ms = now_ms
            self._watch.unflushed(self.topic, self.partition)
        self.end_offset = infos[-1].last_offset + 1

    def _note_producer(
        self, header: BatchHeader, base_offset: int, data: Data, at: BatchAt, known: Marker | None
    ) -> None:
        if not header.is_control:
            self.producers.update(header, base_offset)
            return
        for marker in [known] if known is not None else map(marker_of, records.decode(data, at)):
            if marker is not None:
                ended = self.producers.end_transaction(header, marker, base_offset)
                if ended is not None:
                    self.add_aborted(ended)

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        self.active.add_aborted(transaction)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        before = list(self.epochs.entries)
        if self.epochs.assign(epoch, start_offset):
            try:
                self.save_epochs()
            except OSError:
                self.epochs.entries = before
                raise

    def save_epochs(self) -> None:
        """Writes the leader epochs if they differ from their file."""
        self.small_files.save_epochs(self.epochs)

    # rolling

    def roll(self, now_ms: int) -> Segment:
        """Closes the active segment, which stays readable, and begins a new one at the log end."""
        old = self.active
        if old.base_offset == self.end_offset:  # the segment is empty
            old.created_ms, old.rolling_timestamp = now_ms, None
            return old
        old.finish()
        old.close_indexes()
        segment = Segment(self.pool, self.directory, self.end_offset, now_ms)
        segment.create(self.settings.bytes_in_advance)
        self.small_files.note_new_names()
        self.set_segments([*self.segments, segment])
        self.save_producers()
        self.wants_flush_to = self.end_offset
        return segment

    def save_producers(self) -> None:
        """Writes a producer snapshot for the log end, unless there is one."""
        if self.producers.snapshot_offset < self.end_offset:
            self.small_files.save_snapshot(self.producers, self.end_offset)
            self.producers.snapshot_offset = self.end_offset

    # reading

    def floor(self, offset: int) -> int:
        """Returns the number of the segment that holds `offset`."""
        return bisect_right(self.bases, offset) - 1

    def read(
        self, offset: int, max_bytes: int, limit: tuple[Segment, int] | None, at_least_one: bool
    ) -> FileSlice | None:
        """Returns the batches from the one that holds `offset` on,
        up to `limit` (a segment and a position in it) and `max_bytes`.

        A slice ends within one segment and may end in the middle of a batch, as in Kafka, but not of its first one,
        which `at_least_one` adds even if it is larger. Returns None if nothing can be read, or nothing fits. The caller
        has checked that `offset` is within the log.
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
            batch = segment.place(offset, end)
            if batch is not None:
                length = end - batch.position
                allowed = max(max_bytes, batch.size) if at_least_one else max_bytes
                if allowed < batch.size:
                    return None
                return FileSlice(segment, batch.position, min(length, allowed))
            if not is_whole_from(segment, offset, end):
                raise ApiError(Errors.CORRUPT_MESSAGE)
            slot += 1
        return None

    def position_of(self, offset: int) -> tuple[Segment, int]:
        """Returns the position where `offset` begins or, at the log end, would begin."""
        if offset >= self.end_offset:
            return self.active, self.active.size
        slot = max(self.floor(offset), 0)
        segment = self.segments[slot]
        batch = segment.place(offset, segment.size)
        return (segment, segment.size if batch is None else batch.position)

    def batches_from(self, offset: int) -> Iterator[tuple[Segment, BatchInfo]]:
        """Yields all batches from the one that holds `offset` to the end. Raises IndexDamaged before the first."""
        for segment in self.segments[max(self.floor(offset), 0) :]:
            for batch in segment.scan(segment.position_before(offset)):
                if batch.last_offset >= offset:
                    yield segment, batch

    def offset_after(self, piece: FileSlice) -> int:
        """Returns an offset after all records of a slice: the next one in the index, or of the next segment."""
        segments = self.segments
        found = piece.segment.offset_after(piece.position + piece.length)
        if found is not None:
            return found
        slot = bisect_right(self.bases, piece.segment.base_offset)
        return segments[slot].base_offset if slot < len(segments) else self.end_offset

    # shortening

    def advance_start(self, offset: int) -> bool:
        """Advances the log start offset; returns False if it is already there. The next retention removes whole
        segments below it.
        """
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        if self.epochs.truncate_from_start(offset):
            self.save_epochs()
        self.note_cleaned(offset)
        return True

    def remove_segments(self, gone: list[Segment], now_ms: int) -> None:
        """Removes segments from the front of the log; deletes their files after `file.delete.delay.ms`."""
        if not gone:
            return
        if len(gone) == len(self.segments):
            self.roll(now_ms)
            gone = [one for one in gone if one is not self.active]  # an empty active segment stays
        front = frozenset(gone)
        self.set_segments([one for one in self.segments if one not in front])
        self.advance_start(max(self.start_offset, self.segments[0].base_offset))
        self.discard(gone, now_ms)

    def discard(self, gone: list[Segment], now_ms: int) -> None:
        """Marks segments that are no longer in the log for deletion after their delay. Raises OSError."""
        self.small_files.note_new_names()
        self.note_removed(gone, now_ms)
        for segment in gone:
            suffix = self.small_files.deleted_suffix(segment.base_offset)
            if segment.base_offset != self.end_offset:
                self.small_files.mark_snapshot_deleted(segment.base_offset, suffix)
            segment.save_indexes()
            segment.rename(suffix)

    def note_removed(self, gone: list[Segment], now_ms: int) -> None:
        self.removed.update(dict.fromkeys(gone, now_ms + self.settings.file_delete_delay_ms))
        self._watch.removed(self.topic, self.partition)

    def removable(self, now_ms: int) -> list[Segment]:
        """Returns the removed segments whose delay is over and that no reader uses. The caller removes their files."""
        return [segment for segment, when in self.removed.items() if when <= now_ms and not segment.holds]

    def forget(self, removed: Segment) -> None:
        """The files of a removed segment are gone."""
        self.removed.pop(removed, None)

    def start_over_at(self, offset: int, now_ms: int) -> None:
        """Removes everything; the log is empty and starts at `offset`."""
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

    def load_producers(self, end: int) -> int:
        """Loads the newest valid snapshot of the producers and returns its offset. Removes snapshots of offsets outside
        of the log, which ends at `end`.
        """
        self.producers = Producers(self.name)
        offsets = self.small_files.snapshot_offsets()
        for offset in offsets:
            if not self.start_offset <= offset <= end:
                self.small_files.remove_snapshot(offset)
        return self.small_files.load_snapshot(self.producers, offsets, self.start_offset, end)

    # durability

    def flush_job(self, clean: bool = False) -> FlushJob:
        """Returns the job that makes the log durable as it is now. Run it, in a thread if needed, then call `flushed`.

        The indexes of the active segment are rebuilt after a crash, so they are synced only for a `clean` shutdown.
        """
        # the index of this segment may not be durable if it was active
        first = max(self.floor(self.recovery_point - 1), 0)
        for segment in self.segments[first:]:
            if segment.size:
                segment.save_indexes()  # all indexes before any sync, so that a failure takes nothing from the next job
        small, has_new_names = self.small_files.take_unsynced()
        paths = self._jobs.paths + small
        for segment, end in zip(self.segments[first:], [*self.bases[first + 1 :], self.end_offset], strict=True):
            if end > self.recovery_point:
                paths.append(segment.path(LOG))
            # recovery trusts everything below the recovery point, including indexes
            if clean or segment is not self.active:
                paths += segment.take_unsynced()
        syncs_names = has_new_names or self._jobs.sync_directories
        directories = [self.directory, self.directory.rpartition("/")[0]] if syncs_names else []
        job = FlushJob(self.files, self.end_offset, list(dict.fromkeys(paths)), directories)
        self._jobs.add(job)
        return job

    def flushed(self, job: FlushJob, now_ms: int) -> None:
        """Records that a job has run; until then later jobs repeat its work."""
        if not self._jobs.done(job):
            return
        self.recovery_point = max(self.recovery_point, job.end_offset)
        self.unflushed_since_ms = None if self.recovery_point >= self.end_offset else now_ms

    def flush_now(self) -> None:
        """Makes everything durable before it returns."""
        job = self.flush_job(clean=True)
        job.run()
        self.flushed(job, 0)

    def close_job(self) -> FlushJob:
        """Writes the files of a clean shutdown, including a producer snapshot; returns the job that makes them durable.
        Raises OSError.
        """
        self.active.finish()
        self.save_producers()
        return self.flush_job(clean=True)

    def close(self) -> None:
        """Closes the log cleanly: everything is durable on return. Raises OSError."""
        job = self.close_job()
        job.run()
        self.flushed(job, 0)
        self.close_files()

    def close_files(self) -> None:
        for segment in self.segments:
            segment.close_files()

    def set_topic_id(self, topic_id: bytes) -> None:
        self.topic_id = topic_id
        self.small_files.save_topic_id(topic_id)

    def move(self, directory: str, is_copied: bool = False) -> None:
        """Renames the log's directory, or goes on in a copy of it. A flush that runs meanwhile does not count."""
        if not is_copied:
            try:
                self.files.rename(self.directory, directory)
            except BaseException:  # the directory may have its new name, and another log may get the old one
                self.close_files()
                raise
        self._jobs.moved(self.directory, directory)
        for segment in self.segments:
            segment.moved(directory, is_copied)
        self.directory = self.small_files.directory = directory
        self.small_files.note_new_names()
