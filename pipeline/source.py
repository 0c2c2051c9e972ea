"""Spark's data source `kafka-log`: a broker's data directory as tables, in batch and as streams. `options` describes
the options.

A given schema is a projection: only its columns are computed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from ..coordinator.described import INTERNAL_TOPICS
from ..coordinator.metadata.format import CLUSTER_METADATA
from . import evidence, indexes, internal, inventory, reading
from .committed import Committed, committed
from .directory import FIRST, LAST, SLICE_BYTES_MAX, SLICE_BYTES_MIN, Bounds, Directory, Segment, Slice, Snapshot, dealt
from .limits import Ids, Progress, StreamOffset, StreamReader
from .options import EARLIEST, LATEST, STREAMED, Source
from .views import ddl

PARTITIONS_PER_TASK = 100
SEGMENTS_PER_TASK = 200
SLICES_PER_TASK = 8  # of sufficiently long segments
TASK_BYTES_MIN = 1 << 20  # fewer take less time than a task
TASK_BYTES_MAX = 1 << 30  # what a failed task has to read again; a slice of it is in memory


Item = Slice | Segment | tuple[str, int] | None  # what a task reads of each view; None: the whole directory


@dataclass
class Task(InputPartition):
    """The input of one task: slices, segments or partitions, depending on the view."""

    items: Sequence[Item]


class Planner:
    """Chooses what to read of a directory, and splits it into tasks. `passes_over`: whether topics that the source
    names, and that do not exist, are left out; else they are an error.
    """

    def __init__(self, source: Source, passes_over: bool = False) -> None:
        self.source = source
        self.directory = Directory(source.path)
        self.topics = source.topics
        if passes_over and source.topics is not None:
            there = {topic for topic, _ in self.directory.partitions}
            self.topics = tuple(one for one in source.topics if one in there)
        self._committed: dict[tuple[str, int], Committed] = {}

    def partitions(self, topics: set[str] | None = None, numbers: set[int] | None = None) -> Iterator[tuple[str, int]]:
        if self.source.view == "internal" and self.source.topics is None:
            topics = set(INTERNAL_TOPICS) if topics is None else topics & set(INTERNAL_TOPICS)
        for topic, partition in self.directory.chosen(self.topics):
            if self.source.numbers is not None and partition not in self.source.numbers:
                continue
            if (topics is None or topic in topics) and (numbers is None or partition in numbers):
                yield topic, partition

    def tasks(self, wanted: Iterable[tuple[str, int, Bounds]]) -> list[Task]:
        """Returns tasks of about the same number of bytes; at least one, which may be empty."""
        if self.source.view == "files":
            return [Task([None])]
        if self.source.view == "partitions":
            return _tasks([(topic, partition) for topic, partition, _ in wanted], PARTITIONS_PER_TASK)
        found = [(self.directory.segments(topic, partition), bounds) for topic, partition, bounds in wanted]
        if self.source.view == "index":
            wanted_segments = [one for segments, _ in found for one in segments]
            each = SEGMENTS_PER_TASK
            if self.source.reading.against_log:
                each = -(-len(wanted_segments) // self.task_count(sum(one.size for one in wanted_segments)))
            return _tasks(wanted_segments, max(1, each))
        total = sum(one.size for segments, _ in found for one in segments)
        count = self.task_count(total)
        slice_bytes = min(max(SLICE_BYTES_MIN, total // (count * SLICES_PER_TASK)), SLICE_BYTES_MAX)
        slices: list[Slice] = []
        for segments, bounds in found:
            aborted = self.committed(*segments[0].place[:2]).aborted if segments and self.source.committed else None
            slices += self.directory.slices(segments, bounds, slice_bytes, aborted)
            snapshot = self.snapshot(*segments[0].place[:2]) if segments else None
            if snapshot is not None and bounds.first_offset <= snapshot.base_offset <= bounds.last_offset:
                slices.append(Slice(snapshot, 0, snapshot.size, FIRST, LAST, bounds, aborted))
        tasks = [Task(list(one)) for one in dealt(slices, count)] or [Task([])]
        if self.source.view == "evidence":
            others: list[Item] = [None, *((one[0].topic, one[0].partition) for one, _ in found if one)]
            others += [one for segments, _ in found for one in segments]
            for n, one in enumerate(tasks):
                one.items = [*one.items, *others[n :: len(tasks)]]
        return tasks

    def task_count(self, total_bytes: int) -> int:
        """Returns how many tasks read logs of this size."""
        cores = min(os.cpu_count() or 1, -(-total_bytes // TASK_BYTES_MIN))
        return max(1, self.source.tasks or cores, -(-total_bytes // TASK_BYTES_MAX))

    def snapshot(self, topic: str, partition: int) -> Snapshot | None:
        """Returns the snapshot that is read before the log, in the view `internal`."""
        return (
            self.directory.snapshot(topic, partition)
            if self.source.view == "internal" and topic == CLUSTER_METADATA
            else None
        )

    def first(self, topic: str, partition: int) -> int | None:
        """Returns the first offset that there is, 0 if a snapshot stands for what was before; None without segments."""
        segments = self.directory.segments(topic, partition)
        if not segments:
            return None
        return 0 if self.snapshot(topic, partition) is not None else segments[0].base_offset

    def topic_ids(self) -> Ids:
        """Returns the ids of the topics of partitions, as far as these record them."""
        found = {f"{topic}-{number}": self.directory.topic_id(topic, number) for topic, number in self.partitions()}
        return {name: one for name, one in found.items() if one is not None}

    def end(self, topic: str, partition: int) -> int:
        """Returns the offset after the last one that is read; -1 if there is no segment."""
        if self.source.committed:
            return self.committed(topic, partition).last_stable_offset
        return self.directory.end_offset(topic, partition)

    def committed(self, topic: str, partition: int) -> Committed:
        """Returns what of a partition is committed, read once."""
        if (topic, partition) not in self._committed:
            self._committed[topic, partition] = committed(self.directory, topic, partition)
        return self._committed[topic, partition]


def _tasks(items: Sequence[Item], each: int) -> list[Task]:
    return [Task(items[at : at + each]) for at in range(0, len(items), each)] or [Task([])]


def _read(source: Source, task: InputPartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    assert isinstance(task, Task)
    directory, view = Directory(source.path), _READERS[source.view]
    for item in task.items:
        yield from view(directory, item, schema, source.reading)


_READERS: dict[str, Callable[[Directory, Any, pa.Schema, reading.Options], Iterator[pa.RecordBatch]]] = {
    "records": reading.records,
    "batches": reading.batches,
    "index": indexes.rows,
    "internal": internal.rows,
    "partitions": inventory.partition_rows,
    "files": inventory.file_rows,
    "evidence": evidence.rows,
}


class LogReader(DataSourceReader):
    """Reads the directory as it is now."""

    def __init__(self, source: Source, schema: StructType) -> None:
        self.source, self.schema = source, to_arrow_schema(schema, timezone="UTC")
        self.topics: set[str] | None = None
        self.numbers: set[int] | None = None
        self.low = {"offset": FIRST, "timestamp": source.timestamps[0]}
        self.high = {"offset": LAST, "timestamp": source.timestamps[1]}

    def partitions(self) -> list[Task]:
        planner, source = Planner(self.source), self.source
        wanted = []
        for topic, partition in planner.partitions(self.topics, self.numbers):
            first, behind = source.starting_offset(topic, partition), source.ending_offset(topic, partition)
            if first == LATEST or behind == EARLIEST:
                continue
            last = min(self.high["offset"], LAST if behind == LATEST else behind - 1)
            if source.committed:
                last = min(last, planner.end(topic, partition) - 1)
            low = self.low["offset"] if first == EARLIEST else max(self.low["offset"], first)
            wanted.append((topic, partition, Bounds(low, last, self.low["timestamp"], self.high["timestamp"])))
        return planner.tasks(wanted)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self.source, partition, self.schema)


class FilteredLogReader(LogReader):
    """Like LogReader, with the filters of the only query that uses it."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Filters on topics and partitions choose files; those on offsets and timestamps choose batches, and Spark
        filters the records again.
        """
        for one in filters:
            if not self._pushed(one):
                yield one

    def _pushed(self, one: Filter) -> bool:
        if self.source.view == "files":  # it is read as a whole
            return False
        name, value = getattr(one, "attribute", ("",))[0], getattr(one, "value", None)
        if name in ("topic", "partition") and isinstance(one, EqualTo | In):
            chosen = set(one.value) if isinstance(one, In) else {one.value}
            if name == "topic":
                self.topics = chosen if self.topics is None else self.topics & chosen
            else:
                self.numbers = chosen if self.numbers is None else self.numbers & chosen
            return True
        if name in self.low and self.source.view == "records" and value is not None:
            self._bound(one, name, _milliseconds(value) if isinstance(value, datetime) else value)
        return False

    def _bound(self, one: Filter, name: str, value: int) -> None:
        if isinstance(one, EqualTo | GreaterThan | GreaterThanOrEqual):
            self.low[name] = max(self.low[name], value)
        if isinstance(one, EqualTo | LessThan | LessThanOrEqual):
            self.high[name] = min(self.high[name], value)


def _milliseconds(value: datetime) -> int:
    if value.tzinfo is None:
        value = value.astimezone()
    since = value - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86400 + since.seconds) * 1000 + since.microseconds // 1000


class LogStreamReader(StreamReader):
    """Reads the directory as a stream."""

    def __init__(self, source: Source, schema: StructType) -> None:
        if source.view not in STREAMED:
            raise ValueError(f"kafka-log: the view {source.view} does not support streaming")
        read = replace(source.reading, must_exist=source.fail_on_data_loss)
        self.source, self.schema = replace(source, reading=read), to_arrow_schema(schema, timezone="UTC")
        super().__init__(source.offsets_per_trigger, source.fail_on_data_loss)

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:
        found = super().latestOffset(start, limit)
        read = {name.rpartition("-")[0] for name in Progress.of(start).offsets}
        unread = set(self.source.topics or ()) - read
        if unread:
            Directory(self.source.path).chosen(unread)  # one that was read may have been deleted
        return found

    def now(self) -> Progress:
        planner = Planner(self.source, passes_over=True)
        # ids first: the ends of a log that is made again must not get old ones
        found = Progress({}, planner.topic_ids(), {})
        for topic, number in planner.partitions():
            first, end = planner.first(topic, number), planner.end(topic, number)
            if first is not None and end >= 0:
                found.firsts[f"{topic}-{number}"], found.offsets[f"{topic}-{number}"] = first, end
        return found

    def starting_offset(self, name: str) -> int:
        topic, _, number = name.rpartition("-")
        return self.source.starting_offset(topic, int(number))

    def initialOffset(self) -> StreamOffset:
        planner, source, found = Planner(self.source), self.source, {}
        ids = planner.topic_ids()
        for topic, number in planner.partitions():
            segments, wanted = planner.directory.segments(topic, number), source.starting_offset(topic, number)
            if segments:
                snapshot = planner.snapshot(topic, number)
                earliest = min(one.base_offset for one in (segments[0], snapshot) if one is not None)
                found[f"{topic}-{number}"] = planner.end(topic, number) if wanted == LATEST else max(earliest, wanted)
        return Progress(found, ids, {}).offset()

    def partitions(self, start: StreamOffset, end: StreamOffset) -> list[Task]:
        planner, began, reached = Planner(self.source, passes_over=True), Progress.of(start), Progress.of(end)
        now = Progress({}, planner.topic_ids(), {})
        wanted = []
        for topic, number in planner.partitions():
            name = f"{topic}-{number}"
            first, behind = reached.first(began, name) or 0, reached.offsets.get(name, 0)
            is_other = now.is_other(reached, name)
            if self.fail_on_data_loss and behind > first:  # what is read again after a failure may have gone meanwhile
                there = planner.first(topic, number)
                if is_other:
                    raise ValueError(f"records are lost: {name} was made again, with another topic id")
                if there is not None and there > first:
                    raise ValueError(f"records are lost: {name} begins at offset {there}, and is read from {first}")
            if behind > first and not is_other:
                wanted.append((topic, number, Bounds(first, behind - 1, whole_batches=self.source.view == "batches")))
        return planner.tasks(wanted)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self.source, partition, self.schema)


class KafkaLog(DataSource):
    """`spark.read.format("kafka-log")`."""

    @classmethod
    def name(cls) -> str:
        return "kafka-log"

    def schema(self) -> str:
        return ddl(Source.of(self.options).view)

    def reader(self, schema: StructType) -> LogReader:
        source = Source.of(self.options)
        return (FilteredLogReader if source.pushdown else LogReader)(source, schema)

    def streamReader(self, schema: StructType) -> LogStreamReader:
        return LogStreamReader(Source.of(self.options), schema)
