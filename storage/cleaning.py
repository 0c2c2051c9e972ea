"""Compaction: of the records with the same key only the last one stays (Kafka's `Cleaner`).

`plan` chooses what to clean; `steps` write the cleaned files and can run in any thread, because they use only paths;
`swap` puts the result in place.

- The clean part ends where the last compaction ended; the dirty part ends before the active segment and before records
  that `min.compaction.lag.ms` protects. The log is due when its dirty part has at least `min.cleanable.dirty.ratio` of
  the bytes, or when the oldest dirty record is older than `max.compaction.lag.ms`.
- A tombstone stays for `delete.retention.ms` after the first compaction that sees it; its batch stores the deadline
  (KIP-534).
- Message sets of versions 0 and 1 have no such deadline: their tombstones go by the age of their files.
- The last batch of a producer stays as an empty batch, so that its sequence is known after a restart.
- Records of aborted transactions are removed, and do not supersede others. A marker stays as long as records of its
  transaction remain, and then for `delete.retention.ms`, so that a reader of these records also reads their outcome.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from ..protocol import opening, records
from ..protocol.errors import MalformedMessage
from ..protocol.records import BatchAt, BatchHeader, Record, Template
from . import cleaning_messages
from .aborted import packed_between, unpacked
from .batch_info import BatchInfo, infos_of
from .files import Files, HandlePool
from .index import AbortedTransaction
from .layout import CLEANED, LOG, SWAP, file_name
from .log import Log
from .segment import Segment

EARLIEST = -1
KEYS_MAX = 5_000_000  # of all compactions at a time, as with Kafka's buffer of 128 MiB
T = TypeVar("T")
Steps = Generator[int, None, T]
"""Work that yields after each batch how many bytes it has read or written."""


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
    for segment in log.segments[:-1]:
        if settings.min_compaction_lag_ms and segment.base_offset >= first_dirty:
            if segment.max_timestamp > now_ms - settings.min_compaction_lag_ms:
                end = min(end, segment.base_offset)
                break
    inactive = [s for s, after in zip(log.segments, log.bases[1:], strict=False) if after <= end]
    if not inactive:
        return None
    end = log.bases[len(inactive)]
    clean = sum(s.size for s in inactive if s.base_offset < first_dirty)
    dirty = sum(s.size for s in inactive if s.base_offset >= first_dirty)
    if not dirty:
        return None
    ratio = dirty / (clean + dirty)
    oldest = min((s.max_timestamp for s in inactive if s.base_offset >= first_dirty), default=now_ms)
    delay_ms = max(0, now_ms - oldest - settings.max_compaction_lag_ms) if oldest >= 0 else 0
    is_due = ratio > settings.min_cleanable_dirty_ratio or delay_ms > 0
    return Plan(inactive, first_dirty, end, ratio, log, now_ms, is_due, delay_ms)


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
            size = yield from _clean_group(pool, group, latest, job, transactions, deletes_before_ms)
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


def _batches(segment: Segment) -> Iterator[tuple[BatchInfo, bytes]]:
    for batch in segment.scan():
        yield batch, segment.read_batch(batch)


def _offset_map(segments: list[Segment], job: Job) -> Steps[tuple[dict[bytes, int], int]]:
    """Returns the last offset of every key in the dirty part, and the offset that the map reaches."""
    latest: dict[bytes, int] = {}
    transactions = Transactions(unpacked(job.aborted, job.first_dirty, job.end))
    for segment in segments:
        if segment.base_offset < job.first_dirty:
            continue
        if len(latest) > job.keys_max:
            return latest, segment.base_offset
        for batch, data in _batches(segment):
            yield len(data)
            if batch.header is None:
                latest.update(cleaning_messages.last_offsets(data))
                continue
            if batch.header.is_control or transactions.is_aborted(batch.header):
                continue
            found: dict[bytes, int] = {}
            try:
                for some in opening.contents(data, BatchAt(0, batch.header)):
                    for record in some:
                        if record.key is not None:
                            found[record.key] = record.offset
            # this batch was written without validation and cannot be read: it supersedes nothing
            except MalformedMessage:
                continue
            latest.update(found)
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


def _clean_group(
    pool: HandlePool,
    group: list[Segment],
    latest: dict[bytes, int],
    job: Job,
    transactions: Transactions,
    deletes_before_ms: int,
) -> Steps[int]:
    cleaned = Segment(pool, job.directory, group[0].base_offset, 0)
    cleaned.suffix = CLEANED
    cleaned.create()
    has_messages, modified_ms = False, 0
    for segment in group:
        modified_ms = pool.files.modified_ms(segment.path(LOG))
        keeps_deletes = modified_ms > deletes_before_ms
        for batch, data in _batches(segment):
            if batch.header is None:
                has_messages = True
                kept: bytes | bytearray | None = cleaning_messages.filtered(data, latest, keeps_deletes)
                aborted = None
            else:
                kept, aborted = _filtered(batch.header, data, latest, job, transactions)
            if aborted is not None:
                cleaned.add_aborted(aborted)
            if kept is not None:
                info = next(infos_of(kept))._replace(position=cleaned.size)
                cleaned.append(kept, [info], job.index_interval_bytes)
            yield len(data) + (0 if kept is None else len(kept))
    cleaned.finish()
    cleaned.save_indexes()
    for path in (cleaned.path(LOG), *cleaned.take_unsynced()):
        pool.open(path).sync()
    if has_messages:
        pool.files.set_modified_ms(cleaned.path(LOG), modified_ms)
    return cleaned.size


def _deletes_before_ms(files: Files, job: Job) -> int:
    """Returns how old a segment is whose deletes of message sets may go, which have no deadline of their own: older by
    `delete.retention.ms` than the last segment that was cleaned before (Kafka's `legacyDeleteHorizonMs`).
    """
    clean = [base for base, _ in job.segments if base < job.first_dirty]
    if not clean:
        return 0
    return files.modified_ms(f"{job.directory}/{file_name(clean[-1], LOG)}") - job.delete_retention_ms


Filtered = tuple[bytes | bytearray | None, AbortedTransaction | None]
"""The part of a batch that stays, None for nothing; and the aborted transaction that it ends, if that has records left.
"""


def _filtered(
    header: BatchHeader, data: bytes, latest: dict[bytes, int], job: Job, transactions: Transactions
) -> Filtered:
    if header.is_control:
        return _marker(header, data, job, transactions)
    is_aborted = transactions.is_aborted(header)
    horizon = header.delete_horizon_ms
    expired = horizon is not None and horizon <= job.now_ms
    count, tombstones, first_timestamp, largest = 0, False, records.NO_TIMESTAMP, records.NO_TIMESTAMP
    try:
        for record in _kept(header, data, latest, expired):
            if not is_aborted:
                first_timestamp = record.timestamp if not count else first_timestamp
                largest = max(largest, record.timestamp)
                tombstones = tombstones or record.value is None
                count += 1
    except MalformedMessage:  # this batch was written without validation and cannot be read: it stays as it is
        return data, None
    if not count:
        return (_emptied(header) if _must_stay(header, job) else None), None
    new_horizon = job.now_ms + job.delete_retention_ms if tombstones and horizon is None else horizon
    if count == header.record_count and new_horizon == horizon:
        return data, None
    body, base_timestamp = bytearray(), first_timestamp if new_horizon is None else new_horizon
    for record in _kept(header, data, latest, expired):
        records.put_record(body, record, record.timestamp - base_timestamp, record.offset - header.base_offset)
    template = _template(header, new_horizon)
    largest = header.max_timestamp if header.is_append_time else largest
    return records.batch_of(body, template, count, header.last_offset_delta, base_timestamp, largest), None


def _kept(header: BatchHeader, data: bytes, latest: dict[bytes, int], expired: bool) -> Iterator[Record]:
    """Yields the records of a batch that stay, while the batch is decompressed,
    so that never all of them are in memory.
    """
    for some in opening.contents(data, BatchAt(0, header)):
        for record in some:
            if _stays(record, latest, expired):
                yield record


def _marker(header: BatchHeader, data: bytes, job: Job, transactions: Transactions) -> Filtered:
    """Returns what stays of a control batch: all of it until the records of its transaction are removed, and for
    `delete.retention.ms` after that.
    """
    if not header.is_transactional:
        return data, None
    had_records, aborted = transactions.end(header)
    if had_records:
        return data, aborted
    horizon = header.delete_horizon_ms
    if horizon is None:
        opened = records.decode(data, BatchAt(0, header))
        return records.encode(opened, _template(header, job.now_ms + job.delete_retention_ms)), None
    if horizon > job.now_ms:
        return data, None
    return (_emptied(header) if _must_stay(header, job) else None), None


def _must_stay(header: BatchHeader, job: Job) -> bool:
    """Whether a batch stays without its records: it holds the last sequence of its producer, or the end of the log."""
    if header.last_offset + 1 == job.high_watermark:
        return True
    last = job.last_records.get(header.producer_id) if header.producer_id >= 0 else None
    if last is None:
        return False
    return (
        header.last_offset == last.offset
        if last.offset is not None
        else header.is_control and header.producer_epoch == last.epoch
    )


def _stays(record: Record, latest: dict[bytes, int], expired: bool) -> bool:
    if record.key is None:
        return False
    if latest.get(record.key, EARLIEST) > record.offset:
        return False
    return record.value is not None or not expired


def _template(header: BatchHeader, horizon: int | None) -> Template:
    return Template(
        base_offset=header.base_offset,
        leader_epoch=header.partition_leader_epoch,
        codec=header.codec,
        append_time=header.max_timestamp if header.is_append_time else None,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        last_offset_delta=header.last_offset_delta,
        delete_horizon_ms=horizon,
    )


def _emptied(header: BatchHeader) -> bytearray:
    """Returns a batch without records that keeps its producer's sequence."""
    template = _template(header, None)
    template.codec = 0
    out = records.encode([], template)
    at = BatchAt(0, records.header_at(out))
    records.set_max_timestamp(out, 0, at.header, header.is_append_time, header.max_timestamp)
    return out


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
            segment.mark_deleted()
            log.note_removed([segment], now_ms)
        cleaned.rename("")
        cleaned.load_timestamps()
        cleaned.rolling_timestamp = old[0].rolling_timestamp
        cleaned.modified_ms = old[-1].modified_ms
        log.set_segments(sorted([*kept, cleaned], key=lambda s: s.base_offset))
    log.note_cleaned(outcome.cleaned_to)
