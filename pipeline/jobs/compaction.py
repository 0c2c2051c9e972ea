"""What the log cleaner would keep if it ran now: the last record of each key, all that lies in the active segment or is not stable yet,
tombstones and markers whose time has not come. Batches that it empties and keeps for their producers' sake hold no records.
"""

from __future__ import annotations

import time

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from . import Input, NotThere, Plot, Report, configurations

RECORD_COLUMNS = "topic string, partition int, offset long, key binary, keySize int, valueSize int, control boolean, batchOffset long, position long"


def report(source: Input) -> Report:
    topics = compacted_topics(source)
    options = {} if topics is None else {"topic": ",".join(topics)}
    if topics is not None and not topics:
        raise NotThere(f"no topic of {source.path} is compacted")
    reader = source.spark.read.format("kafka-log").schema(RECORD_COLUMNS).options(path=source.path, mode="dropmalformed", **options)
    records = reader.load()
    stable = reader.option("isolation", "read_committed").load()
    marked = judged(records, stable, source.read("batches", **options), source.table("files"), source.table("partitions"), int(time.time() * 1000))
    marked = marked.cache()
    return Report(
        {"partitions": summary(marked), "keys": keys(marked)},
        plots=(Plot("Bytes of keys and values that the cleaner would take out", "partitions", "bar", "place", "removableBytes"),),
    )


def compacted_topics(source: Input) -> list[str] | None:
    """The topics with the policy compact, by the metadata; None where the directory has none, so that all are looked at."""
    metadata = source.internal("__cluster_metadata", committed=False)
    if metadata is None:
        return None
    rows = configurations(metadata).where("resource_type = 2 AND name = 'cleanup.policy'")
    named = rows.groupBy("resource_name").agg(f.max_by("value", "offset").alias("policy"))
    return sorted(row.resource_name for row in named.collect() if row.policy and "compact" in row.policy and source.has(row.resource_name))


def judged(records: DataFrame, stable: DataFrame, batches: DataFrame, files: DataFrame, partitions: DataFrame, now_ms: int) -> DataFrame:
    """Every record with `kept`. `stable`: the records again, as readers of committed records get them; `files` tells the active segment."""
    place = ["topic", "partition"]
    active = files.where("kind = 'log'").groupBy(*place).agg(f.max("baseOffset").alias("activeFrom"))
    ends = partitions.select(*place, "lastStableOffset").join(active, place)
    limits = ends.select(*place, f.least("activeFrom", "lastStableOffset").alias("limit"))
    window = Window.partitionBy(*place, "key")
    data = stable.join(f.broadcast(limits), place).where(f.col("offset") < f.col("limit"))
    newest = (
        data.where("key IS NOT NULL")
        .withColumn("last", f.max("offset").over(window))
        .where("offset = last")
        .select(*place, "offset", f.lit(True).alias("newest"))
    )
    horizon = batches.where("deleteHorizonMs IS NOT NULL").select(*place, f.col("baseOffset").alias("batchOffset"), "deleteHorizonMs")
    rows = records.join(f.broadcast(limits), place).join(newest, [*place, "offset"], "left").join(horizon, [*place, "batchOffset"], "left")
    outside = f.col("offset") >= f.col("limit")
    waits = f.col("deleteHorizonMs").isNull() | (f.col("deleteHorizonMs") > now_ms)
    has_value = f.col("valueSize") >= 0
    kept = outside | (f.col("control") & waits) | (~f.col("control") & f.coalesce("newest", f.lit(False)) & (has_value | waits))
    return rows.withColumn("kept", kept).drop("limit", "newest", "deleteHorizonMs")


def summary(judged: DataFrame) -> DataFrame:
    """A row for each partition: what is there and what would be left, in records and in bytes of keys and values."""
    size = f.greatest("keySize", f.lit(0)) + f.greatest(f.coalesce("valueSize", f.lit(-1)), f.lit(0))
    kept = f.col("kept").cast("long")
    rows = (
        judged.withColumn("size", size.cast("long"))
        .groupBy("topic", "partition")
        .agg(
            f.count("*").alias("records"),
            f.sum(kept).alias("keptRecords"),
            f.sum("size").alias("bytes"),
            f.sum(f.col("size") * kept).alias("keptBytes"),
        )
    )
    rows = rows.withColumn("removableBytes", f.expr("bytes - keptBytes")).withColumn("place", f.format_string("%s-%d", "topic", "partition"))
    return rows.orderBy("topic", "partition")


def keys(judged: DataFrame) -> DataFrame:
    """The 20 keys whose older records take the most room."""
    rows = judged.where("NOT kept AND key IS NOT NULL").groupBy("topic", "partition", f.col("key").cast("string").alias("key"))
    found = rows.agg(f.count("*").alias("records"), f.sum(f.greatest(f.coalesce("valueSize", f.lit(0)), f.lit(0)).cast("long")).alias("bytes"))
    return found.orderBy(f.col("bytes").desc(), "key").limit(20)
