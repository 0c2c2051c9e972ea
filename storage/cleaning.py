"""Compaction: of the records with the same key only the last one stays (Kafka's `Cleaner`).

`plan` chooses what to clean; `steps` write the cleaned files and can run in any thread, because they use only paths;
`swap` puts the result in place.

- The clean part ends where the last compaction ended, which may be within a segment; the dirty part ends before the
  active segment and before records that `min.compaction.lag.ms` protects. The log is due when its dirty part has at
  least `min.cleanable.dirty.ratio` of the bytes, or when the oldest dirty record is older than `max.compaction.lag.ms`.
- A compaction reads as much of the dirty part as its map of keys has room for (`keys_of`), a batch at least, and leaves
  what follows as it is; the next one goes on from there.
- A tombstone stays for `delete.retention.ms` after the first compaction that sees it; its batch stores the deadline
  (KIP-534).
- Message sets of versions 0 and 1 have no such deadline: their tombstones go by the age of their files.
- The last batch of a producer stays as an empty batch, so that its sequence is known after a restart.
- Records of aborted transactions are removed, and do not supersede others. A marker stays as long as records of its
  transaction remain, and then for `delete.retention.ms`, so that a reader of these records also reads their outcome.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from ..protocol import records
from ..protocol.buffers import Data
from ..protocol.records import BatchAt, BatchHeader
from . import cleaning_messages
from .aborted import packed_between, unpacked
from .batch_info import BatchInfo, infos_of
from .batch_reader import BatchBytes, BatchReader
from .cleaning_batches import LastOffsets, emptied, filtered, is_readable, template
from .files import Files, HandlePool
from .index import AbortedTransaction
from .layout import CLEANED, LOG, SWAP, file_name
from .log import Log
from .segment import Segment
from .settings import FOREVER

WRITE_BYTES = 1 << 20
ENTRY_BYTES = 24  # of a key in Kafka's map: a hash of 16 bytes and an offset
MAP_BYTES_MAX = 2**31 - 1
T = TypeVar("T")
Steps = Generator[int, None, T]
"""Work that yields after each batch how many bytes it has read or written."""


def keys_of(buffer_bytes: int, load_factor: float) -> int:
    """Returns how many keys Kafka's map has room for in a buffer of this size."""
    return max(1, int(min(buffer_bytes, MAP_BYTES_MAX) // ENTRY_BYTES * load_factor))


KEYS_MAX = keys_of(128 << 20, 0.9)  # with the default configuration


@dataclass(slots=True)
class Job:
    """The input of `steps`: paths and numbers."""

    directory: str
    segments: list[tuple[int, int]]  # base offset and size of the segments to rewrite
    first_dirty: int
    end: int  # the first offset that must not be touched
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    index_interval_bytes: int
    aborted: list[bytes]  # packed index entries of the aborted transactions of the segments, and of some more
    last_records: dict[int, LastRecord]  # of the producers in the partition's producer state
    high_watermark: int
    keys_max: int


class LastRecord(NamedTuple):
    """The last offset of a producer's last batch of records, None if only markers are known; and its epoch."""

    offset: int | None
    epoch: int


@dataclass(slots=True)
class Plan:
    segments: list[Segment]
    first_dirty: int
    end: int
    dirty_ratio: float
    log: Log
    now_ms: int
    is_due: bool
    delay_ms: int  # how much longer than `max.compaction.lag.ms` its oldest record has waited

    @property
    def bytes(self) -> int:
        return sum(one.size for one in self.segments)

    def job(self, high_watermark: int, keys_max: int = KEYS_MAX) -> Job:
        settings = self.log.settings
        producers = self.log.producers.by_id.items()
        return Job(
            self.log.directory,
            [(s.base_offset, s.size) for s in self.segments],
            self.first_dirty,
            self.end,
            self.now_ms,
            settings.delete_retention_ms,
            settings.segment_bytes,
            settings.index_interval_bytes,
            packed_between(self.log, self.segments[0].base_offset, self.end),
            {pid: LastRecord(p.last_offset if p.last_offset >= 0 else None, p.epoch) for pid, p in producers},
            high_watermark,
            keys_max,
        )


@dataclass(slots=True)
class Outcome:
    """The groups of segments that were rewritten, and where the next compaction begins."""

    # old base offsets, new base offset, new size
    groups: list[tuple[list[int], int, int]] = field(default_factory=list)
    cleaned_to: int = 0


def plan(log: Log, last_stable_offset: int, now_ms: int) -> Plan | None:
    """Returns what can be cleaned, whether due or not; None if there is nothing."""
    settings = log.settings
    first_dirty = max(log.first_dirty_offset, log.bases[0])
    end = min(log.active.base_offset, last_stable_offset)
    lag_ms = settings.min_compaction_lag_ms
    for segment, after in zip(log.segments, log.bases[1:], strict=False):
        if lag_ms and after > first_dirty and segment.max_timestamp > now_ms - lag_ms:
            end = min(end, segment.base_offset)
            break
    inactive = [s for s, after in zip(log.segments, log.bases[1:], strict=False) if after <= end]
    if not inactive:
        return None
    end = log.bases[len(inactive)]
    # a segment in which the last compaction ended is among both, as in Kafka
    clean = sum(s.size for s in inactive if s.base_offset < first_dirty)
    dirty = [s for s, after in zip(inactive, log.bases[1:], strict=False) if after > first_dirty]
    dirty_bytes = sum(s.size for s in dirty)
    if not dirty_bytes:
        return None
    ratio = dirty_bytes / (clean + dirty_bytes)
    oldest = min(s.max_timestamp for s in dirty)
    delay_ms = max(0, now_ms - oldest - settings.max_compaction_lag_ms) if oldest >= 0 else 0
    is_due = ratio > settings.min_cleanable_dirty_ratio or delay_ms > 0
    return Plan(inactive, first_dirty, end, ratio, log, now_ms, is_due, delay_ms)


def next_ms(log: Log, now_ms: int) -> float:
    """Returns a time after `now_ms` at which another segment of a log may be cleaned, or has to be, because time has
    passed; infinity if that takes more than time.
    """
    settings = log.settings
    first_dirty = max(log.first_dirty_offset, log.bases[0])
    dirty = [s.max_timestamp for s, after in zip(log.segments, log.bases[1:], strict=False) if after > first_dirty]
    times = [one + settings.min_compaction_lag_ms for one in dirty if settings.min_compaction_lag_ms]
    if settings.max_compaction_lag_ms < FOREVER:
        times += [one + settings.max_compaction_lag_ms + 1 for one in dirty]
    return min((one for one in times if one > now_ms), default=math.inf)


def steps(files: Files, job: Job) -> Steps[Outcome]:
    """Writes the cleaned segments next to the old ones, with the suffix `.cleaned`. Raises OSError."""
    pool = HandlePool(files, 64)
    segments = [Segment(pool, job.directory, base, 0, size) for base, size in job.segments]
    try:
        latest, mapped_to = yield from _offset_map(segments, job)
        outcome = Outcome(cleaned_to=mapped_to)
        deletes_before_ms = _deletes_before_ms(files, job)
        transactions = Transactions(unpacked(job.aborted, job.segments[0][0], job.end))
        for group in _groups(segments, job, mapped_to):
            size = yield from _clean_group(pool, group, latest, job, mapped_to, transactions, deletes_before_ms)
            outcome.groups.append(([s.base_offset for s in group], group[0].base_offset, size))
        return outcome
    finally:
        pool.close_all()


class Transactions:
    """The state of transactions while a log is read from its beginning."""

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        # by producer id: aborted transactions that are open at the reader's position
        self._aborted: dict[int, AbortedTransaction] = {}
        self._with_records: set[int] = set()  # producers of open transactions that have records

    def _advance(self, offset: int) -> None:
        while self._coming and self._coming[-1].first_offset <= offset:
            one = self._coming.pop()
            self._aborted.setdefault(one.producer_id, one)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Notes a batch of records; returns whether its transaction was aborted."""
        self._advance(header.last_offset)
        if not header.is_transactional:
            return False
        self._with_records.add(header.producer_id)
        return header.producer_id in self._aborted

    def end(self, header: BatchHeader) -> tuple[bool, AbortedTransaction | None]:
        """Notes a marker; returns whether its transaction has records,
        and its entry for the index if it was aborted.
        """
        self._advance(header.last_offset)
        had_records = header.producer_id in self._with_records
        self._with_records.discard(header.producer_id)
        aborted = self._aborted.pop(header.producer_id, None)
        return had_records, aborted if had_records else None


def _offset_map(segments: list[Segment], job: Job) -> Steps[tuple[LastOffsets, int]]:
    """Returns the last offset of every key in the dirty part, as far as the map has room for them, and the offset that
    it reaches.
    """
    latest, reached = LastOffsets(), job.first_dirty
    transactions = Transactions(unpacked(job.aborted, job.first_dirty, job.end))
    for segment, end in zip(segments, (*(one.base_offset for one in segments[1:]), job.end), strict=True):
        if end <= job.first_dirty:
            continue
        latest.begin(segment.base_offset)
        if segment.base_offset < job.first_dirty:
            latest.pass_over()  # its beginning
        reader = BatchReader(segment)
        for batch in reader.infos():
            yield batch.size
            header = batch.header
            if batch.last_offset < job.first_dirty:
                continue
            if header is None:
                latest.note_others(cleaning_messages.last_offsets(bytes(reader.read(batch).whole(batch.size))))
            elif header.is_control:
                pass
            elif transactions.is_aborted(header):
                latest.pass_over()
            else:
                latest.note(header, reader.read(batch))
            if len(latest) > job.keys_max and reached > job.first_dirty:
                return latest, reached  # this batch is read again
            reached = max(reached, batch.last_offset + 1)
    return latest, job.end


def _groups(segments: list[Segment], job: Job, mapped_to: int) -> Iterator[list[Segment]]:
    """Yields groups of neighbouring segments that fit into one segment together."""
    group: list[Segment] = []
    size = 0
    for segment in (s for s in segments if s.base_offset < mapped_to):
        too_far = group and segment.base_offset - group[0].base_offset > 2**31 - 1 - (1 << 20)
        if group and (size + segment.size > job.segment_bytes or too_far):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group


class _Cleaned:
    """The file that is written for a group of segments, many batches at a time."""

    def __init__(self, pool: HandlePool, job: Job, base_offset: int) -> None:
        self.segment = Segment(pool, job.directory, base_offset, 0)
        self.segment.suffix = CLEANED
        self.segment.create()
        self._interval_bytes = job.index_interval_bytes
        self._parts: list[Data] = []
        self._infos: list[BatchInfo] = []
        self._size = 0  # of the segment with these

    def add(self, batch: BatchInfo, kept: Data) -> None:
        """Adds what stays of a batch."""
        if isinstance(kept, memoryview):  # all of it
            info = batch._replace(position=self._size)
        else:
            info = next(infos_of(kept))._replace(position=self._size)
        self._parts.append(kept)
        self._infos.append(info)
        self._size += info.size
        if self._size - self.segment.size >= WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        if self._infos:
            self.segment.append([b"".join(self._parts)], self._infos, self._interval_bytes)
            self._parts, self._infos = [], []

    def finish(self, pool: HandlePool) -> None:
        """Makes it durable with its indexes."""
        self._write()
        self.segment.finish()
        self.segment.save_indexes()
        for path in (self.segment.path(LOG), *self.segment.take_unsynced()):
            pool.open(path).sync()


def _clean_group(
    pool: HandlePool,
    group: list[Segment],
    latest: LastOffsets,
    job: Job,
    mapped_to: int,
    transactions: Transactions,
    deletes_before_ms: int,
) -> Steps[int]:
    cleaned = _Cleaned(pool, job, group[0].base_offset)
    has_messages, modified_ms = False, 0
    kept: Data | None
    for segment in group:
        modified_ms = pool.files.modified_ms(segment.path(LOG))
        keeps_deletes = modified_ms > deletes_before_ms
        reader = BatchReader(segment)
        for batch in reader.infos():
            header, aborted = batch.header, None
            has_messages = has_messages or header is None
            if batch.base_offset >= mapped_to:
                kept, aborted = _as_it_is(batch, reader.read(batch), transactions)
            elif header is None:
                data = bytes(reader.read(batch).whole(batch.size))
                kept = cleaning_messages.filtered(data, latest.by_key, keeps_deletes)
            elif header.is_control:
                kept, aborted = _marker(header, reader.read(batch), job, transactions)
            else:
                is_aborted = transactions.is_aborted(header)
                kept = _of_records(batch, header, reader, latest, segment.base_offset, job, is_aborted)
            if aborted is not None:
                cleaned.segment.add_aborted(aborted)
            if kept is not None:
                cleaned.add(batch, kept)
            yield batch.size + (0 if kept is None else len(kept))
    cleaned.finish(pool)
    if has_messages:
        pool.files.set_modified_ms(cleaned.segment.path(LOG), modified_ms)
    return cleaned.segment.size


def _as_it_is(
    batch: BatchInfo, data: BatchBytes, transactions: Transactions
) -> tuple[memoryview, AbortedTransaction | None]:
    """Returns the whole of a batch that the map does not reach, and the aborted transaction that it ends."""
    header, aborted = batch.header, None
    if header is not None and not header.is_control:
        transactions.is_aborted(header)
    elif header is not None and header.is_transactional:
        _, aborted = transactions.end(header)
    return data.whole(batch.size), aborted


def _deletes_before_ms(files: Files, job: Job) -> int:
    """Returns how old a segment is whose deletes of message sets may go, which have no deadline of their own: older by
    `delete.retention.ms` than the last segment that was cleaned before (Kafka's `legacyDeleteHorizonMs`).
    """
    clean = [base for base, _ in job.segments if base < job.first_dirty]
    if not clean:
        return 0
    return files.modified_ms(f"{job.directory}/{file_name(clean[-1], LOG)}") - job.delete_retention_ms


def _of_records(
    batch: BatchInfo,
    header: BatchHeader,
    reader: BatchReader,
    latest: LastOffsets,
    segment: int,
    job: Job,
    is_aborted: bool,
) -> Data | None:
    """Returns what stays of a batch of records. `is_aborted`: whether their transaction was."""
    kept: Data | None = None
    if is_aborted:
        data = reader.read(batch)
        kept = None if is_readable(header, data) else data.whole(batch.size)
    elif not latest.supersedes(header, segment):
        kept = filtered(header, reader.read(batch), latest.by_key, job.now_ms, job.delete_retention_ms)
    return _rest(header, job) if kept is None else kept


def _marker(
    header: BatchHeader, data: BatchBytes, job: Job, transactions: Transactions
) -> tuple[Data | None, AbortedTransaction | None]:
    """Returns what stays of a control batch: all of it until the records of its transaction are removed, and for
    `delete.retention.ms` after that. And the aborted transaction that it ends, if that has records left.
    """
    whole = data.whole(header.size)
    if not header.is_transactional:
        return whole, None
    had_records, aborted = transactions.end(header)
    if had_records:
        return whole, aborted
    horizon = header.delete_horizon_ms
    if horizon is None:
        opened = records.decode(whole, BatchAt(0, header))
        return records.encode(opened, template(header, job.now_ms + job.delete_retention_ms)), None
    if horizon > job.now_ms:
        return whole, None
    return _rest(header, job), None


def _rest(header: BatchHeader, job: Job) -> bytearray | None:
    """Returns what stays of a batch without its records: if it holds the last sequence of its producer, or the end of
    the log, an empty one.
    """
    if header.last_offset + 1 == job.high_watermark:
        return emptied(header)
    last = job.last_records.get(header.producer_id) if header.producer_id >= 0 else None
    if last is None:
        return None
    is_last = (
        header.last_offset == last.offset
        if last.offset is not None
        else header.is_control and header.producer_epoch == last.epoch
    )
    return emptied(header) if is_last else None


def swap(log: Log, plan: Plan, outcome: Outcome, now_ms: int) -> None:
    """Replaces the old segments by the cleaned ones, so that a crash at any moment leaves one or the other."""
    for old_bases, base, size in outcome.groups:
        old = [s for s in log.segments if s.base_offset in old_bases]
        if [s.base_offset for s in old] != old_bases or any(s.suffix for s in old):
            continue  # retention has already removed these segments
        log.small_files.note_new_names()
        cleaned = Segment(log.pool, log.directory, base, now_ms, size)
        cleaned.suffix = CLEANED
        cleaned.rename(SWAP)
        kept = [s for s in log.segments if s not in old]
        for segment in old:
            segment.save_indexes()
            segment.rename(log.small_files.deleted_suffix(segment.base_offset))
            log.note_removed([segment], now_ms)
        cleaned.rename("")
        cleaned.load_timestamps()
        cleaned.rolling_timestamp = old[0].rolling_timestamp
        cleaned.modified_ms = old[-1].modified_ms
        log.set_segments(sorted([*kept, cleaned], key=lambda s: s.base_offset))
    log.note_cleaned(outcome.cleaned_to)
