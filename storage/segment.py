"""One segment of a log: a file of batches with its indexes.

The file is authoritative; indexes can be rebuilt from it. `Segment.scan` reads the file in small steps, so that memory
does not grow with the log.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..protocol.buffers import Data
from ..protocol.errors import ApiError, Errors
from ..protocol.records import HEADER_SIZE, LOG_OVERHEAD, NO_TIMESTAMP
from .batch_info import BatchInfo, info_at, passed_over
from .files import Files, Handle, HandlePool
from .index import AbortedIndex, AbortedTransaction, OffsetIndex, TimeIndex
from .layout import INDEX, INDEX_ENTRY, LOG, SNAPSHOT, TIME_INDEX, TIME_INDEX_ENTRY, TXN_INDEX, file_name

SCAN_BYTES = 4096 + HEADER_SIZE
# The batches between two index entries, at most: those that fit into `settings.INDEX_INTERVAL_BYTES_MAX` are fewer.
SCAN_BATCHES_MAX = 4096
MAX_RELATIVE_OFFSET = 2**31 - 1


class IndexDamaged(ApiError):
    """An index of a segment differs from the log; whatever needs it fails until it is rebuilt (`rebuilding`)."""

    def __init__(self, segment: Segment, suffix: str, wrong: str) -> None:
        super().__init__(Errors.KAFKA_STORAGE_ERROR)
        self.segment = segment
        self.suffix = suffix  # of the index; that of the offset index stands for the time index too
        self.wrong = wrong
        self.is_final = False  # it cannot be rebuilt


def _nothing(_: IndexDamaged) -> None:
    """Used while the segment does not belong to a log."""


class Segment:
    """A file of batches from `base_offset` on. Only its log appends to it; others may hold it open for reading.

    `on_damaged` is called when an index is found to differ from the log, before IndexDamaged is raised.
    """

    def __init__(self, pool: HandlePool, directory: str, base_offset: int, created_ms: int, size: int = 0) -> None:
        self.pool = pool
        self.directory = directory
        self.base_offset = base_offset
        self._name = file_name(base_offset, "")
        self.created_ms = self.modified_ms = created_ms
        self.size = size
        self.suffix = ""  # `.deleted` after its removal from the log
        self.is_longer = False  # whether the file was allocated in advance
        self.holds = 0  # readers that have not finished reading
        self.on_damaged: Callable[[IndexDamaged], None] = _nothing
        self.rolling_timestamp: int | None = None  # the largest timestamp of its first append
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self.bytes_since_index = 0
        self._newest: BatchInfo | None = None  # the batch at the log end
        self._index: OffsetIndex | None = None if size else OffsetIndex(base_offset)
        self._times: TimeIndex | None = None if size else TimeIndex(base_offset)
        self._aborted: AbortedIndex | None = None
        self._saved = {INDEX: -1, TIME_INDEX: -1, TXN_INDEX: 0}  # sizes of the indexes in their files, if known
        # how many entries come from a file and are compared with the log when they are used
        self._loaded = {INDEX: 0, TIME_INDEX: 0}
        self._checked: set[tuple[str, int]] = set()  # the entries that were found to agree with the log
        self._is_own = not size  # this process has made the indexes from the batches
        self.uses_indexes = False  # another time since they were read, or since `pool.indexes` has looked
        self.unsynced: set[str] = set()  # small files that were written since the last sync

    def __repr__(self) -> str:
        return f"Segment({self.directory}/{self.base_offset}, {self.size} bytes)"

    @property
    def files(self) -> Files:
        return self.pool.files

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{self._name}{suffix}{self.suffix}"

    @property
    def handle(self) -> Handle:
        return self.pool.open(self.path(LOG))

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            index = self._index = OffsetIndex(self.base_offset, self._read_trimmed(INDEX, INDEX_ENTRY.size))
            self._loaded[INDEX] = len(index)
            self._note_indexes()
        return self._index

    @property
    def times(self) -> TimeIndex:
        if self._times is None:
            times = self._times = TimeIndex(self.base_offset, self._read_trimmed(TIME_INDEX, TIME_INDEX_ENTRY.size))
            self._loaded[TIME_INDEX] = len(times)
            self._note_indexes()
        return self._times

    def _note_indexes(self) -> None:
        """Allows the memory of the indexes to be freed when others need it."""
        self.pool.indexes.note(self, sum(len(one.data) for one in (self._index, self._times) if one is not None))

    def free_indexes(self) -> bool:
        """Frees the memory of the indexes, which are read again when they are needed; not if they are not in their
        files as a whole. Returns whether it was freed.
        """
        for suffix, index in ((INDEX, self._index), (TIME_INDEX, self._times)):
            if index is not None and self._saved[suffix] != len(index.data):
                return False
        self._index = self._times = None
        self._is_own = False
        self._checked.clear()
        return True

    def _read_trimmed(self, suffix: str, width: int) -> bytes:
        """Reads an index file without the zeros at the end of a preallocated file after a crash of Kafka."""
        try:
            data = self.files.read(self.path(suffix))
        except FileNotFoundError:
            return b""
        end = -(-len(data.rstrip(b"\0")) // width) * width
        if end == len(data):
            self._saved[suffix] = end
        return data[:end]

    def create(self, bytes_in_advance: int = 0) -> None:
        """Creates the file. Preallocated bytes are zeros, which `finish` truncates and recovery ignores."""
        handle = self.pool.open(self.path(LOG), create=True)
        handle.truncate(0)
        if bytes_in_advance:
            handle.truncate(bytes_in_advance)
            self.is_longer = True

    def load_timestamps(self) -> None:
        """Sets the largest timestamp from the time index."""
        self.max_timestamp, self.max_timestamp_offset = self.times.last()

    def check_last_timestamp(self) -> None:
        """Compares the last entry of the time index with the log. Raises IndexDamaged."""
        self._check_time(len(self.times) - 1)

    # appending

    def append(self, pieces: Sequence[Data], batches: list[BatchInfo], interval_bytes: int) -> None:
        """Writes batches whose positions are those in the file, and adds them to the indexes. `pieces`: of what they
        consist.

        After an OSError the file is truncated to its former size.
        """
        handle = self.handle
        try:
            handle.write_all_at(self.size, pieces)
        except OSError:
            handle.truncate(self.size)
            raise
        if not self.size:
            self.rolling_timestamp = batches[-1].max_timestamp
        for batch in batches:
            self.note(batch, interval_bytes)
        self._newest = batches[-1]
        self.size += sum(map(len, pieces))

    def note(self, batch: BatchInfo, interval_bytes: int) -> None:
        """Adds a batch to the indexes if an entry is due."""
        if batch.max_timestamp > self.max_timestamp:
            self.max_timestamp = batch.max_timestamp
            self.max_timestamp_offset = batch.last_offset
        if self.bytes_since_index > interval_bytes:
            self.index.append(batch.last_offset, batch.position)
            self.times.append(self.max_timestamp, self.max_timestamp_offset)
            self.bytes_since_index = 0
        self.bytes_since_index += batch.size

    def finish(self) -> None:
        """Completes the time index with the largest timestamp and truncates the file after the last batch; called
        before it is closed or rolled.
        """
        if self.is_longer:
            self.handle.truncate(self.size)
            self.is_longer = False
            self.unsynced.add(LOG)
        if self.size:
            self.times.append(self.max_timestamp, self.max_timestamp_offset)

    def save_indexes(self) -> None:
        """Writes new index entries; does not sync them, because they can be rebuilt."""
        for suffix, index in ((INDEX, self._index), (TIME_INDEX, self._times), (TXN_INDEX, self._aborted)):
            if index is not None:
                self._save(suffix, index.data)

    def close_indexes(self) -> None:
        """Writes new index entries when no more batches come; their memory may be freed. The log does not end here any
        more: every reader looks into the file, and finds out whether it was damaged.
        """
        self._newest = None
        self.save_indexes()
        self._note_indexes()

    def _save(self, suffix: str, data: bytearray) -> None:
        saved = self._saved[suffix]
        if saved == len(data):
            return
        handle = self.pool.open(self.path(suffix), create=True)
        if not 0 <= saved < len(data):
            handle.truncate(len(data))
            saved = 0
        if len(data) > saved:
            handle.write_at(saved, data[saved:])
        self._saved[suffix] = len(data)
        self.unsynced.add(suffix)

    def take_unsynced(self) -> list[str]:
        """Returns the paths of the indexes that the caller must sync."""
        paths = [self.path(suffix) for suffix in sorted(self.unsynced)]
        self.unsynced.clear()
        return paths

    @property
    def aborted(self) -> AbortedIndex:
        """The aborted transactions of the segment, read on first access."""
        if self._aborted is None:
            path = self.path(TXN_INDEX)
            self._aborted = AbortedIndex(self.files.read(path) if self.files.exists(path) else b"")
            self._saved[TXN_INDEX] = len(self._aborted.data)
        return self._aborted

    def load_aborted(self) -> None:
        """Reads the aborted transactions, so that `add_aborted` cannot fail. Raises OSError."""
        _ = self.aborted

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Adds an aborted transaction. If its file cannot be written now, it is written with the other indexes, which
        reports a failure.
        """
        self.aborted.append(transaction)
        with contextlib.suppress(OSError):
            self._save(TXN_INDEX, self.aborted.data)

    def set_aborted(self, made: AbortedIndex) -> None:
        """Replaces the aborted transactions after they were rebuilt from the log."""
        self._aborted = made
        self._saved[TXN_INDEX] = -1 if len(made) or self.files.exists(self.path(TXN_INDEX)) else 0

    def reset_indexes(self) -> None:
        self._index, self._times = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        self._forget_saved()
        self.max_timestamp, self.max_timestamp_offset, self.bytes_since_index = NO_TIMESTAMP, self.base_offset, 0

    def take_indexes(self, made: Segment) -> None:
        """Takes over the indexes that were made again from the same file."""
        self._index, self._times = made.index, made.times
        self._forget_saved()
        self.max_timestamp, self.max_timestamp_offset = made.max_timestamp, made.max_timestamp_offset
        self.bytes_since_index = made.bytes_since_index

    def _forget_saved(self) -> None:
        self._saved[INDEX] = self._saved[TIME_INDEX] = -1
        self._loaded[INDEX] = self._loaded[TIME_INDEX] = 0
        self._is_own = True

    def damaged(self, suffix: str, wrong: str) -> IndexDamaged:
        """Reports a damaged index; returns the exception for what needs it. `wrong`: a sentence."""
        found = IndexDamaged(self, suffix, wrong)
        self.on_damaged(found)
        return found

    # reading

    def read(self, position: int, length: int) -> bytes:
        return self.handle.read_at(position, length)

    def scan(self, position: int = 0, end: int | None = None) -> Iterator[BatchInfo]:
        """Yields the batches from `position` to `end`, by default the segment's size;
        stops at bytes that are not a batch.
        """
        end = self.size if end is None else end
        chunk, chunk_at = b"", 0
        while position + LOG_OVERHEAD + 6 <= end:
            start = position - chunk_at
            info = info_at(chunk, start, position) if 0 <= start <= len(chunk) - HEADER_SIZE else None
            if info is None:
                chunk, chunk_at = self.read(position, min(SCAN_BYTES, end - position)), position
                info = info_at(chunk, 0, position)
            if info is None or position + info.size > end:
                return
            yield info
            position += info.size

    def position_before(self, offset: int) -> int:
        """Returns where a scan for `offset` starts: at a batch that begins at or before it,
        by the sparse index. Raises IndexDamaged.
        """
        self.uses_indexes = self._index is not None
        slot = self.index.slot_before(offset)
        return 0 if slot < 0 else self._true_position(slot)

    def _true_position(self, slot: int) -> int:
        """Returns the position of an entry of the offset index. Raises IndexDamaged."""
        if not self._is_true(slot):
            raise self.damaged(INDEX, "a position is not that of a batch")
        return self.index.entry(slot)[1]

    def _is_true(self, slot: int) -> bool:
        """Whether an entry of the offset index names a batch that begins at or before its offset, followed by another
        batch or the end.
        """
        if slot >= self._loaded[INDEX] or (INDEX, slot) in self._checked:
            return True
        offset, position = self.index.entry(slot)
        batches = self.scan(position)
        batch, after = next(batches, None), next(batches, None)
        if (
            batch is None
            or not self.base_offset <= batch.base_offset <= offset
            or batch.last_offset < batch.base_offset
        ):
            return False
        if position + batch.size != self.size and (after is None or after.base_offset <= batch.last_offset):
            return False
        self._checked.add((INDEX, slot))
        return True

    def batch_before(self, position: int) -> int:
        """Returns where an indexed batch before `position` begins; 0 if there is none. Raises IndexDamaged."""
        slot = self.index.slot_at_or_after(position) - 1
        return 0 if slot < 0 else self._true_position(slot)

    def offset_after(self, position: int) -> int | None:
        """Returns the offset of the first indexed batch at or after `position`;
        None if there is none. Raises IndexDamaged.
        """
        slot = self.index.slot_at_or_after(position)
        if slot == len(self.index):
            return None
        batch = next(self.scan(self._true_position(slot)), None)
        return None if batch is None else batch.base_offset

    def position_before_timestamp(self, timestamp: int) -> int:
        """Returns where a scan for the first record at or after `timestamp` starts. Raises IndexDamaged."""
        slot = self.times.slot_before(timestamp)
        if slot < 0:
            return 0
        self._check_time(slot)
        return self.position_before(self.times.entry(slot)[1])

    def _check_time(self, slot: int) -> None:
        """Raises IndexDamaged unless the batch of an entry of the time index has the entry's timestamp."""
        if slot >= self._loaded[TIME_INDEX] or slot < 0 or (TIME_INDEX, slot) in self._checked:
            return
        timestamp, offset = self.times.entry(slot)
        batch = self.find(offset)
        if batch is None or batch.base_offset > offset or batch.max_timestamp != timestamp:
            raise self.damaged(INDEX, "a timestamp is not that of its batch")
        self._checked.add((TIME_INDEX, slot))

    def find(self, offset: int, end: int | None = None) -> BatchInfo | None:
        """Returns the first batch that ends at or after `offset`. Raises IndexDamaged."""
        position, passed = self.position_before(offset), 0
        end = self.size if end is None else end
        while position + LOG_OVERHEAD + 6 <= end:
            chunk = self.read(position, min(SCAN_BYTES, end - position))
            start, count = passed_over(chunk, offset, end - position)
            position, passed = position + start, passed + count
            batch = info_at(chunk, start, position)
            if batch is None and start:
                continue  # it begins after the chunk, or at its end
            if batch is None or position + batch.size > end:
                return None
            if passed >= SCAN_BATCHES_MAX and not self._is_own:
                raise self.damaged(INDEX, "there are too few entries")
            if batch.last_offset >= offset:
                return batch
            position, passed = position + batch.size, passed + 1
        return None

    def place(self, offset: int, end: int) -> BatchInfo | None:
        """Like `find`, for whoever wants to know where the batch is, and how large: its other fields may be those that
        the producer sent. Of the newest batch, which readers at the end of the log ask for, nothing is read.
        """
        newest = self._newest
        if newest is not None and newest.base_offset <= offset <= newest.last_offset:
            if newest.position + newest.size <= end:  # it was not truncated
                return newest
        return self.find(offset, end)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps the file open while it is read in steps."""
        self.holds += 1
        try:
            yield
        finally:
            self.holds -= 1

    def read_batch(self, batch: BatchInfo) -> bytes:
        return self.read(batch.position, batch.size)

    # on disk

    def rename(self, suffix: str) -> None:
        """Renames all files to another suffix; open readers can continue."""
        for kind in (LOG, INDEX, TIME_INDEX, TXN_INDEX):
            old = self.path(kind)
            new = f"{self.directory}/{self._name}{kind}{suffix}"
            if self.files.exists(old):
                self.files.rename(old, new)
                self.pool.renamed(old, new)
        self.suffix = suffix

    def moved(self, directory: str, is_copied: bool = False) -> None:
        """Records the new name of the directory. `is_copied`: the files there are others, with the same contents."""
        if is_copied:
            self.close_files()
            self._note_indexes()
        for kind in (LOG, INDEX, TIME_INDEX, TXN_INDEX):
            name = f"{self._name}{kind}{self.suffix}"
            self.pool.renamed(f"{self.directory}/{name}", f"{directory}/{name}")
        self.directory = directory

    def load_indexes(self) -> None:
        """Reads the indexes that were not read yet, and writes all of them as a whole next time: the files that they
        are in are left behind. Raises OSError.
        """
        for suffix, index in ((INDEX, self.index), (TIME_INDEX, self.times), (TXN_INDEX, self.aborted)):
            self._saved[suffix] = -1 if len(index) or suffix != TXN_INDEX else 0

    def close_files(self) -> None:
        self.pool.indexes.forget(self)
        for kind in (LOG, INDEX, TIME_INDEX, TXN_INDEX):
            self.pool.close(self.path(kind))

    def close_for_removal(self) -> list[str]:
        """Closes the files; returns the paths of those that there may be, in the order in which to remove them: while
        there is the log, another segment does not get these names (`SmallFiles.deleted_suffix`).
        """
        self.close_files()
        return [self.path(kind) for kind in (SNAPSHOT, TXN_INDEX, TIME_INDEX, INDEX, LOG)]

    def remove(self) -> None:
        for path in self.close_for_removal():
            if self.files.exists(path):
                self.files.remove(path)
