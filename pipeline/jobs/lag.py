"""The lag of consumer groups: by their last commits, as `kafka-consumer-groups --describe` shows it, and at the time of
each commit.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from . import Input, NotThere, Plot, Report

KEY = "`group` string, topic string, partition int"
VALUE = "offset long, leader_epoch int, metadata string, commit_timestamp long"


def report(source: Input) -> Report:
    internal = source.internal("__consumer_offsets")
    if internal is None:
        raise NotThere(f"{source.path} does not contain __consumer_offsets: no group committed offsets")
    made = commits(internal)
    past = source.lately(history(made, source.read("batches")), "commitTime")
    plot = Plot("Lag of consumer groups, in records", "history", "line", "commitTime", "lag", "place")
    return Report({"lag": lag(made, source.table("partitions")), "history": past}, plots=(plot,))


def commits(internal: DataFrame) -> DataFrame:
    """Returns every commit that is still in `__consumer_offsets`; the offset is null if it was deleted or expired."""
    rows = internal.where("type IN ('OffsetCommit', 'LegacyOffsetCommit')")
    rows = rows.select(
        "partition", "offset", "timestamp", f.from_json("key", KEY).alias("k"), f.from_json("value", VALUE).alias("v")
    )
    return rows.select(
        f.col("k.group").alias("group"),
        f.col("k.topic").alias("topic"),
        f.col("k.partition").alias("partition"),
        f.col("v.offset").alias("committedOffset"),
        f.col("v.leader_epoch").alias("leaderEpoch"),
        f.col("v.metadata").alias("metadata"),
        f.coalesce(f.timestamp_millis("v.commit_timestamp"), "timestamp").alias("commitTime"),
        f.col("partition").alias("coordinator"),
        f.col("offset").alias("logOffset"),
    )


def current(commits: DataFrame) -> DataFrame:
    """Returns the last commits."""
    window = Window.partitionBy("group", "topic", "partition").orderBy(f.col("logOffset").desc())
    rows = commits.withColumn("n", f.row_number().over(window)).where("n = 1 AND committedOffset IS NOT NULL")
    return rows.select("group", "topic", "partition", "committedOffset", "leaderEpoch", "metadata", "commitTime")


def lag(commits: DataFrame, partitions: DataFrame) -> DataFrame:
    """Returns a row per group and partition; the log end is null if the partition was deleted."""
    ends = partitions.select("topic", "partition", f.col("endOffset").alias("logEndOffset"))
    rows = (
        current(commits)
        .join(ends, ["topic", "partition"], "left")
        .withColumn("lag", f.expr("logEndOffset - committedOffset"))
    )
    columns = (
        "group",
        "topic",
        "partition",
        "committedOffset",
        "logEndOffset",
        "lag",
        "commitTime",
        "leaderEpoch",
        "metadata",
    )
    return rows.select(*columns).orderBy("group", "topic", "partition")


def history(commits: DataFrame, batches: DataFrame) -> DataFrame:
    """Returns a row per commit, with the log end at that time by the timestamps of the records."""
    written = batches.where("magic >= 0 AND NOT control").select(
        "topic",
        "partition",
        f.col("maxTimestamp").alias("time"),
        (f.col("lastOffset") + 1).alias("end"),
        f.lit(0).alias("after"),
    )
    made = commits.where("committedOffset IS NOT NULL").select(
        "topic", "partition", f.col("commitTime").alias("time"), "group", "committedOffset"
    )
    both = written.unionByName(made.withColumn("after", f.lit(1)), allowMissingColumns=True)
    window = Window.partitionBy("topic", "partition").orderBy("time", "after")
    rows = both.withColumn("logEndOffset", f.coalesce(f.max("end").over(window), f.lit(0))).where("after = 1")
    rows = rows.select(
        "group", "topic", "partition", f.col("time").alias("commitTime"), "committedOffset", "logEndOffset"
    )
    rows = rows.withColumn("lag", f.greatest(f.lit(0), f.expr("logEndOffset - committedOffset")))
    place = f.format_string("%s %s-%d", "group", "topic", "partition")
    return rows.withColumn("place", place).orderBy("commitTime", "group", "topic", "partition")
