"""Spark's data source `kafka-wire`: reads and writes topics of a running broker
of the Kafka protocol, without jars.

Rows that are read have the columns of the view `records` of `kafka-log`; columns that a client does not see are null.
Options:

    kafka.*              settings of librdkafka; kafka.bootstrap.servers is needed
    topic                names with commas; the topic to write to, if rows have no column `topic`
    isolation            read_committed or read_uncommitted
    startingOffsets, endingOffsets, maxOffsetsPerTrigger, failOnDataLoss   as those of `kafka-log`
    rowsPerSecond        of each task that writes; by default as fast as possible

Rows that are written have `value`, and may have `key`, `headers`, `topic`, `partition` and `timestamp`. They are
written in order, and acknowledged by all replicas before a task ends. A task that Spark repeats writes its rows again
(at least once).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict, cast

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from .columns import MICROSECONDS, TIME_MAX_MS
from .limits import Progress, StreamOffset, StreamReader
from .options import EARLIEST, ISOLATIONS, LATEST, is_set, number_of, offset_of, offsets_of, one_of
from .options import Offsets as WantedOffsets
from .views import ddl

ASK_S = 30.0  # how long to wait for replies of the broker
SILENCE_S = 60.0  # how long to wait for records
CONSUMED_AT_ONCE = 10_000
FLUSH_S = 0.5
PREFIX = "kafka."
WRITTEN = ("topic", "partition", "key", "value", "headers", "timestamp")


@dataclass(frozen=True)
class Broker:
    """The parsed options. Raises ValueError for an invalid one."""

    settings: dict[str, str]
    topics: tuple[str, ...]
    committed: bool
    starting_offsets: WantedOffsets
    ending_offsets: WantedOffsets
    offsets_per_trigger: int
    fail_on_data_loss: bool
    rows_per_second: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Broker:
        settings = {name[len(PREFIX) :]: value for name, value in options.items() if name.startswith(PREFIX)}
        if not settings.get("bootstrap.servers"):
            raise ValueError("kafka-wire needs the option `kafka.bootstrap.servers`")
        return cls(
            settings,
            tuple(name.strip() for name in options["topic"].split(",")) if options.get("topic") else (),
            one_of(options, "isolation", tuple(reversed(ISOLATIONS))) == "read_committed",
            offsets_of(options, "startingOffsets", "earliest"),
            offsets_of(options, "endingOffsets", "latest"),
            number_of(options, "maxOffsetsPerTrigger"),
            is_set(options, "failOnDataLoss", default=True),
            number_of(options, "rowsPerSecond"),
        )

    def consumer(self, out_of_range: str = "error") -> Consumer:
        """Returns a consumer without a group. `out_of_range`: what it does where its offset does not exist any more."""
        own = {"group.id": "kafka-wire", "enable.auto.commit": False, "enable.partition.eof": True, "log_level": 2}
        isolation = "read_committed" if self.committed else "read_uncommitted"
        return Consumer({**own, "isolation.level": isolation, "auto.offset.reset": out_of_range, **self.settings})

    def limits(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Returns the first and the end offset of each partition.
        Raises ValueError for a topic that does not exist; KafkaException.
        """
        if not self.topics:
            raise ValueError("kafka-wire needs the option `topic` to read")
        consumer = self.consumer()
        try:
            found = {}
            for topic in self.topics:
                described = consumer.list_topics(topic, ASK_S).topics[topic]
                if described.error is not None:
                    raise ValueError(f"kafka-wire: topic {topic}: {described.error.str()}")
                for partition in described.partitions:
                    low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), ASK_S)
                    found[topic, partition] = low, high
            return found
        finally:
            consumer.close()


class Header(TypedDict):
    """A header of a row."""

    key: str
    value: bytes | None


class Row(TypedDict, total=False):
    """A row to write: the columns of WRITTEN that the DataFrame has."""

    topic: str | None
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: list[Header] | None
    timestamp: datetime | None


