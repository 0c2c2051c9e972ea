"""Who owned which partition and when, and how long rebalances took: for classic, consumer, share and streams groups.

Of a classic group the log tells when a generation was complete, and when its members had joined: `startTime` is that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, DataType, IntegerType, LongType, StringType, StructField, StructType

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


def report(source: Input) -> Report:
    internal = source.internal("__consumer_offsets")
    if internal is None:
        raise NotThere(f"no __consumer_offsets in {source.path}: no group was coordinated there")
    taken = source.kept(steps(internal))
    topics = source.table("partitions").select("topic", "topicId")
    return Report(
        {"rebalances": source.lately(rebalances(taken), "endTime"), "ownership": source.lately(ownership(taken, topics), "toTime")},
        plots=(
            Plot("Who owned what", "ownership", "timeline", "fromTime", "place", "memberId", "toTime"),
            Plot("How long rebalances took, ms", "rebalances", "scatter", "endTime", "durationMs", "group"),
        ),
    )


def records(internal: DataFrame) -> DataFrame:
    """The records about groups' members and assignments, with the group that each is of."""
    group = f.coalesce(f.get_json_object("key", "$.group"), f.get_json_object("key", "$.group_id"))
    about = internal.where("type = 'GroupMetadata' OR type RLIKE '^(Consumer|Share|Streams)Group'")
    return about.select(group.alias("group"), "partition", "offset", f.unix_millis("timestamp").alias("timeMs"), "type", "key", "value")


def steps(internal: DataFrame) -> DataFrame:
    """Each change of an owner (`step` is owner) and each rebalance that came to its end (rebalance), in batch."""
    one = f.struct("partition", "offset", "timeMs", "group", "type", "key", "value")
    grouped = records(internal).groupBy("group").agg(f.collect_list(one).alias("records"))
    # Of a declarative pipeline's ways to Python this is the one that needs no schema beforehand; of type hints Spark would ask too much.
    taken = f.udf(lambda rows: _fed(Timeline(), rows), ArrayType(STEPS))
    return _timed(grouped.select(f.explode(taken("records")).alias("s")).select("s.*"))


def stream_of_steps(internal: DataFrame) -> DataFrame:
    """As `steps`, of a stream of the view `internal`. Needs Spark's RocksDB state store."""
    return _timed(records(internal).groupBy("group").transformWithStateInPandas(Steps(), STEPS, "Append", "None"))


def _timed(steps: DataFrame) -> DataFrame:
    rest = [name for name in STEPS.names if not name.endswith("Ms")]
    return steps.select(*rest, f.timestamp_millis("timeMs").alias("time"), f.timestamp_millis("startMs").alias("startTime"))


def rebalances(steps: DataFrame) -> DataFrame:
    columns = ("group", "kind", "epoch", "startTime", "endTime", "durationMs", "members", "partitions", "movedPartitions")
    rows = steps.where("step = 'rebalance'").withColumnRenamed("time", "endTime")
    return rows.withColumn("durationMs", f.expr("unix_millis(endTime) - unix_millis(startTime)")).select(*columns).orderBy("endTime", "group")


def ownership(steps: DataFrame, topics: DataFrame) -> DataFrame:
    """From when to when a member owned a partition; without `toTime` it still does. `topics`: names of topic ids."""
    names = topic_ids(topics).withColumnRenamed("topic", "name")
    rows = steps.where("step = 'owner'").withColumn("topicId", f.when(f.col("kind").isin("consumer", "share"), uuid_text("topic")))
    rows = rows.join(f.broadcast(names), "topicId", "left").withColumn("topic", f.coalesce("name", "topic"))
    window = Window.partitionBy("group", "topic", "partition").orderBy("logOffset")
    rows = rows.withColumn("toTime", f.lead("time").over(window)).withColumn("toEpoch", f.lead("epoch").over(window)).where("owner IS NOT NULL")
    place = f.format_string("%s %s-%d", "group", "topic", "partition")
    return rows.select(
        "group", "kind", "topic", "partition", f.col("owner").alias("memberId"), "clientId", f.col("time").alias("fromTime"), "toTime",
        f.col("epoch").alias("fromEpoch"), "toEpoch", place.alias("place"),
    ).orderBy("group", "topic", "partition", "fromTime")  # fmt: skip


def _fed(timeline: Timeline, rows: list[Any]) -> list[dict[str, Any]]:
    """What the records of one group make of a timeline, in the order of its log."""
    found = []
    for row in sorted(rows, key=lambda one: (one["partition"], one["offset"])):
        key, value = (None if row[name] is None else json.loads(row[name]) for name in ("key", "value"))
        for step in timeline.feed(row["type"], key, value, row["timeMs"]):
            found.append({**_NOTHING, "group": row["group"], "kind": timeline.kind, "logOffset": row["offset"], **_row(step)})
    return found


def _row(step: Change | Rebalance) -> dict[str, Any]:
    if isinstance(step, Change):
        return {
            "step": "owner", "timeMs": step.time_ms, "epoch": step.epoch, "topic": step.topic, "partition": step.partition,
            "owner": step.owner, "clientId": step.client_id,
        }  # fmt: skip
    return {
        "step": "rebalance", "timeMs": step.end_ms, "epoch": step.epoch, "startMs": step.start_ms, "members": step.members,
        "partitions": step.partitions, "movedPartitions": step.moved,
    }  # fmt: skip


class Steps(StatefulProcessor):
    """A group's timeline as the state of a stream."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("timeline", STATE)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """The rows of a part of the stream come in any order, so they are put into that of the log first."""
        known = self.state.get()
        timeline = Timeline() if known is None else Timeline.loads(known[0])
        came = pd.concat(list(rows)).astype(object)
        found = _fed(timeline, came.where(came.notna(), None).to_dict("records"))
        self.state.update((timeline.dumps(),))
        yield pd.DataFrame(found, columns=STEPS.names)

    def close(self) -> None:
        """Nothing is held beside the state."""
