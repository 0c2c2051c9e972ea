"""Reads what is little of a directory in the process of the job. The data source would start several processes of
Python for it, of which each takes more of the processor than the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql.types import StructType

from .directory import Slice
from .options import Source
from .source import LogReader, Task
from .views import ddl

BYTES_MAX: Final = 4 << 20  # of logs; two cores need more than a second for what is in more internal records
ITEMS_MAX: Final = 1000  # slices, segments or partitions
TABLE_BYTES_MAX: Final = 64 << 20


def table(options: Mapping[str, str]) -> pa.Table | None:
    """Returns what `kafka-log` with these options reads; None if it is not little. Needs a session of Spark. Raises
    ValueError for a wrong option, and for what cannot be read.
    """
    source = Source.of(options)
    schema = StructType.fromDDL(ddl(source.view))
    assert isinstance(schema, StructType)
    reader = LogReader(source, schema)
    tasks = reader.partitions()
    if not _is_little(tasks):
        return None
    made, bytes_ = [], 0
    for batch in _batches(reader, tasks):
        made.append(batch)
        bytes_ += batch.nbytes
        if bytes_ > TABLE_BYTES_MAX:
            return None
    return pa.Table.from_batches(made, reader.schema)


def _is_little(tasks: list[Task]) -> bool:
    items = [one for task in tasks for one in task.items]
    bytes_ = sum(one.end - one.start for one in items if isinstance(one, Slice))
    return len(items) <= ITEMS_MAX and bytes_ <= BYTES_MAX


def _batches(reader: LogReader, tasks: list[Task]) -> Iterator[pa.RecordBatch]:
    for task in tasks:
        yield from reader.read(task)
