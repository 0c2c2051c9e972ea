"""The differences between two request logs, or between the records of two data directories, field by field.

Request logs are aligned by client and API: the n-th request of a client for an API with that of the other log, and its
reply with the other's reply. Records are aligned by topic, partition and offset.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from ..files import is_directory
from ..views import RECORDS
from . import Report

FIELDS = (
    "timestamp",
    "timestampType",
    "key",
    "value",
    "headers",
    "producerEpoch",
    "sequence",
    "transactional",
    "control",
    "leaderEpoch",
)
PLACE = ("topic", "partition", "offset")
MILLISECONDS = "timestampMs"
WHERE = ("client", "api", "direction", "number")
FLAT = "client string, api string, direction string, version int, line long, field string, value string"
_FLAT = pa.schema(
    [("client", pa.string()), ("api", pa.string()), ("direction", pa.string()), ("version", pa.int32()), ("line",
    pa.int64()),
     ("field", pa.string()), ("value", pa.string())]
)  # fmt: skip


def report(
    spark: SparkSession, left: str, right: str, ignored: Iterable[str] = (), topics: str | None = None
) -> Report:
    """Returns the differences between two paths, which are both directories or both files."""
    if not is_directory(left):
        return _report(of_logs(messages(spark, left), messages(spark, right), ignored))
    options = {} if topics is None else {"topic": topics}
    kinds = {one.name: one.kind for one in RECORDS}
    columns = ", ".join([f"{one} {kinds[one]}" for one in (*PLACE, *FIELDS)] + [f"{MILLISECONDS} long"])
    one, other = (
        spark.read.format("kafka-log").schema(columns).options(path=path, mode="dropmalformed", **options).load()
        for path in (left, right)
    )
    return _report(of_records(one, other, ignored))


def _report(differences: DataFrame) -> Report:
    """Very many are shown in part, and counted."""
    cached = differences.cache()
    return Report({"differences": cached}, findings="differences", kept=(cached,))


def of_records(left: DataFrame, right: DataFrame, ignored: Iterable[str] = ()) -> DataFrame:
    """Returns a row for each field that differs between records of the same offset; `field` is `record` if one side
    lacks the record. With the column `timestampMs` on both sides, timestamps that Spark's type cannot hold differ, too.
    """
    fields = [name for name in FIELDS if name not in set(ignored)]
    exact = [MILLISECONDS] if all(MILLISECONDS in one.columns for one in (left, right)) else []

    def side(frame: DataFrame, name: str) -> DataFrame:
        return frame.select(*PLACE, f.struct(*fields, *exact).alias(name))

    def difference(name: str) -> Column:
        compared = exact[0] if exact and name == "timestamp" else name
        texts = [_text(side, name, bool(exact)).alias(to) for side, to in (("l", "left"), ("r", "right"))]
        differs = ~f.col(f"l.{compared}").eqNullSafe(f.col(f"r.{compared}"))
        return f.when(differs, f.struct(f.lit(name).alias("field"), *texts))

    rows = side(left, "l").join(side(right, "r"), list(PLACE), "full")
    alone = f.col("l").isNull() | f.col("r").isNull()
    there = f.struct(
        f.lit("record").alias("field"),
        f.when(f.col("l").isNotNull(), f.lit("there")).alias("left"),
        f.when(f.col("r").isNotNull(), f.lit("there")).alias("right"),
    )
    differ = f.array_compact(f.array(*map(difference, fields)))
    found = rows.select(*PLACE, f.explode(f.when(alone, f.array(there)).otherwise(differ)).alias("d"))
    return found.select(*PLACE, "d.*").orderBy(*PLACE, "field")


def _text(side: str, name: str, is_exact: bool) -> Column:
    """Returns a value as text. Texts of values that differ may be equal: those of bytes and their hexadecimal form."""
    value = f.col(f"{side}.{name}")
    if name in ("key", "value"):
        return f.when(f.is_valid_utf8(value), value.cast("string")).otherwise(f.concat(f.lit("0x"), f.hex(value)))
    if name == "headers":
        pairs = f.transform(
            value, lambda h: f.concat(h["key"], f.lit("="), f.coalesce(f.hex(h["value"]), f.lit("null")))
        )
        return f.concat_ws(" ", pairs)
    if name == "timestamp" and is_exact:
        return f.coalesce(value.cast("string"), f.concat(f.col(f"{side}.{MILLISECONDS}"), f.lit(" ms")))
    return value.cast("string")


def messages(spark: SparkSession, path: str) -> DataFrame:
    """Returns a request log as one row per field of each message. Raises ValueError for a line that is not of
    format 1.
    """
    lines = spark.read.text(path).withColumn("line", f.monotonically_increasing_id())
    return lines.mapInArrow(_flattened, FLAT)


def of_logs(left: DataFrame, right: DataFrame, ignored: Iterable[str] = ()) -> DataFrame:
    """Returns a row for each field that differs. `ignored`: names of fields, at any depth, that may differ."""
    unwanted = "|".join(ignored)
    sides = []
    for frame in (left, right):
        order = Window.partitionBy("client", "api", "direction").orderBy("line")
        numbered = frame.withColumn("number", f.dense_rank().over(order))
        if unwanted:
            numbered = numbered.where(~f.col("field").rlike(rf"(^|\.)({unwanted})(\[\d+\])?($|\.|\[)"))
        sides.append(numbered.select(*WHERE, "field", "value"))
    one, other = sides
    place = (*WHERE, "field")
    same = [one[name].eqNullSafe(other[name]) for name in place]  # a client may have no name
    named = [f.coalesce(one[name], other[name]).alias(name) for name in place]
    rows = one.join(other, same, "full").select(*named, one["value"].alias("left"), other["value"].alias("right"))
    return rows.where(~f.col("left").eqNullSafe(f.col("right"))).orderBy(*WHERE, "field")


def _flattened(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        found: dict[str, list[object]] = {name: [] for name in _FLAT.names}
        for text, line in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            try:
                entry = json.loads(text)
                head = entry["client_id"], entry["api"], entry["direction"], entry["version"], line
                fields = [("version", str(entry["version"])), *flat(entry["message"])]
            except (ValueError, KeyError, TypeError):
                raise ValueError(f"this line is not from a request log: {text[:80]}") from None
            for name, value in fields:
                for column, cell in zip(_FLAT.names, (*head, name, value), strict=True):
                    found[column].append(cell)
        yield pa.RecordBatch.from_pydict(found, schema=_FLAT)


def flat(value: object, path: str = "") -> Iterator[tuple[str, str | None]]:
    """Yields the leaves of a message with their paths, such as `topics[0].name`;
    empty lists and objects are leaves too.
    """
    if isinstance(value, dict) and value:
        for name, one in value.items():
            yield from flat(one, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for index, one in enumerate(value):
            yield from flat(one, f"{path}[{index}]")
    else:
        yield path, None if value is None else value if isinstance(value, str) else json.dumps(value)
