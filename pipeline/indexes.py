"""The view `index`: what the three indexes of a segment say, and whether its log says so too. What a task runs; no Spark in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ..protocol.records import CODEC_MASK, MAGIC
from .batches import Array
from .columns import instant
from .directory import Directory, Segment
from .reading import Options, whole_segment


def rows(directory: Directory, segment: Segment, schema: Any, options: Options) -> Iterator[Any]:
    """The entries of a segment's indexes as an Arrow batch of `schema`."""
    offsets, positions = directory.offset_index(segment)
    timestamps, at = directory.time_index(segment)
    aborted = directory.aborted([segment])
    sizes = (len(offsets), len(timestamps), len(aborted))
    total = sum(sizes)

    def column(kind: Any, *parts: Any) -> Any:
        filled = [
            pa.nulls(size, kind) if part is None else pa.array(np.ascontiguousarray(part), kind) for part, size in zip(parts, sizes, strict=True)
        ]
        return pa.concat_arrays(filled)

    def of(name: str) -> Any:
        return aborted[name].astype(np.int64)

    instants = instant(timestamps)
    columns = {
        "topic": pa.repeat(pa.scalar(segment.topic), total),
        "partition": pa.repeat(pa.scalar(segment.partition, pa.int32()), total),
        "segment": pa.repeat(pa.scalar(segment.place.segment), total),
        "kind": pa.array([name for name, size in zip(("offset", "time", "transaction"), sizes, strict=True) for _ in range(size)], pa.string()),
        "offset": column(pa.int64(), offsets, at, of("first")),
        "position": column(pa.int64(), positions, None, None),
        "timestamp": pa.concat_arrays([pa.nulls(sizes[0], instants.type), instants, pa.nulls(sizes[2], instants.type)]),
        "producerId": column(pa.int64(), None, None, of("producer_id")),
        "lastOffset": column(pa.int64(), None, None, of("last")),
        "lastStableOffset": column(pa.int64(), None, None, of("stable")),
        "error": pa.array(
            _errors(directory, segment, offsets, positions, timestamps, at, total) if options.against_log else [None] * total, pa.string()
        ),
    }
    yield pa.RecordBatch.from_arrays([columns[field.name] for field in schema], schema=schema)


def _errors(directory: Directory, segment: Segment, offsets: Array, positions: Array, timestamps: Array, at: Array, total: int) -> list[str | None]:
    """What the log has not of the offset and time indexes' entries, in their order; nothing where the log itself is damaged or has gone."""
    errors: list[str | None] = [None] * total
    try:
        found = whole_segment(directory, segment)
    except OSError:
        return errors
    if found.gaps:
        return errors
    for row in np.flatnonzero(~offsets_right(found.table, offsets, positions)).tolist():
        errors[row] = f"the offset index has {offsets[row]} at position {positions[row]}, the log has not"
    for row in np.flatnonzero(~times_right(found.table, timestamps, at)).tolist():
        errors[len(offsets) + row] = f"the time index has offset {at[row]} for {timestamps[row]} ms, the log has not"
    return errors


def offsets_right(table: Array, offsets: Array, positions: Array) -> Array:
    """Whether at each entry's position a batch begins, and from it on, before the next entry's, one ends with the entry's offset.

    An entry is of one append, which may have had several batches: of the first one's position, and the last one's offset.
    """
    order = np.argsort(positions, kind="stable")
    sorted_positions, sorted_offsets = positions[order], offsets[order]
    begins = np.isin(sorted_positions, table["position"])
    entry = np.searchsorted(sorted_positions, table["position"], side="right") - 1  # the entry that each batch belongs to
    mine = entry >= 0
    ends = np.bincount(entry[mine], table["last_offset"][mine] == sorted_offsets[entry[mine]], len(positions)) > 0
    right = np.empty(len(positions), bool)
    right[order] = begins & ends
    return right


def times_right(table: Array, timestamps: Array, offsets: Array) -> Array:
    """Whether each entry's offset lies in a batch whose largest timestamp is the entry's."""
    if not len(table):
        return np.zeros(len(timestamps), bool)
    ordered = table[np.argsort(table["last_offset"], kind="stable")]
    slot = np.minimum(np.searchsorted(ordered["last_offset"], offsets), len(ordered) - 1)
    batch = ordered[slot]
    base_unknown = (batch["magic"] < MAGIC) & ((batch["attributes"] & CODEC_MASK) != 0)  # of an old compressed set
    right: Array = (batch["max_timestamp"] == timestamps) & (offsets <= batch["last_offset"]) & (base_unknown | (offsets >= batch["base_offset"]))
    return right
