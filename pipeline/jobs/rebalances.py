"""Owners of partitions over time, and the duration of rebalances: for classic, consumer, share and streams groups.

The records of a classic group contain the time when its members had joined (`startTime`) and the time when the
generation was complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues
from pyspark.sql.types import ArrayType, DataType, IntegerType, LongType, StringType, StructField, StructType

from ..plain import Row
from . import Input, NotThere, Plot, Report, topic_ids, uuid_text
from .timeline import Change, Rebalance, Timeline

_TYPES: dict[str, DataType] = {
    "group": StringType(),
    "kind": StringType(),
    "step": StringType(),
    "logOffset": LongType(),
    "timeMs": LongType(),
    "epoch": IntegerType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "owner": StringType(),
    "clientId": StringType(),
    "startMs": LongType(),
    "members": IntegerType(),
    "partitions": IntegerType(),
    "movedPartitions": IntegerType(),
}
STEPS = StructType([StructField(name, kind) for name, kind in _TYPES.items()])
_NOTHING = dict.fromkeys(STEPS.names)
STATE = "timeline string"
TOPIC = "__consumer_offsets"
ABOUT_GROUPS = "^GroupMetadata$|^(Consumer|Share|Streams)Group"  # types of records


def report(source: Input) -> Report:
    if not source.has(TOPIC):
        raise NotThere(f"{source.path} does not contain {TOPIC}: there were no groups")
    taken = _steps(source)
    topics = source.table("partitions").select("topic", "topicId")
    return Report(
        {
            "rebalances": source.lately(rebalances(taken), "endTime"),
            "ownership": source.lately(ownership(taken, topics), "toTime"),
        },
        plots=(
            Plot("Who owned what", "ownership", "timeline", "fromTime", "place", "memberId", "toTime"),
            Plot("Duration of rebalances, in ms", "rebalances", "scatter", "endTime", "durationMs", "group"),
        ),
    )


def _steps(source: Input) -> DataFrame:
    little = source.little("internal", **source.of_internal(TOPIC))
    if little is not None:
        return _timed(source.here(steps_here(little)))
    internal = source.internal(TOPIC)
    assert internal is not None
    return source.kept(steps(internal))


def records(internal: DataFrame) -> DataFrame:
    """Returns the records about members and assignments of groups, with their group."""
    group = f.coalesce(f.get_json_object("key", "$.group"), f.get_json_object("key", "$.group_id"))
    about = internal.where(f.col("type").rlike(ABOUT_GROUPS))
    return about.select(
        group.alias("group"), "partition", "offset", f.unix_millis("timestamp").alias("timeMs"), "type", "key", "value"
    )


def steps(internal: DataFrame) -> DataFrame:
    """Returns each change of an owner (`step` is owner) and each completed rebalance (rebalance), in batch."""
    one = f.struct("partition", "offset", "timeMs", "group", "type", "key", "value")
    grouped = records(internal).groupBy("group").agg(f.collect_list(one).alias("records"))
    # The only way to Python in a declarative pipeline without a schema in advance; Spark would ask too much of type
    # hints.
    taken = f.udf(lambda rows: _fed(Timeline(), rows), ArrayType(STEPS))
    return _timed(grouped.select(f.explode(taken("records")).alias("s")).select("s.*"))


def steps_here(internal: pa.Table) -> pa.Table:
    """Like `steps`, without Spark, and times in ms: for little, for which Spark would start Python."""
    of_group: dict[str | None, list[Row]] = {}
    for row in internal.select(["partition", "offset", "timestamp", "type", "key", "value"]).to_pylist():
        if re.search(ABOUT_GROUPS, row["type"] or "") and row["key"] is not None:
            key = json.loads(row["key"])
            group = key.get("group_id") if key.get("group") is None else key["group"]
            row |= {"group": group, "timeMs": round(row.pop("timestamp").timestamp() * 1000)}
            of_group.setdefault(group, []).append(row)
    found = [step for rows in of_group.values() for step in _fed(Timeline(), rows)]
    return pa.Table.from_pylist(found, schema=to_arrow_schema(STEPS))


def stream_of_steps(internal: DataFrame) -> DataFrame:
    """Like `steps`, for a stream of the view `internal`. Needs Spark's RocksDB state store."""
    return _timed(records(internal).groupBy("group").transformWithStateInPandas(Steps(), STEPS, "Append", "None"))


