"""What the log cleaner would keep if it ran now: the last record of each key, all that lies in the active segment, is not stable yet or is
younger than `min.compaction.lag.ms` of its topic, tombstones and markers whose time has not come. Batches that it empties and keeps for their
producers' sake hold no records. The broker's own `log.cleaner.min.compaction.lag.ms` is not in its data directory, and counts as 0.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from ...coordinator.metadata.format import CLUSTER_METADATA
from . import Input, NotThere, Plot, Report, configurations

RECORD_COLUMNS = "topic string, partition int, offset long, key binary, keySize int, valueSize int, control boolean, batchOffset long, position long"


def report(source: Input) -> Report:
    metadata = source.internal(CLUSTER_METADATA, committed=False)
    options = {} if metadata is None else {"topic": ",".join(compacted_topics(source, metadata))}
    if metadata is not None and not options["topic"]:
        raise NotThere(f"no topic of {source.path} is compacted")
    reader = source.spark.read.format("kafka-log").schema(RECORD_COLUMNS).options(path=source.path, mode="dropmalformed", **options)
    records = reader.load()
    stable = reader.option("isolation", "read_committed").load()
    batches, waits = source.read("batches", **options), None if metadata is None else lags(metadata)
    cleanable = limits(batches, source.table("files"), source.table("partitions"), waits, source.now_ms)
    marked = source.kept(judged(records, stable, batches, cleanable, source.now_ms))
    return Report(
        {"partitions": summary(marked), "keys": keys(marked)},
        plots=(Plot("Bytes of keys and values that the cleaner would take out", "partitions", "bar", "place", "removableBytes"),),
    )


def compacted_topics(source: Input, metadata: DataFrame) -> list[str]:
    """The topics of a directory with the policy compact, by the metadata."""
    rows = configured(metadata, "cleanup.policy").collect()
    return sorted(row.topic for row in rows if row.value and "compact" in row.value and source.has(row.topic))


def lags(metadata: DataFrame) -> DataFrame:
    """`min.compaction.lag.ms` of the topics that have it: topic, lagMs."""
    return configured(metadata, "min.compaction.lag.ms").where("value IS NOT NULL").selectExpr("topic", "bigint(value) AS lagMs")


def configured(metadata: DataFrame, name: str) -> DataFrame:
    """What topics are configured to by now: topic, value, which is null where that was taken back."""
    rows = configurations(metadata).where((f.col("resource_type") == 2) & (f.col("name") == name))
    return rows.groupBy(f.col("resource_name").alias("topic")).agg(f.max_by("value", "offset").alias("value"))


def limits(batches: DataFrame, files: DataFrame, partitions: DataFrame, lags: DataFrame | None, now_ms: int) -> DataFrame:
    """Up to where each partition can be cleaned, `limit`: to its active segment, its last stable offset, its first segment that is too young."""
    place = ["topic", "partition"]
    active = files.where("kind = 'log'").groupBy(*place).agg(f.max("baseOffset").alias("activeFrom"))
    ends = partitions.select(*place, "lastStableOffset", "cleanedOffset").join(active, place)
    if lags is None:
        return ends.selectExpr(*place, "least(activeFrom, lastStableOffset) AS limit")
    segments = batches.where("magic >= 0").groupBy(*place, "segment").agg(f.max("maxTimestamp").alias("youngest"), f.max("lastOffset").alias("last"))
    dirty = segments.join(f.broadcast(ends), place).where("last >= coalesce(cleanedOffset, 0)").join(f.broadcast(lags), "topic")
    young = dirty.where(f"unix_millis(youngest) > {now_ms} - lagMs AND lagMs > 0")
    from_ = young.groupBy(*place).agg(f.expr("min(bigint(substring(segment, 1, 20))) AS youngFrom"))
    return ends.join(f.broadcast(from_), place, "left").selectExpr(*place, "least(activeFrom, lastStableOffset, youngFrom) AS limit")


def judged(records: DataFrame, stable: DataFrame, batches: DataFrame, limits: DataFrame, now_ms: int) -> DataFrame:
    """Every record with `kept`. `stable`: the records again, as readers of committed records get them."""
    place = ["topic", "partition"]
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
