"""Compaction: of the records with the same key only the last stays (Kafka's `Cleaner`).

`plan` says what to clean, `run` does it to files, anywhere (it needs nothing but paths), `swap` puts the result in place.

- The clean part ends where the last compaction did; the dirty part ends before the active segment and before what
  `min.compaction.lag.ms` protects. The log is due when its dirty part has at least `min.cleanable.dirty.ratio` of the bytes, or
  when the oldest dirty record is older than `max.compaction.lag.ms`.
- A tombstone stays for `delete.retention.ms` after the compaction that first met it; the batch remembers until when (KIP-534).
- The last batch of a producer stays as an empty one, so that its sequence is known after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..protocol import records
from ..protocol.errors import MalformedMessage
from ..protocol.records import BatchAt, BatchHeader, Record, Template
from .files import Files, HandlePool, OsFiles
from .layout import CLEANED, LOG, SWAP
from .log import Log
from .segment import BatchInfo, Segment

EARLIEST = -1
KEYS_MAX = 5_000_000  # per round, as Kafka's buffer of 128 MiB


@dataclass(slots=True)
class Job:
    """What a worker is told: paths and numbers."""

    directory: str
    segments: list[tuple[int, int]]  # base offset and size of those to rewrite
    first_dirty: int
    end: int  # the first offset that must not be touched
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    index_interval_bytes: int


@dataclass(slots=True)
class Plan:
    segments: list[Segment]
    first_dirty: int
    end: int
    dirty_ratio: float
    log: Log
    now_ms: int

    def job(self) -> Job:
        settings = self.log.settings
        return Job(
            self.log.directory,
            [(s.base_offset, s.size) for s in self.segments],
            self.first_dirty,
            self.end,
            self.now_ms,
            settings.delete_retention_ms,
            settings.segment_bytes,
            settings.index_interval_bytes,
        )


@dataclass(slots=True)
class Outcome:
    """The groups of segments that were rewritten, and where the next compaction begins."""

    groups: list[tuple[list[int], int, int]] = field(default_factory=list)  # old bases, new base, new size
    cleaned_to: int = 0


def plan(log: Log, last_stable_offset: int, now_ms: int) -> Plan | None:
    """What there is to clean, None where the log is not due."""
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
    overdue = oldest >= 0 and now_ms - oldest > settings.max_compaction_lag_ms
    if ratio <= settings.min_cleanable_dirty_ratio and not overdue:
        return None
    return Plan(inactive, first_dirty, end, ratio, log, now_ms)


def run_on_disk(job: Job) -> Outcome:
    return run(OsFiles(), job)


def run(files: Files, job: Job) -> Outcome:
    """Writes the cleaned segments beside the old ones, with the suffix `.cleaned`. OSError."""
    pool = HandlePool(files, 64)
    segments = [Segment(pool, job.directory, base, 0, size) for base, size in job.segments]
    try:
        latest, mapped_to = _offset_map(segments, job)
        outcome = Outcome(cleaned_to=mapped_to)
        last_batches = _last_batch_of_producers(segments)
        for group in _groups(segments, job, mapped_to):
            size = _clean_group(pool, group, latest, job, last_batches)
            outcome.groups.append(([s.base_offset for s in group], group[0].base_offset, size))
        return outcome
    finally:
        pool.close_all()


def _batches(segment: Segment) -> Iterator[tuple[BatchInfo, bytes]]:
    for batch in segment.scan():
        yield batch, segment.read_batch(batch)


def _open(batch: BatchInfo, data: bytes) -> list[Record] | None:
    if batch.header is None:
        return None
    try:
        return records.decode(data, BatchAt(0, batch.header))
    except MalformedMessage:  # written with its records closed, and never readable: it stays as it is
        return None


def _offset_map(segments: list[Segment], job: Job) -> tuple[dict[bytes, int], int]:
    """The last offset of every key in the dirty part, and how far the map reaches."""
    latest: dict[bytes, int] = {}
    for segment in segments:
        if segment.base_offset < job.first_dirty:
            continue
        if len(latest) > KEYS_MAX:
            return latest, segment.base_offset
        for batch, data in _batches(segment):
            if batch.header is None or batch.header.is_control:
                continue
            for record in _open(batch, data) or ():
                if record.key is not None:
                    latest[record.key] = record.offset
    return latest, job.end


def _last_batch_of_producers(segments: list[Segment]) -> dict[int, int]:
    """The last offset of each producer's last batch."""
    found: dict[int, int] = {}
    for segment in segments:
        for batch in segment.scan():
            if batch.header is not None and batch.header.producer_id >= 0:
                found[batch.header.producer_id] = batch.last_offset
    return found