def _timed(steps: DataFrame) -> DataFrame:
    rest = [name for name in STEPS.names if not name.endswith("Ms")]
    return steps.select(
        *rest, f.timestamp_millis("timeMs").alias("time"), f.timestamp_millis("startMs").alias("startTime")
    )


def rebalances(steps: DataFrame) -> DataFrame:
    columns = (
        "group",
        "kind",
        "epoch",
        "startTime",
        "endTime",
        "durationMs",
        "members",
        "partitions",
        "movedPartitions",
    )
    rows = steps.where("step = 'rebalance'").withColumnRenamed("time", "endTime")
    return (
        rows.withColumn("durationMs", f.expr("unix_millis(endTime) - unix_millis(startTime)"))
        .select(*columns)
        .orderBy("endTime", "group")
    )


def ownership(steps: DataFrame, topics: DataFrame) -> DataFrame:
    """Returns from when to when members owned partitions; `toTime` is null if a member still does. `topics`: names of
    topic ids.
    """
    names = topic_ids(topics).withColumnRenamed("topic", "name")
    rows = steps.where("step = 'owner'").withColumn(
        "topicId", f.when(f.col("kind").isin("consumer", "share"), uuid_text("topic"))
    )
    rows = rows.join(f.broadcast(names), "topicId", "left").withColumn("topic", f.coalesce("name", "topic"))
    window = Window.partitionBy("group", "topic", "partition").orderBy("logOffset")
    rows = (
        rows.withColumn("toTime", f.lead("time").over(window))
        .withColumn("toEpoch", f.lead("epoch").over(window))
        .where("owner IS NOT NULL")
    )
    place = f.format_string("%s %s-%d", "group", "topic", "partition")
    return rows.select(
        "group", "kind", "topic", "partition", f.col("owner").alias("memberId"), "clientId",
        f.col("time").alias("fromTime"), "toTime",
        f.col("epoch").alias("fromEpoch"), "toEpoch", place.alias("place"),
    ).orderBy("group", "topic", "partition", "fromTime")  # fmt: skip


def _fed(timeline: Timeline, rows: list[Row]) -> list[dict[str, object]]:
    """Feeds the records of one group to a timeline, in log order; returns the steps."""
    found = []
    for row in sorted(rows, key=lambda one: (one["partition"], one["offset"])):
        key, value = (None if row[name] is None else json.loads(row[name]) for name in ("key", "value"))
        for step in timeline.feed(row["type"], key, value, row["timeMs"]):
            found.append(
                {**_NOTHING, "group": row["group"], "kind": timeline.kind, "logOffset": row["offset"], **_row(step)}
            )
    return found


def _row(step: Change | Rebalance) -> dict[str, object]:
    if isinstance(step, Change):
        return {
            "step": "owner", "timeMs": step.time_ms, "epoch": step.epoch, "topic": step.topic,
            "partition": step.partition,
            "owner": step.owner, "clientId": step.client_id,
        }  # fmt: skip
    return {
        "step": "rebalance", "timeMs": step.end_ms, "epoch": step.epoch, "startMs": step.start_ms,
        "members": step.members,
        "partitions": step.partitions, "movedPartitions": step.moved,
    }  # fmt: skip


class Steps(StatefulProcessor):
    """The timeline of a group as the state of a stream."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("timeline", STATE)

    def handleInputRows(
        self, key: object, rows: Iterator[pd.DataFrame], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        """The rows of a micro-batch arrive in any order, so they are sorted into log order first."""
        known = self.state.get()
        timeline = Timeline() if known is None else Timeline.loads(known[0])
        came = pd.concat(list(rows)).astype(object)
        found = _fed(timeline, came.where(came.notna(), None).to_dict("records"))
        self.state.update((timeline.dumps(),))
        yield pd.DataFrame(found, columns=STEPS.names)

    def close(self) -> None:
        """There is nothing to close besides the state."""