@dataclass
class Range(InputPartition):
    """The offsets that one task reads, the last one excluded."""

    topic: str
    number: int
    first: int
    behind: int


def _read(broker: Broker, part: Range, schema: pa.Schema, out_of_range: str = "error") -> Iterator[pa.RecordBatch]:
    if part.first >= part.behind:
        return
    consumer = broker.consumer(out_of_range)
    try:
        consumer.assign([TopicPartition(part.topic, part.number, part.first)])
        heard = time.monotonic()
        while True:
            got = consumer.consume(CONSUMED_AT_ONCE, 0.2)
            mine, ended = _sorted_out(got, part)
            if mine:
                yield _batch(mine, schema)
            if ended or (got and consumer.position([TopicPartition(part.topic, part.number)])[0].offset >= part.behind):
                return
            heard = time.monotonic() if got else heard
            if time.monotonic() - heard > SILENCE_S:
                raise TimeoutError(f"kafka-wire: no data from {part.topic}-{part.number} for {SILENCE_S:.0f} s")
    finally:
        consumer.close()


def _sorted_out(got: list[Message], part: Range) -> tuple[list[Message], bool]:
    """Returns the records that belong to a range, and whether the range is complete. Raises KafkaException."""
    mine, ended = [], False
    for one in got:
        error = one.error()
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            ended = True  # read_committed consumers get the end of the partition at the last stable offset
        elif (one.offset() or 0) < part.behind:
            mine.append(one)
        else:
            ended = True
    return mine, ended


def _batch(rows: list[Message], schema: pa.Schema) -> pa.RecordBatch:
    made = []
    for field in schema:
        of = _COLUMNS.get(field.name)
        made.append(pa.nulls(len(rows), field.type) if of is None else pa.array([of(one) for one in rows], field.type))
    return pa.RecordBatch.from_arrays(made, schema=schema)


def _headers(one: Message) -> list[Header]:
    return [{"key": name, "value": value} for name, value in one.headers() or ()]


def _instant(one: Message) -> int | None:
    """Returns a timestamp in µs; None for one that does not fit."""
    milliseconds = one.timestamp()[1]
    return milliseconds * MICROSECONDS if abs(milliseconds) <= TIME_MAX_MS else None


def _size(data: bytes | None) -> int | None:
    return None if data is None else len(data)


_COLUMNS: dict[str, Callable[[Message], object]] = {
    "key": lambda one: one.key(),
    "value": lambda one: one.value(),
    "headers": _headers,
    "topic": lambda one: one.topic(),
    "partition": lambda one: one.partition(),
    "offset": lambda one: one.offset(),
    "timestamp": _instant,
    "timestampType": lambda one: one.timestamp()[0] - 1,
    "leaderEpoch": lambda one: one.leader_epoch(),
    "keySize": lambda one: _size(one.key()),
    "valueSize": lambda one: _size(one.value()),
}


class WireReader(DataSourceReader):
    """Reads the present content of the topics."""

    def __init__(self, broker: Broker, schema: StructType) -> None:
        self.broker, self.schema = broker, to_arrow_schema(schema, timezone="UTC")

    def partitions(self) -> list[Range]:
        found = []
        for (topic, partition), (low, high) in self.broker.limits().items():
            first = offset_of(self.broker.starting_offsets, topic, partition, EARLIEST)
            behind = offset_of(self.broker.ending_offsets, topic, partition, LATEST)
            ends = {EARLIEST: low, LATEST: high}
            found.append(Range(topic, partition, max(low, ends.get(first, first)), min(high, ends.get(behind, behind))))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        return _read(self.broker, partition, self.schema)


