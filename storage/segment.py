"""One segment of a log: a file of batches with its two indexes.

The file is the truth. `BatchInfo` is what the rest of storage needs of a batch, of any format version; `Segment.scan` reads
it from the file in small steps, so that nothing here takes memory in proportion to the log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..protocol.records import HEADER_SIZE, LOG_OVERHEAD, BatchAt, BatchHeader, header_at
from .files import Files, Handle, HandlePool
from .index import AbortedIndex, AbortedTransaction, OffsetIndex, TimeIndex, decode_aborted, encode_aborted
from .layout import DELETED, INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX, file_name

SCAN_BYTES = 4096 + HEADER_SIZE
MAGIC_AT = 16
NO_TIMESTAMP = -1
_LEGACY = struct.Struct(">qiIbb")


class BatchInfo(NamedTuple):
    """A batch in a file; for message sets of version 0 and 1, an outer entry, and `header` is None."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    magic: int
    header: BatchHeader | None


def info_of(at: BatchAt, position: int) -> BatchInfo:
    h = at.header
    return BatchInfo(position, h.size, h.base_offset, h.last_offset, h.max_timestamp, h.magic, h)


def info_at(buf: Any, start: int, position: int) -> BatchInfo | None:
    """What the bytes at `start` say of a batch; None when they cannot be one, or are too few to tell."""
    left = len(buf) - start
    if left < LOG_OVERHEAD + 6:
        return None
    offset, length, _, magic, _ = _LEGACY.unpack_from(buf, start)
    if magic == 2:
        if left < HEADER_SIZE or length < HEADER_SIZE - LOG_OVERHEAD:
            return None
        return info_of(BatchAt(start, header_at(buf, start)), position)
    if magic not in (0, 1) or length < 14 or left < LOG_OVERHEAD + 14:
        return None
    timestamp = struct.unpack_from(">q", buf, start + MAGIC_AT + 2)[0] if magic else NO_TIMESTAMP
    return BatchInfo(position, length + LOG_OVERHEAD, offset, offset, timestamp, magic, None)