def _groups(segments: list[Segment], job: Job, mapped_to: int) -> Iterator[list[Segment]]:
    """Neighbours that fit into one segment together."""
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


def _clean_group(pool: HandlePool, group: list[Segment], latest: dict[bytes, int], job: Job, last_batches: dict[int, int]) -> int:
    cleaned = Segment(pool, job.directory, group[0].base_offset, 0)
    cleaned.suffix = CLEANED
    cleaned.create()
    for segment in group:
        for batch, data in _batches(segment):
            kept = _filtered(batch, data, latest, job, last_batches)
            if kept is not None:
                at = next(records.batches(kept), None)
                info = (
                    batch
                    if at is None
                    else BatchInfo(cleaned.size, len(kept), at.header.base_offset, at.header.last_offset, at.header.max_timestamp, 2, at.header)
                )
                if at is None:
                    info = batch._replace(position=cleaned.size, size=len(kept))
                cleaned.append(kept, [info], job.index_interval_bytes)
    cleaned.finish()
    cleaned.save_indexes()
    for path in (cleaned.path(LOG), *cleaned.take_unsynced()):
        pool.open(path).sync()
    return cleaned.size


def _filtered(batch: BatchInfo, data: bytes, latest: dict[bytes, int], job: Job, last_batches: dict[int, int]) -> bytes | bytearray | None:
    """What stays of a batch; None for nothing."""
    header = batch.header
    opened = _open(batch, data)
    if header is None or opened is None:
        return data
    horizon = header.delete_horizon_ms
    expired = horizon is not None and horizon < job.now_ms
    if header.is_control:
        if expired:
            return _emptied(header) if last_batches.get(header.producer_id) == header.last_offset else None
        if horizon is not None:
            return data
        return records.encode(opened, _template(header, job.now_ms + job.delete_retention_ms))
    kept = [r for r in opened if _stays(r, latest, expired)]
    if not kept:
        return _emptied(header) if header.producer_id >= 0 and last_batches.get(header.producer_id) == header.last_offset else None
    tombstones = any(r.value is None for r in kept)
    new_horizon = job.now_ms + job.delete_retention_ms if tombstones and horizon is None else horizon
    if len(kept) == len(opened) and new_horizon == horizon:
        return data
    return records.encode(kept, _template(header, new_horizon))


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
    """A batch without records that still tells its producer's sequence."""
    template = _template(header, None)
    template.codec = 0
    out = records.encode([], template)
    at = BatchAt(0, records.header_at(out))
    records.set_max_timestamp(out, 0, at.header, header.is_append_time, header.max_timestamp)
    return out


def swap(log: Log, plan: Plan, outcome: Outcome, now_ms: int) -> None:
    """Puts cleaned segments in the place of the old ones, so that a crash at any moment leaves one or the other."""
    for old_bases, base, size in outcome.groups:
        old = [s for s in log.segments if s.base_offset in old_bases]
        if [s.base_offset for s in old] != old_bases or any(s.suffix for s in old):
            continue  # retention was faster
        cleaned = Segment(log.pool, log.directory, base, now_ms, size)
        cleaned.suffix = CLEANED
        cleaned.rename(SWAP)
        kept = [s for s in log.segments if s not in old]
        for segment in old:
            segment.save_indexes()
            segment.mark_deleted()
            log.removed.append((now_ms + log.settings.file_delete_delay_ms, segment))
        cleaned.rename("")
        cleaned.load_timestamps()
        cleaned.rolling_timestamp = old[0].rolling_timestamp
        log.set_segments(sorted([*kept, cleaned], key=lambda s: s.base_offset))
    log.first_dirty_offset = max(log.first_dirty_offset, outcome.cleaned_to)