class WireStreamReader(StreamReader):
    """Reads the topics as a stream."""

    def __init__(self, broker: Broker, schema: StructType) -> None:
        self.broker, self.schema = broker, to_arrow_schema(schema, timezone="UTC")
        super().__init__(broker.offsets_per_trigger, broker.fail_on_data_loss)

    def now(self) -> Progress:
        limits = {f"{topic}-{partition}": of for (topic, partition), of in self.broker.limits().items()}
        return Progress(
            {name: high for name, (_, high) in limits.items()}, {}, {name: low for name, (low, _) in limits.items()}
        )

    def starting_offset(self, name: str) -> int:
        topic, _, number = name.rpartition("-")
        return offset_of(self.broker.starting_offsets, topic, int(number), EARLIEST)

    def initialOffset(self) -> StreamOffset:
        found: StreamOffset = {}
        for (topic, partition), (low, high) in self.broker.limits().items():
            name = f"{topic}-{partition}"
            wanted = self.starting_offset(name)
            found[name] = high if wanted == LATEST else max(low, wanted)
        return found

    def partitions(self, start: StreamOffset, end: StreamOffset) -> list[Range]:
        found, began, reached = [], Progress.of(start), Progress.of(end)
        for name, behind in reached.offsets.items():
            topic, _, number = name.rpartition("-")
            first = reached.first(began, name)
            found.append(Range(topic, int(number), OFFSET_BEGINNING if first is None else first, behind))
        return [one for one in found if one.first < one.behind]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        return _read(self.broker, partition, self.schema, "error" if self.fail_on_data_loss else "earliest")


class _Sender:
    """Produces the rows of one task."""

    def __init__(self, broker: Broker) -> None:
        self.producer = Producer({"enable.idempotence": True, "linger.ms": 5, "log_level": 2, **broker.settings})
        self.topic = broker.topics[0] if broker.topics else None
        self.rows_per_second = broker.rows_per_second
        self.sent = 0
        self.error: KafkaError | None = None

    def send(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Returns when all rows are acknowledged. Raises KafkaException; ValueError for a row without a topic."""
        began = time.monotonic()
        for batch in batches:
            names = [name for name in WRITTEN if name in batch.schema.names]
            for row in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
                self._one(cast("Row", dict(zip(names, row, strict=True))))
                if self.rows_per_second:
                    while (early := began + self.sent / self.rows_per_second - time.monotonic()) > 0:
                        self.producer.poll(min(early, FLUSH_S))
        while self.producer.flush(FLUSH_S) and self.error is None:
            continue
        self._check()

    def _one(self, row: Row) -> None:
        topic = row.get("topic") or self.topic
        if topic is None:
            raise ValueError("kafka-wire: give the option `topic`, or rows with a column `topic`")
        optional: dict[str, object] = {}
        partition, timestamp, headers = row.get("partition"), row.get("timestamp"), row.get("headers")
        if partition is not None:
            optional["partition"] = partition
        if timestamp is not None:
            optional["timestamp"] = round(timestamp.timestamp() * 1000)
        if headers:
            optional["headers"] = [(one["key"], one["value"]) for one in headers]
        while True:
            try:
                self.producer.produce(topic, row.get("value"), row.get("key"), on_delivery=self._delivered, **optional)
                break
            except BufferError:
                self.producer.poll(FLUSH_S)
        self.sent += 1
        if self.sent % 1000 == 0:
            self.producer.poll(0)
        self._check()

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self.error = self.error or error

    def _check(self) -> None:
        if self.error is not None:
            raise KafkaException(self.error)


class _Writes:
    """The write operations of a task."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        _Sender(self.broker).send(iterator)
        return WriterCommitMessage()


class WireWriter(_Writes, DataSourceArrowWriter):
    """Writes a DataFrame."""


class WireStreamWriter(_Writes, DataSourceStreamArrowWriter):
    """Writes a stream."""


class KafkaWire(DataSource):
    """`spark.read.format("kafka-wire")`."""

    @classmethod
    def name(cls) -> str:
        return "kafka-wire"

    def schema(self) -> str:
        return ddl("records")

    def reader(self, schema: StructType) -> WireReader:
        return WireReader(Broker.of(self.options), schema)

    def streamReader(self, schema: StructType) -> WireStreamReader:
        return WireStreamReader(Broker.of(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> WireWriter:
        return WireWriter(Broker.of(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> WireStreamWriter:
        return WireStreamWriter(Broker.of(self.options))