class Segment:
    """A file of batches from `base_offset` on. Only its log appends to it; anyone may hold it to read it."""

    def __init__(self, pool: HandlePool, directory: str, base_offset: int, created_ms: int, size: int = 0) -> None:
        self.pool = pool
        self.directory = directory
        self.base_offset = base_offset
        self._name = file_name(base_offset, "")
        self.created_ms = created_ms
        self.size = size
        self.suffix = ""  # `.deleted` once it is on its way out
        self.is_longer = False  # whether the file was allocated in advance
        self.holds = 0  # readers that have yet to read from it
        self.rolling_timestamp: int | None = None  # the largest timestamp of its first append
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self.bytes_since_index = 0
        self._index: OffsetIndex | None = None if size else OffsetIndex(base_offset)
        self._times: TimeIndex | None = None if size else TimeIndex(base_offset)
        self._aborted: AbortedIndex | None = None
        self._saved = {INDEX: -1, TIME_INDEX: -1}  # sizes of the indexes in their files, where they are known
        self.unsynced: set[str] = set()  # which of its small files were written since they were last made durable

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
            self._index = OffsetIndex(self.base_offset, self._read_trimmed(INDEX, 8))
        return self._index

    @property
    def times(self) -> TimeIndex:
        if self._times is None:
            self._times = TimeIndex(self.base_offset, self._read_trimmed(TIME_INDEX, 12))
        return self._times

    def _read_trimmed(self, suffix: str, width: int) -> bytes:
        """An index file without the zeros that a preallocated one ends with after a crash of Kafka."""
        try:
            data = self.files.read(self.path(suffix))
        except FileNotFoundError:
            return b""
        end = -(-len(data.rstrip(b"\0")) // width) * width
        if end == len(data):
            self._saved[suffix] = end
        return data[:end]

    def create(self, bytes_in_advance: int = 0) -> None:
        """Makes the file anew. What is allocated in advance are zeros, which `finish` cuts off and recovery passes over."""
        handle = self.pool.open(self.path(LOG), create=True)
        handle.truncate(0)
        if bytes_in_advance:
            handle.truncate(bytes_in_advance)
            self.is_longer = True

    def load_timestamps(self) -> None:
        """Takes the largest timestamp from the time index."""
        self.max_timestamp, self.max_timestamp_offset = self.times.last()

    # appending

    def append(self, data: Any, batches: list[BatchInfo], interval_bytes: int) -> None:
        """Writes batches, which are at their positions in the file already by number, and notes them in the indexes.

        On OSError the file is cut back to what it held.
        """
        handle = self.handle
        try:
            handle.write_at(self.size, data)
        except OSError:
            handle.truncate(self.size)
            raise
        if not self.size:
            self.rolling_timestamp = batches[-1].max_timestamp
        for batch in batches:
            self.note(batch, interval_bytes)
        self.size += len(data)

    def note(self, batch: BatchInfo, interval_bytes: int) -> None:
        """Enters a batch into the indexes where an entry is due."""
        if batch.max_timestamp > self.max_timestamp:
            self.max_timestamp = batch.max_timestamp
            self.max_timestamp_offset = batch.last_offset
        if self.bytes_since_index > interval_bytes:
            self.index.append(batch.last_offset, batch.position)
            self.times.append(self.max_timestamp, self.max_timestamp_offset)
            self.bytes_since_index = 0
        self.bytes_since_index += batch.size

    def finish(self) -> None:
        """Makes the time index end with the largest timestamp and the file with the last batch; done before it is closed or rolled."""
        if self.is_longer:
            self.handle.truncate(self.size)
            self.is_longer = False
        if self.size:
            self.times.append(self.max_timestamp, self.max_timestamp_offset)

    def save_indexes(self) -> None:
        """Writes what the indexes gained since the last time; not synced, as they can be rebuilt."""
        for suffix, data in ((INDEX, self.index.data), (TIME_INDEX, self.times.data)):
            saved = self._saved[suffix]
            if saved == len(data):
                continue
            handle = self.pool.open(self.path(suffix), create=True)
            if not 0 <= saved < len(data):
                handle.truncate(len(data))
                saved = 0
            if len(data) > saved:
                handle.write_at(saved, data[saved:])
            self._saved[suffix] = len(data)
            self.unsynced.add(suffix)

    def take_unsynced(self) -> list[str]:
        """The paths of the indexes that the caller is to make durable."""
        paths = [self.path(suffix) for suffix in sorted(self.unsynced)]
        self.unsynced.clear()
        return paths

    @property
    def aborted(self) -> AbortedIndex:
        """Its aborted transactions, read when they are first asked for."""
        if self._aborted is None:
            path = self.path(TXN_INDEX)
            self._aborted = AbortedIndex(self.files.read(path) if self.files.exists(path) else b"")
        return self._aborted

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        aborted = self.aborted
        handle = self.pool.open(self.path(TXN_INDEX), create=True)
        handle.write_at(len(aborted.data), encode_aborted(transaction))
        aborted.append(transaction)
        self.unsynced.add(TXN_INDEX)

    def reset_aborted(self) -> None:
        """Forgets them: they are found anew in the log."""
        self._aborted = None
        path = self.path(TXN_INDEX)
        if self.files.exists(path):
            self.pool.close(path)
            self.files.remove(path)

    def _forget_saved(self) -> None:
        self._saved = dict.fromkeys(self._saved, -1)

    def reset_indexes(self) -> None:
        self._index, self._times = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        self._forget_saved()
        self.max_timestamp, self.max_timestamp_offset, self.bytes_since_index = NO_TIMESTAMP, self.base_offset, 0

    # reading

    def read(self, position: int, length: int) -> bytes:
        return self.handle.read_at(position, length)

    def scan(self, position: int = 0, end: int | None = None) -> Iterator[BatchInfo]:
        """The batches from `position` to `end`, which is the segment's size unless given; stops at bytes that are none."""
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

    def find(self, offset: int, end: int | None = None) -> BatchInfo | None:
        """The first batch that ends at `offset` or behind it."""
        for batch in self.scan(self.index.position_before(offset), end):
            if batch.last_offset >= offset:
                return batch
        return None

    def read_batch(self, batch: BatchInfo) -> bytes:
        return self.read(batch.position, batch.size)

    # on disk

    def truncate(self, offset: int) -> int:
        """Removes batches that end at `offset` or behind it; returns how many bytes went."""
        batch = self.find(offset)
        size = self.size if batch is None else batch.position
        gone = self.size - size
        self.index.truncate(offset)
        self.times.truncate(offset)
        if gone:
            self.handle.truncate(size)
            self.handle.sync()
            self.size = size
        self.max_timestamp, self.max_timestamp_offset = self.times.last()
        for rest in self.scan(self.index.position_before(offset)):
            if rest.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = rest.max_timestamp, rest.last_offset
        self._forget_saved()
        self.save_indexes()
        self._truncate_aborted(offset)
        return gone

    def _truncate_aborted(self, offset: int) -> None:
        path = self.path(TXN_INDEX)
        if self.files.exists(path):
            kept = [t for t in decode_aborted(self.files.read(path)) if t.last_offset < offset]
            self.pool.close(path)
            self.files.replace(path, b"".join(encode_aborted(t) for t in kept))
            self._aborted = None

    def rename(self, suffix: str) -> None:
        """Gives all its files another suffix; what is being read stays readable."""
        for kind in (LOG, INDEX, TIME_INDEX, TXN_INDEX):
            old = self.path(kind)
            new = f"{self.directory}/{self._name}{kind}{suffix}"
            if self.files.exists(old):
                self.files.rename(old, new)
                self.pool.renamed(old, new)
        self.suffix = suffix

    def moved(self, directory: str) -> None:
        """The directory has another name."""
        for kind in (LOG, INDEX, TIME_INDEX, TXN_INDEX):
            name = f"{self._name}{kind}{self.suffix}"
            self.pool.renamed(f"{self.directory}/{name}", f"{directory}/{name}")
        self.directory = directory

    def close_files(self) -> None:
        for kind in (LOG, INDEX, TIME_INDEX, TXN_INDEX):
            self.pool.close(self.path(kind))

    def remove(self) -> None:
        self.close_files()
        for kind in (LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT):
            path = self.path(kind)
            if self.files.exists(path):
                self.files.remove(path)

    def mark_deleted(self) -> None:
        self.rename(DELETED)


class FileSlice:
    """A stretch of a segment that a reply is to carry: fixed before the reply's first byte leaves, read when it is sent."""

    __slots__ = ("length", "position", "segment")

    def __init__(self, segment: Segment, position: int, length: int) -> None:
        self.segment = segment
        self.position = position
        self.length = length
        segment.holds += 1

    def __len__(self) -> int:
        return self.length

    def read(self, start: int, length: int) -> bytes:
        """`length` bytes from `start` of the slice."""
        return self.segment.read(self.position + start, min(length, self.length - start))

    def release(self) -> None:
        """The slice has been sent, or never will be."""
        self.segment.holds -= 1

    def __bytes__(self) -> bytes:
        return self.read(0, self.length)
