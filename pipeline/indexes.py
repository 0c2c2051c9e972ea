"""The view `index`: the entries of a segment's three indexes, compared with its log.
Runs in tasks; does not use Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..protocol.records import CODEC_MASK, MAGIC
from .batches import Array
from .columns import instant
from .directory import Directory, Segment
from .reading import Options, whole_table

Index = tuple[Array, Array]


def rows(directory: Directory, segment: Segment, schema: pa.Schema, options: Options) -> Iterator[pa.RecordBatch]:
    """Yields the entries of a segment's indexes as an Arrow batch of `schema`."""
    by_offset, by_time = directory.offset_index(segment), directory.time_index(segment)
    (offsets, positions), (timestamps, at) = by_offset, by_time
    aborted = directory.noted(segment)
    sizes = (len(offsets), len(timestamps), len(aborted))
    total = sum(sizes)
    found = problems(directory, segment, by_offset, by_time) if options.against_log else ()
    wrong = {one.row: one.words for one in found}

    def column(kind: pa.DataType, *parts: Array | None) -> pa.Array:
        filled = [
            pa.nulls(size, kind) if part is None else pa.array(np.ascontiguousarray(part), kind)
            for part, size in zip(parts, sizes, strict=True)
        ]
        return pa.concat_arrays(filled)

    def of(name: str) -> Array:
        return aborted[name].astype(np.int64)

    instants = instant(timestamps)
    columns = {
        "topic": pa.repeat(pa.scalar(segment.topic), total),
        "partition": pa.repeat(pa.scalar(segment.partition, pa.int32()), total),
        "segment": pa.repeat(pa.scalar(segment.place.segment), total),
        "kind": pa.array(
            [name for name, size in zip(("offset", "time", "transaction"), sizes, strict=True) for _ in range(size)],
            pa.string(),
        ),
        "offset": column(pa.int64(), offsets, at, of("first")),
        "position": column(pa.int64(), positions, None, None),
        "timestamp": pa.concat_arrays([pa.nulls(sizes[0], instants.type), instants, pa.nulls(sizes[2], instants.type)]),
        "producerId": column(pa.int64(), None, None, of("producer_id")),
        "lastOffset": column(pa.int64(), None, None, of("last")),
        "lastStableOffset": column(pa.int64(), None, None, of("stable")),
        "error": pa.array([wrong.get(row) for row in range(total)], pa.string()),
    }
    yield pa.RecordBatch.from_arrays([columns[field.name] for field in schema], schema=schema)


class Problem(NamedTuple):
    """An entry that the log contradicts: its row in the view, and what it says."""

    row: int
    position: int | None
    offset: int
    words: str


def problems(directory: Directory, segment: Segment, by_offset: Index, by_time: Index) -> Iterator[Problem]:
    """Yields the entries of the offset and time indexes that the log contradicts; none if the log itself is damaged or
    deleted. The indexes are those that `directory` returns: they are read before the log, which may grow meanwhile.
    """
    try:
        table = whole_table(directory, segment)
    except OSError:
        return
    if table is None:
        return
    offsets, positions = by_offset
    for row in np.flatnonzero(~offsets_right(table, offsets, positions)).tolist():
        offset, position = int(offsets[row]), int(positions[row])
        words = f"the offset index has offset {offset} at position {position}, but the log does not"
        yield Problem(row, position, offset, words)
    timestamps, at = by_time
    for row in np.flatnonzero(~times_right(table, timestamps, at)).tolist():
        offset = int(at[row])
        words = f"the time index has offset {offset} for {timestamps[row]} ms, but the log does not"
        yield Problem(len(offsets) + row, None, offset, words)


def offsets_right(table: Array, offsets: Array, positions: Array) -> Array:
    """Whether each entry agrees with the log: a batch begins at its position, and a batch before the next entry's
    position ends with its offset.

    An entry belongs to one append of one or more batches: it has the position of the first batch and the offset of the
    last one.
    """
    order = np.argsort(positions, kind="stable")
    sorted_positions, sorted_offsets = positions[order], offsets[order]
    begins = np.isin(sorted_positions, table["position"])
    # the entry that each batch belongs to
    entry = np.searchsorted(sorted_positions, table["position"], side="right") - 1
    mine = entry >= 0
    ends = np.bincount(entry[mine], table["last_offset"][mine] == sorted_offsets[entry[mine]], len(positions)) > 0
    right = np.empty(len(positions), bool)
    right[order] = begins & ends
    return right


def times_right(table: Array, timestamps: Array, offsets: Array) -> Array:
    """Whether each entry's offset is in a batch whose largest timestamp is the entry's."""
    if not len(table):
        return np.zeros(len(timestamps), bool)
    ordered = table[np.argsort(table["last_offset"], kind="stable")]
    slot = np.minimum(np.searchsorted(ordered["last_offset"], offsets), len(ordered) - 1)
    batch = ordered[slot]
    # a compressed message set does not have its base offset
    base_unknown = (batch["magic"] < MAGIC) & ((batch["attributes"] & CODEC_MASK) != 0)
    right: Array = (
        (batch["max_timestamp"] == timestamps)
        & (offsets <= batch["last_offset"])
        & (base_unknown | (offsets >= batch["base_offset"]))
    )
    return right
