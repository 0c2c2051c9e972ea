"""Spark's data source `kafka-log`: a broker's data directory as tables, in batch and as streams.

A schema of one's own is a projection: only its columns are made. Options, by the names of Spark's Kafka connector where it has them:

    path                 a data directory, or a URL that fsspec knows
    topic, partition     names and numbers with commas; all otherwise
    view                 records, batches or index
    isolation            read_uncommitted; or read_committed: neither markers, nor what was aborted, nor what is beyond the last stable offset
    startingOffsets      earliest, latest (streams only), a number, or {"topic": {"0": 23}} (-2 earliest, -1 latest)
    endingOffsets        latest, a number, or JSON as above; behind the last record wanted; not of streams
    startingTimestamp    in ms; the first one wanted. Not of streams
    endingTimestamp      in ms; behind the last one wanted. Not of streams
    maxOffsetsPerTrigger of streams
    verifyCrc            whether a wrong CRC is an error
    mode                 failfast, or dropmalformed: what cannot be read is left out
    minPartitions        about how many tasks read; twice the cores of this machine otherwise
    pushdown             true: filters on topic, partition, offset and timestamp choose files and batches. Spark up to 4.3.0 keeps the filters of
                         one query for the next one over the same DataFrame, whose rows then are wrong: for a DataFrame that is used once
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
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
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from . import columns, reading
from .directory import FIRST, LAST, SLICE_BYTES_MIN, Bounds, Directory, Segment, Slice, packed

VIEWS = {"records": columns.RECORDS, "batches": columns.BATCHES, "index": columns.INDEX}
TASKS_PER_CORE = 2
EARLIEST, LATEST = -2, -1
ISOLATIONS = ("read_uncommitted", "read_committed")
MODES = ("failfast", "dropmalformed")


@dataclass
class Task(InputPartition):
    """What one task reads."""

    slices: list[Slice]
    segments: list[Segment]


@dataclass(frozen=True)
class Source:
    """The options, understood. ValueError for one that is not."""

    path: str
    topics: tuple[str, ...] | None
    view: str
    committed: bool
    reading: reading.Options
    tasks: int
    numbers: tuple[int, ...] | None
    starting_offsets: Any
    ending_offsets: Any
    timestamps: tuple[int, int]
    offsets_per_trigger: int
    pushdown: bool

    @classmethod
    def of(cls, options: Any) -> Source:
        if not options.get("path"):
            raise ValueError("kafka-log needs the option `path`: a broker's data directory")
        topics = options.get("topic")
        return cls(
            options["path"],
            tuple(name.strip() for name in topics.split(",")) if topics else None,
            _one_of(options, "view", tuple(VIEWS)),
            _one_of(options, "isolation", ISOLATIONS) == "read_committed",
            reading.Options(
                verify_crc=_one_of(options, "verifyCrc", ("false", "true")) == "true",
                skip_broken=_one_of(options, "mode", MODES) == "dropmalformed",
            ),
            _number(options, "minPartitions") or TASKS_PER_CORE * (os.cpu_count() or 1),
            tuple(_whole("partition", one.strip()) for one in options["partition"].split(",")) if options.get("partition") else None,
            _offsets(options, "startingOffsets", "earliest"),
            _offsets(options, "endingOffsets", "latest"),
            (_number(options, "startingTimestamp", FIRST), _number(options, "endingTimestamp", LAST + 1) - 1),
            _number(options, "maxOffsetsPerTrigger"),
            _one_of(options, "pushdown", ("false", "true")) == "true",
        )

    def starting_offset(self, topic: str, partition: int) -> int:
        """The first offset that is wanted of a partition, EARLIEST or LATEST."""
        return _offset_of(self.starting_offsets, topic, partition, EARLIEST)

    def ending_offset(self, topic: str, partition: int) -> int:
        """The offset behind the last one wanted, EARLIEST or LATEST."""
        return _offset_of(self.ending_offsets, topic, partition, LATEST)


def _offset_of(offsets: Any, topic: str, partition: int, default: int) -> int:
    return offsets if isinstance(offsets, int) else int(offsets.get(topic, {}).get(str(partition), default))


def _one_of(options: Any, name: str, allowed: tuple[str, ...]) -> str:
    value: str = options.get(name, allowed[0]).lower()
    if value not in allowed:
        raise ValueError(f"kafka-log: {name} is one of {', '.join(allowed)}, not {value!r}")
    return value


def _whole(name: str, value: str) -> int:
    if not value.isdecimal():
        raise ValueError(f"kafka-log: {name} is a number, not {value!r}")
    return int(value)


def _number(options: Any, name: str, default: int = 0) -> int:
    return _whole(name, options[name]) if options.get(name) else default


def _offsets(options: Any, name: str, default: str) -> Any:
    """A number for all partitions, or a dict of topics with dicts of partitions."""
    value = options.get(name) or default
    named = {"earliest": EARLIEST, "latest": LATEST}.get(value.lower())
    if named is not None:
        return named
    if not value.startswith("{"):
        return _whole(name, value)
    try:
        found = json.loads(value)
        return {str(topic): {str(int(number)): int(offset) for number, offset in of.items()} for topic, of in found.items()}
    except (ValueError, AttributeError, TypeError):
        raise ValueError(f'kafka-log: {name} is a number or like {{"topic": {{"0": 23}}}}, not {value!r}') from None


class Planner:
    """What of a directory is to be read, cut into tasks."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.directory = Directory(source.path)

    def partitions(self, topics: set[str] | None = None, numbers: set[int] | None = None) -> Iterator[tuple[str, int]]:
        for topic, partition in self.directory.chosen(self.source.topics):
            if self.source.numbers is not None and partition not in self.source.numbers:
                continue
            if (topics is None or topic in topics) and (numbers is None or partition in numbers):
                yield topic, partition

    def tasks(self, wanted: Iterable[tuple[str, int, Bounds]]) -> list[Task]:
        """Tasks with about the same number of bytes each; at least one, which may have nothing to do."""
        found = [(self.directory.segments(topic, partition), bounds) for topic, partition, bounds in wanted]
        if self.source.view == "index":
            return [Task([], segments) for segments, _ in found if segments] or [Task([], [])]
        total = sum(one.size for segments, _ in found for one in segments)
        slice_bytes = max(SLICE_BYTES_MIN, total // self.source.tasks)
        slices: list[Slice] = []
        for segments, bounds in found:
            aborted = self.directory.aborted(segments) if self.source.committed else None
            slices += self.directory.slices(segments, bounds, slice_bytes, aborted)
        return [Task(one, []) for one in packed(slices, self.source.tasks)] or [Task([], [])]

    def end(self, topic: str, partition: int) -> int:
        return (self.directory.last_stable_offset if self.source.committed else self.directory.end_offset)(topic, partition)


def _read(source: Source, task: Any, schema: Any) -> Iterator[Any]:
    if not task.slices and not task.segments:
        return
    directory = Directory(source.path)
    for segment in task.segments:
        yield reading.index_rows(directory, segment, schema)
    view = reading.batches if source.view == "batches" else reading.records
    for part in task.slices:
        yield from view(directory, part, schema, source.reading)


class LogReader(DataSourceReader):
    """A read of the directory as it is now."""

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

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(self.source, partition, self.schema)


class FilteredLogReader(LogReader):
    """The same, with the filters of the one query that is made of it."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Topics and partitions choose files; offsets and timestamps choose batches, and Spark looks at the records again."""
        for one in filters:
            if not self._pushed(one):
                yield one

    def _pushed(self, one: Filter) -> bool:
        name, value = getattr(one, "attribute", ("",))[0], getattr(one, "value", None)
        if name in ("topic", "partition") and isinstance(one, EqualTo | In):
            chosen: set[Any] = set(one.value) if isinstance(one, In) else {value}
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


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The directory as a stream. An offset of it is where each partition, `topic-number`, goes on."""

    def __init__(self, source: Source, schema: StructType) -> None:
        if source.view == "index":
            raise ValueError("kafka-log: the view index cannot be streamed")
        self.source, self.schema = source, to_arrow_schema(schema, timezone="UTC")
        self.until: dict[str, int] | None = None

    def _ends(self) -> dict[str, int]:
        planner = Planner(self.source)
        found = {f"{topic}-{number}": planner.end(topic, number) for topic, number in planner.partitions()}
        return {name: end for name, end in found.items() if end >= 0}

    def initialOffset(self) -> dict[str, int]:
        planner, source, found = Planner(self.source), self.source, {}
        for topic, number in planner.partitions():
            segments, wanted = planner.directory.segments(topic, number), source.starting_offset(topic, number)
            if segments:
                earliest = segments[0].base_offset
                found[f"{topic}-{number}"] = planner.end(topic, number) if wanted == LATEST else max(earliest, wanted)
        return found

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self.source.offsets_per_trigger
        return ReadMaxRows(most) if most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self.until = self._ends()

    def reportLatestOffset(self) -> dict[str, int]:
        return self._ends()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """As far as the limit lets it: what a partition has not got, others may use."""
        ends = {**start, **(self._ends() if self.until is None else self.until)}
        if not isinstance(limit, ReadMaxRows):
            return ends
        left, found = limit.max_rows, dict(ends)
        waiting = sorted(ends, key=lambda name: ends[name] - start.get(name, 0))
        for number, name in enumerate(waiting):
            begin = start.get(name, 0)
            taken = max(0, min(ends[name] - begin, -(-left // (len(waiting) - number))))
            found[name] = begin + taken
            left -= taken
        return found

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Task]:
        planner = Planner(self.source)
        wanted = []
        for topic, number in planner.partitions():
            name = f"{topic}-{number}"
            first, behind = start.get(name, 0), end.get(name, 0)
            if behind > first:
                wanted.append((topic, number, Bounds(first, behind - 1, whole_batches=self.source.view == "batches")))
        return planner.tasks(wanted)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(self.source, partition, self.schema)


class KafkaLog(DataSource):
    """`spark.read.format("kafka-log")`."""

    @classmethod
    def name(cls) -> str:
        return "kafka-log"

    def schema(self) -> str:
        return VIEWS[Source.of(self.options).view]

    def reader(self, schema: StructType) -> LogReader:
        source = Source.of(self.options)
        return (FilteredLogReader if source.pushdown else LogReader)(source, schema)

    def streamReader(self, schema: StructType) -> LogStreamReader:
        return LogStreamReader(Source.of(self.options), schema)
