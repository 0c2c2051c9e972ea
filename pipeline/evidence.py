"""The view `evidence`: what the job `audit` needs to know of a data directory, in one table, so that one plan of Spark
does it all. Runs in tasks; does not use Spark.

What a file shows by itself is a finding already: a row with `kind` and `detail`. What depends on other files is packed
into `data` for `checks`: the marks of a partition, its aborted transactions by the index, and its batches, a few
hundred per row. Spark only carries these rows to one place per partition, in the order of the log.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from ..protocol.records import LOG_OVERHEAD
from ..storage import layout
from . import findings
from .batches import TABLE, Array
from .directory import Directory, Segment, Slice
from .indexes import problems
from .inventory import file_facts
from .reading import Options, examined

ABORT: Final = "ABORT"
MARKS, ABORTED, BATCHES = "marks", "aborted", "batches"
BATCHES_PER_ROW = 256  # Spark gives up to 10,000 rows at once to Python
BATCH = np.dtype([*TABLE.descr, ("valid", "?"), ("aborts", "?")])
NOTED = np.dtype([("producer_id", "i8"), ("first", "i8"), ("last", "i8")])
# of rows that are packed and belong to no segment: before those of all segments, marks first
_NO_SEGMENT, _MARKS_AT, _ABORTED_AT = "", -2, -1


class Row(NamedTuple):
    """A row of the view."""

    topic: str | None
    partition: int | None
    segment: str | None
    position: int | None
    offset: int | None
    kind: str
    detail: str | None
    data: bytes | None = None


class Marks(NamedTuple):
    """What is known of a partition besides its log. `known_from`: from here on no record was removed."""

    cleaned: int
    known_from: int
    epochs: Sequence[tuple[int, int]]
    log_start: int
    end_offset: int
    segments: int


def rows(
    directory: Directory, item: Slice | Segment | tuple[str, int] | None, schema: pa.Schema, options: Options
) -> Iterator[pa.RecordBatch]:
    """Yields the evidence of a slice, of a segment's indexes, of a partition, or of all files (None)."""
    if item is None:
        found = _of_files(directory)
    elif isinstance(item, Slice):
        found = _of_batches(directory, item, options)
    elif isinstance(item, Segment):
        found = _of_indexes(directory, item)
    else:
        found = _of_partition(directory, *item)
    yield from as_batches(found, schema)


def as_batches(found: Iterator[NamedTuple], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yields named tuples as one Arrow batch; nothing if there are none."""
    made = [one._asdict() for one in found]
    if made:
        yield pa.RecordBatch.from_pylist(made, schema=schema)


def _of_batches(directory: Directory, part: Slice, options: Options) -> Iterator[Row]:
    found = examined(directory, part, options)
    if found is None:
        return
    place, table = part.segment.place, np.empty(len(found.table), BATCH)
    for name in TABLE.names or ():
        table[name] = found.table[name]
    table["valid"] = found.valid
    table["aborts"] = [kind == ABORT for kind in found.kinds]
    for i in found.errors:
        kind = findings.BYTES if table["magic"][i] < 0 else findings.RECORDS if table["valid"][i] else findings.CRC
        position, offset = int(table["position"][i]), int(table["base_offset"][i])
        yield Row(*place, position, offset, *kind.of(found.errors[i]))
    table = table[np.argsort(table["position"], kind="stable")]
    for at in range(0, len(table), BATCHES_PER_ROW):
        packed = table[at : at + BATCHES_PER_ROW]
        yield Row(*place, int(packed["position"][0]), None, BATCHES, None, packed.tobytes())


def _of_indexes(directory: Directory, segment: Segment) -> Iterator[Row]:
    place = segment.place
    for problem in problems(directory, segment, directory.offset_index(segment), directory.time_index(segment)):
        yield Row(*place, problem.position, problem.offset, *findings.INDEX.of(problem.words))
    aborted = directory.noted(segment)
    if len(aborted):
        noted = np.empty(len(aborted), NOTED)
        for name in NOTED.names or ():
            noted[name] = aborted[name]
        where = (place.topic, place.partition, _NO_SEGMENT, _ABORTED_AT)
        yield Row(*where, None, ABORTED, place.segment, noted.tobytes())


def _of_partition(directory: Directory, topic: str, partition: int) -> Iterator[Row]:
    segments, which = directory.segments(topic, partition), (topic, partition)
    if not segments:
        return
    high_watermark = directory.offsets(layout.HIGH_WATERMARKS).get(which)  # before the log, which may grow meanwhile
    log_start, end = directory.log_start_offset(segments[0]), directory.end_offset(topic, partition)
    cleaned = directory.offsets(layout.CLEANER_OFFSETS).get(which, 0)
    if high_watermark is not None and high_watermark > end:
        yield Row(topic, partition, None, None, end, *findings.END.of(end, high_watermark))
    epochs = directory.leader_epochs(topic, partition)
    marks = Marks(cleaned, max(cleaned, log_start), epochs, log_start, end, len(segments))
    yield Row(topic, partition, _NO_SEGMENT, _MARKS_AT, None, MARKS, None, json.dumps(marks).encode())


def _of_files(directory: Directory) -> Iterator[Row]:
    """Finds files without a segment, segments without their indexes, and remains of interrupted operations."""
    for (topic, partition), files in groupby(file_facts(directory), lambda one: (one.topic, one.partition)):
        found = list(files)
        logs = {one.base_offset for one in found if one.kind == "log"}
        indexes = Counter(one.base_offset for one in found if one.kind in ("index", "timeindex"))
        for one in found:
            what = None
            if one.kind in ("index", "timeindex", "txnindex") and one.base_offset not in logs:
                what = findings.WITHOUT_SEGMENT
            elif one.kind in ("unknown", "stray"):
                what = findings.WITHOUT_LOG
            elif one.kind in ("cleaned", "swap"):
                what = findings.INTERRUPTED
            elif one.kind == "log" and one.size and indexes[one.base_offset] < 2:
                what = findings.INDEX_FILES
            if what is not None:
                yield Row(topic, partition, None, None, one.base_offset, *what.of(one.path))


def size_bytes(table: Array) -> int:
    """Returns the size of all batches of a table in the log."""
    return int(table["length"].sum(dtype=np.int64)) + LOG_OVERHEAD * len(table)
