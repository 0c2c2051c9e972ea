"""Reads slices of segments as Arrow batches: the views `records` and `batches`. Runs in tasks; does not use Spark."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..coordinator.described import control_name
from ..protocol.buffers import Data
from ..protocol.records import CODEC_MASK, CONTROL_MASK, LOG_OVERHEAD, MAGIC, TRANSACTIONAL_MASK
from .batches import TABLE, Array, crc_verdicts, scan
from .columns import batch_rows, gathered, record_batch
from .directory import FIRST, LAST, Bounds, Directory, Segment, Slice
from .opened import BATCH_BYTES_MAX, Broken, Opened, open_batches

OPENS = ("none", "compressed", "all")


class BrokenLog(ValueError):
    """A part of a log cannot be read; the message says which and why."""


@dataclass(frozen=True)
class Options:
    """Options of reading. `skip_broken` leaves out what cannot be read instead of raising BrokenLog. `opens`: which
    batches the view `batches` opens.

    `against_log`: whether the view `index` compares its entries with the log. `must_exist`: whether it is an error that
    a segment was deleted after the plan.
    """

    verify_crc: bool = False
    skip_broken: bool = False
    opens: str = "none"
    against_log: bool = False
    must_exist: bool = False
    limit_bytes: int = BATCH_BYTES_MAX


@dataclass(frozen=True)
class Found:
    """The bytes of a slice, its batches, and the gaps that are not batches."""

    data: Data
    table: Array
    shift: int
    gaps: list[tuple[int, int]]  # (start, end) positions in the file, end excluded


def batches_of(directory: Directory, part: Slice) -> Found | None:
    """Returns the batches of a slice, wherever they are now; None if their segment was deleted meanwhile."""
    segment, since, until = part.segment, part.batches_from, part.batches_to
    try:
        end = part.end + part.reach
        data, size = directory.files.part(segment.name(), part.start, end)
        found = _scanned(directory, segment, data, size, part.start)
        moved = part.start and not (found.table["last_offset"] == since).any()
        # the segment ended here, and does not any more: those after it may have been merged into it
        merged = end == segment.size and len(data) != end - part.start and not segment.is_last
        # the cleaner rewrote the file, or it has grown
        if moved or merged or (found.gaps and directory.files.size_or_deleted(segment.name()) != segment.size):
            found = whole_segment(directory, segment)
        until = min(until, segment.next_base_offset) if merged else until
    except FileNotFoundError:
        into = directory.merged_into(segment)
        if into is None:
            return None
        found = whole_segment(directory, into)
        since, until = max(since, segment.base_offset), min(until, segment.next_base_offset)
    last = found.table["last_offset"]
    mine = (last >= since) & (last < until)
    gaps = [one for one in found.gaps if part.start <= one[0] and (one[0] < part.end or part.batches_to == LAST)]
    return replace(found, table=found.table if mine.all() else found.table[mine], gaps=gaps)


def whole_segment(directory: Directory, segment: Segment) -> Found:
    """Returns all batches of a segment. Raises OSError; FileNotFoundError if it was deleted."""
    data, size = directory.files.part(segment.name(), 0, directory.files.size_or_deleted(segment.name()))
    return _scanned(directory, segment, data, size, 0)


def whole_table(directory: Directory, segment: Segment) -> Array | None:
    """Returns all batches of a segment as it is now, of which little is in memory at a time; None if it is damaged.
    Raises OSError; FileNotFoundError if it was deleted.
    """
    tables, end, size = [np.empty(0, TABLE)], 0, directory.files.size(segment.name())
    for _, table, start in directory.windows(segment, 0, size):
        table["position"] += start
        end = int(table["position"][-1]) + int(table["length"][-1]) + LOG_OVERHEAD
        tables.append(table)
    is_whole = end == size or (segment.is_last and directory.files.is_zero(segment.name(), end, size))
    return np.concatenate(tables) if is_whole else None


def _scanned(directory: Directory, segment: Segment, data: Data, size: int, shift: int) -> Found:
    """Returns all batches, and the gaps between them, except for zeros at the end of a preallocated file."""
    found = _walked(directory, segment, data, size, shift)
    if segment.is_last and found.gaps and not np.frombuffer(data, np.uint8)[found.gaps[-1][0] - shift : size].any():
        found.gaps.pop()
    return found


def _walked(directory: Directory, segment: Segment, data: Data, size: int, shift: int) -> Found:
    """Returns all batches; after a damaged batch of unknown size, continues at the next one in the index."""
    found = scan(data, 0, size)
    if found.end == size:
        return Found(data, found.table, shift, [])
    tables, gaps, at = [found.table], [], found.end
    known: list[int] = directory.offset_index(segment)[1].tolist()
    while at < size:
        slot = bisect.bisect_right(known, at + shift)
        following = known[slot] - shift if slot < len(known) else size
        following = min(following, size)
        gaps.append((at + shift, following + shift))
        found = scan(data, following, size)
        tables.append(found.table)
        at = found.end
    return Found(data, np.concatenate(tables), shift, gaps)


def records(directory: Directory, part: Slice, schema: pa.Schema, options: Options) -> Iterator[pa.RecordBatch]:
    """Yields the records of a slice as Arrow batches of `schema`. Raises BrokenLog."""
    for group in opened(directory, part, options, "headers" in schema.names):
        yield record_batch(group, kept(group.offset, group.timestamp, part.bounds), part.segment.place, schema)


def opened(directory: Directory, part: Slice, options: Options, with_headers: bool = False) -> Iterator[Opened]:
    """Opens the batches of a slice that may contain wanted records;
    positions are those in the file. Raises BrokenLog.
    """
    found = batches_of(directory, part)
    if found is None:
        _check_deleted(part, options)
        return
    if found.gaps and not options.skip_broken and not _growing(part, found):
        raise BrokenLog(f"{part.segment.name()}: no complete batch at position {found.gaps[0][0]}")
    table = _wanted(found.table, part)
    if options.verify_crc and len(table):
        valid = crc_verdicts(found.data, table)
        if not valid.all() and not options.skip_broken:
            position = int(table["position"][~valid][0]) + found.shift
            raise BrokenLog(f"{part.segment.name()}: the CRC of the batch at position {position} is wrong")
        table = table[valid]
    for group in open_batches(found.data, table, with_headers, options.limit_bytes):
        if isinstance(group, Broken):
            if not options.skip_broken:
                raise BrokenLog(
                    f"{part.segment.name()}: the batch at position {group.position + found.shift} cannot be opened: "
                    f"{group.problem}"
                )
            continue
        group.table["position"] += found.shift
        yield group


def _check_deleted(part: Slice, options: Options) -> None:
    """Raises BrokenLog if it is an error that a segment was deleted."""
    if options.must_exist:
        raise BrokenLog(f"records are lost: {part.segment.name()} was deleted before it was read")


def _growing(part: Slice, found: Found) -> bool:
    """Whether only the end of the last segment is incomplete, which the broker may be writing."""
    return (
        part.segment.is_last
        and len(found.gaps) == 1
        and found.gaps[0][1] >= min(part.end, found.shift + len(found.data))
    )


def _wanted(table: Array, part: Slice) -> Array:
    bounds = part.bounds
    wanted = np.ones(len(table), bool)
    if bounds.first_offset > FIRST:
        wanted &= table["last_offset"] >= bounds.first_offset
    if bounds.last_offset < LAST:
        if bounds.whole_batches:
            wanted &= table["last_offset"] <= bounds.last_offset
        else:  # the base offset of a message set is known when it is opened
            wanted &= (table["base_offset"] <= bounds.last_offset) | (table["magic"] < MAGIC)
    if bounds.first_timestamp > FIRST:
        wanted &= table["max_timestamp"] >= bounds.first_timestamp
    if part.aborted is not None:
        wanted &= ~_uncommitted(table, part.aborted)
    return table if wanted.all() else table[wanted]


def _uncommitted(table: Array, aborted: Array) -> Array:
    """Returns which batches are markers or belong to aborted transactions; a producer has one transaction at a time."""
    unwanted: Array = (table["attributes"] & CONTROL_MASK) != 0
    transactional = ~unwanted & ((table["attributes"] & TRANSACTIONAL_MASK) != 0)
    if not len(aborted) or not transactional.any():
        return unwanted
    for producer_id in np.intersect1d(aborted["producer_id"], table["producer_id"][transactional]):
        rows = np.flatnonzero(transactional & (table["producer_id"] == producer_id))
        mine = np.sort(aborted[aborted["producer_id"] == producer_id], order="first")
        slot = np.searchsorted(mine["first"], table["base_offset"][rows], side="right") - 1
        unwanted[rows] = (slot >= 0) & (table["base_offset"][rows] <= mine["last"][slot])
    return unwanted


def kept(offset: Array, timestamp: Array, bounds: Bounds) -> Array | None:
    """Returns which records are within the bounds; None if all are."""
    kept = None
    for column, first, last in (
        (offset, bounds.first_offset, bounds.last_offset),
        (timestamp, bounds.first_timestamp, bounds.last_timestamp),
    ):
        if first > FIRST or last < LAST:
            inside = (column >= first) & (column <= last)
            kept = inside if kept is None else kept & inside
    return None if kept is None or kept.all() else kept


@dataclass(frozen=True)
class Examined:
    """The batches of a slice, and a row with magic -1 for bytes that are not a complete batch; positions are those in
    the file. `errors`: by row. `kinds`: types of control batches.
    """

    table: Array
    valid: Array | None
    errors: dict[int, str]
    kinds: list[str | None]


def examined(
    directory: Directory, part: Slice, options: Options, with_crc: bool = True, with_kinds: bool = True
) -> Examined | None:
    """Examines the batches of a slice; returns None if their segment was deleted. Raises BrokenLog."""
    unreadable: str | None = None
    try:
        found = batches_of(directory, part)
    except OSError as error:  # the file exists and cannot be read
        found = Found(b"", np.empty(0, TABLE), 0, [(part.start, part.end)])
        unreadable = f"cannot be read: {error.strerror or error}"
    if found is None:
        _check_deleted(part, options)
        return None
    table = _wanted(found.table, part)
    valid = crc_verdicts(found.data, table) if with_crc else None
    errors = {} if valid is None else dict.fromkeys(np.flatnonzero(~valid).tolist(), "wrong CRC")
    if options.opens != "none":
        _open_all(found.data, table, valid, errors, options)
    kinds: list[str | None] = control_types(found.data, table) if with_kinds else [None] * len(table)
    shifted = table.copy()
    shifted["position"] += found.shift
    if found.gaps:
        lost = np.zeros(len(found.gaps), TABLE)
        for name in _UNKNOWN:
            lost[name] = -1
        for i, (start, end) in enumerate(found.gaps):
            lost["position"][i], lost["length"][i] = start, end - start - LOG_OVERHEAD
            errors[len(table) + i] = unreadable or f"{end - start} bytes that are not a complete batch"
        shifted = np.concatenate([shifted, lost])
        valid = None if valid is None else np.concatenate([valid, np.zeros(len(lost), bool)])
        kinds += [None] * len(lost)
    return Examined(shifted, valid, errors, kinds)


_UNKNOWN = (
    "base_offset",
    "last_offset",
    "magic",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "base_sequence",
)


def batches(directory: Directory, part: Slice, schema: pa.Schema, options: Options) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a slice as an Arrow batch of `schema`.
    Bytes that are not a complete batch are a row with `error`. Raises BrokenLog.
    """
    with_crc = "crcValid" in schema.names or "error" in schema.names
    found = examined(directory, part, options, with_crc, "controlType" in schema.names)
    if found is not None and len(found.table):
        errors = [found.errors.get(row) for row in range(len(found.table))]
        yield batch_rows(found.table, found.valid, errors, found.kinds, part.segment.place, schema)


def _open_all(data: Data, table: Array, valid: Array | None, errors: dict[int, str], options: Options) -> None:
    """Writes into `errors` which batches with a right CRC cannot be opened."""
    chosen = np.ones(len(table), bool) if valid is None else valid.copy()
    if options.opens == "compressed":
        chosen &= (table["attributes"] & CODEC_MASK) != 0
    rows = {int(at): row for row, at in enumerate(table["position"])}
    for group in open_batches(data, table[chosen], True, options.limit_bytes):
        if isinstance(group, Broken):
            errors[rows[group.position]] = f"cannot be opened: {group.problem}"


def control_types(data: Data, table: Array) -> list[str | None]:
    """Returns the types of control batches; None for other batches."""
    kinds: list[str | None] = [None] * len(table)
    rows = np.flatnonzero((table["attributes"] & CONTROL_MASK) != 0)
    if rows.size:
        at = {int(table["position"][row]): int(row) for row in rows}
        for group in open_batches(data, table[rows]):
            if isinstance(group, Opened):
                keys = gathered(group.data, group.key_at, group.key_size, pa.binary()).to_pylist()
                for row, key in zip(group.row.tolist(), keys, strict=True):
                    kinds[at[int(group.table["position"][row])]] = control_name(key)
    return kinds
