"""What the log cleaner would keep if it ran now.

It keeps the last record of each key; records in the active segment, records that are not stable, and records younger
than `min.compaction.lag.ms` of their topic; tombstones and markers until their deadline. Batches that it empties and
keeps for the sequences of their producers contain no records. For topics without their own lag
`log.cleaner.min.compaction.lag.ms` counts, as in the metadata. If it is set only in the broker's properties, pass it in
`Input.settings`; else Kafka's default, 0, is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from ...coordinator.metadata.format import CLUSTER_METADATA
from ...coordinator.metadata.state import BROKER, TOPIC, MetadataState
from ...protocol import messages
from ...storage import layout
from ...storage.checkpoints import decode_properties
from ..files import Files
from . import Input, NotThere, Plot, Report

RECORD_COLUMNS = (
    "topic string, partition int, offset long, key binary, keySize int, valueSize int, control boolean, "
    "batchOffset long, position long"
)
POLICY, LAG, BROKER_LAG = "cleanup.policy", "min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"
ALL_BROKERS = ""  # the resource name for all brokers


def report(source: Input) -> Report:
    policies = policies_of(source)
    if policies is not None and not policies.compacted:
        raise NotThere(f"{source.path} contains no compacted topic")
    options = {} if policies is None else {"topic": ",".join(policies.compacted)}
    reader = (
        source.spark.read.format("kafka-log")
        .schema(RECORD_COLUMNS)
        .options(path=source.path, mode="dropmalformed", **options)
    )
    records = reader.load()
    stable = reader.option("isolation", "read_committed").load()
    batches, lags = source.read("batches", **options), policies or Policies([], {}, source.setting_ms(BROKER_LAG, 0))
    cleanable = limits(batches, source.table("files"), source.table("partitions"), lags, source.now_ms)
    marked = source.kept(judged(records, stable, batches, cleanable, source.now_ms))
    return Report(
        {"partitions": summary(marked), "keys": keys(marked)},
        plots=(
            Plot(
                "Bytes of keys and values that the cleaner would remove", "partitions", "bar", "place", "removableBytes"
            ),
        ),
    )


class Policies(NamedTuple):
    """Which topics are compacted, the lag of those that configure one, and the lag of all others."""

    compacted: list[str]
    lags_ms: dict[str, int]
    other_lag_ms: int


def policies_of(source: Input) -> Policies | None:
    """Returns the policies from the metadata; None if the directory has none."""
    metadata = source.internal(CLUSTER_METADATA, committed=False)
    if metadata is None:
        return None
    rows = (
        metadata.where("type IN ('ConfigRecord', 'TopicRecord', 'RemoveTopicRecord')")
        .select("offset", "type", "value")
        .collect()
    )
    values = configured((row.type, json.loads(row.value)) for row in sorted(rows, key=lambda row: row.offset))
    topics = {name: own for (kind, name), own in values.items() if kind == TOPIC}
    compacted = sorted(name for name, own in topics.items() if "compact" in own.get(POLICY, "") and source.has(name))
    node = decode_properties(Files(source.path).whole(layout.META_PROPERTIES)).get("node.id", ALL_BROKERS)
    brokers = {
        BROKER_LAG: str(source.setting_ms(BROKER_LAG, 0)),
        **values.get((BROKER, ALL_BROKERS), {}),
        **values.get((BROKER, node), {}),
    }
    return Policies(
        compacted, {name: int(own[LAG]) for name, own in topics.items() if LAG in own}, int(brokers[BROKER_LAG])
    )


def configured(records: Iterable[tuple[str, Mapping[str, object]]]) -> dict[tuple[int, str], dict[str, str]]:
    """Returns the configurations by type and name of the resource,
    from metadata records given by type and as plain values.
    """
    state = MetadataState()
    for kind, record in records:
        state.apply(
            getattr(messages, kind)(**{name: value for name, value in record.items() if name != "unknown_tags"})
        )
    return dict(state.configs.items())


def limits(batches: DataFrame, files: DataFrame, partitions: DataFrame, policies: Policies, now_ms: int) -> DataFrame:
    """Returns the `limit` up to which each partition can be cleaned: its active segment, its last stable offset, its
    first segment that is too young.
    """
    place = ["topic", "partition"]
    active = files.where("kind = 'log'").groupBy(*place).agg(f.max("baseOffset").alias("activeFrom"))
    ends = partitions.select(*place, "lastStableOffset", "cleanedOffset").join(active, place)
    if not any((*policies.lags_ms.values(), policies.other_lag_ms)):
        return ends.selectExpr(*place, "least(activeFrom, lastStableOffset) AS limit")
    own = f.create_map(*(f.lit(one) for pair in policies.lags_ms.items() for one in pair))
    lag = (
        f.coalesce(own[f.col("topic")], f.lit(policies.other_lag_ms))
        if policies.lags_ms
        else f.lit(policies.other_lag_ms)
    )
    segments = (
        batches.where("magic >= 0")
        .groupBy(*place, "segment")
        .agg(f.max("maxTimestamp").alias("youngest"), f.max("lastOffset").alias("last"))
    )
    dirty = segments.join(f.broadcast(ends), place).where("last >= coalesce(cleanedOffset, 0)").withColumn("lagMs", lag)
    young = dirty.where(f"unix_millis(youngest) > {now_ms} - lagMs AND lagMs > 0")
    from_ = young.groupBy(*place).agg(f.expr("min(bigint(substring(segment, 1, 20))) AS youngFrom"))
    return ends.join(f.broadcast(from_), place, "left").selectExpr(
        *place, "least(activeFrom, lastStableOffset, youngFrom) AS limit"
    )


def judged(records: DataFrame, stable: DataFrame, batches: DataFrame, limits: DataFrame, now_ms: int) -> DataFrame:
    """Returns every record with `kept`. `stable`: the records that read_committed consumers get."""
    place = ["topic", "partition"]
    window = Window.partitionBy(*place, "key")
    data = stable.join(f.broadcast(limits), place).where(f.col("offset") < f.col("limit"))
    newest = (
        data.where("key IS NOT NULL")
        .withColumn("last", f.max("offset").over(window))
        .where("offset = last")
        .select(*place, "offset", f.lit(True).alias("newest"))
    )
    horizon = batches.where("deleteHorizonMs IS NOT NULL").select(
        *place, f.col("baseOffset").alias("batchOffset"), "deleteHorizonMs"
    )
    rows = (
        records.join(f.broadcast(limits), place)
        .join(newest, [*place, "offset"], "left")
        .join(horizon, [*place, "batchOffset"], "left")
    )
    outside = f.col("offset") >= f.col("limit")
    waits = f.col("deleteHorizonMs").isNull() | (f.col("deleteHorizonMs") > now_ms)
    has_value = f.col("valueSize") >= 0
    kept = (
        outside
        | (f.col("control") & waits)
        | (~f.col("control") & f.coalesce("newest", f.lit(False)) & (has_value | waits))
    )
    return rows.withColumn("kept", kept).drop("limit", "newest", "deleteHorizonMs")


def summary(judged: DataFrame) -> DataFrame:
    """Returns a row per partition: what exists and what would remain, in records and in bytes of keys and values."""
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
    rows = rows.withColumn("removableBytes", f.expr("bytes - keptBytes")).withColumn(
        "place", f.format_string("%s-%d", "topic", "partition")
    )
    return rows.orderBy("topic", "partition")


def keys(judged: DataFrame) -> DataFrame:
    """Returns the 20 keys whose superseded records take the most space."""
    rows = judged.where("NOT kept AND key IS NOT NULL").groupBy(
        "topic", "partition", f.col("key").cast("string").alias("key")
    )
    found = rows.agg(
        f.count("*").alias("records"),
        f.sum(f.greatest(f.coalesce("valueSize", f.lit(0)), f.lit(0)).cast("long")).alias("bytes"),
    )
    return found.orderBy(f.col("bytes").desc(), "key").limit(20)
