"""Deliveries of the records of share groups: from the records of `__share_group_state`,
and from the dead-letter queues.

The log contains the end of each delivery: acknowledged, released (`Available`) or archived. Compaction removes older
steps; the rest is still right.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from ...coordinator.metadata.format import CLUSTER_METADATA
from . import Input, NotThere, Plot, Report, configurations, topic_ids, uuid_text

TOPIC = "__share_group_state"
KEY = "group_id string, topic_id string, partition int"
VALUE = """snapshot_epoch int, leader_epoch int, start_offset long, delivery_complete_count int,
 state_batches array<struct<first_offset: long, last_offset: long, delivery_state: int, delivery_count: int>>"""
STATES = {0: "Available", 2: "Acknowledged", 4: "Archived"}
QUEUE_NAME = "errors.deadletterqueue.topic.name"
PLACE = ("group", "topic", "partition")


def report(source: Input) -> Report:
    internal = source.internal(TOPIC)
    if internal is None:
        raise NotThere(f"{source.path} does not contain {TOPIC}: there were no share groups")
    partitions = source.table("partitions")
    views: list[tuple[str, dict[str, str]]] = [("internal", source.of_internal(TOPIC)), ("partitions", {})]
    written = source.computed(states(internal, partitions), *views)
    last = source.computed(records(written), *views)
    topics = [
        row.topic
        for row in written.select("topic").distinct().collect()
        if row.topic is not None and source.has(row.topic)
    ]
    # read nothing if the topics were deleted
    options = {"topic": ",".join(topics)} if topics else {"endingOffsets": "0"}
    written_at = source.read("records", mode="dropmalformed", **options).select(
        "topic", "partition", "offset", "timestamp"
    )
    last = timed(last, written_at)
    tables = {
        "groups": groups(written, last, partitions),
        "deliveries": deliveries(last),
        "stalls": source.lately(stalls(written), "toTime"),
    }
    queues = _queues(source)
    if queues:
        found = source.read("records", topic=",".join(queues), mode="dropmalformed", isolation="read_committed")
        tables["deadLettered"] = source.lately(dead_letters(found), "timestamp")
    plots = (
        Plot("Deliveries per record", "deliveries", "bar", "deliveryCount", "records", "state"),
        Plot("Records that hold back start offsets", "stalls", "timeline", "fromTime", "place", "group", "toTime"),
    )
    return Report(tables, plots=plots)


def states(internal: DataFrame, partitions: DataFrame) -> DataFrame:
    """Returns each write of the persister: start offset, and the batches of records with their states. `topic` is null
    if it was deleted.
    """
    rows = internal.where("type IN ('ShareSnapshot', 'ShareUpdate') AND value IS NOT NULL")
    rows = rows.select(
        "type",
        "timestamp",
        "partition",
        "offset",
        f.from_json("key", KEY).alias("k"),
        f.from_json("value", VALUE).alias("v"),
    )
    made = rows.select(
        f.col("k.group_id").alias("group"),
        uuid_text("k.topic_id").alias("topicId"),
        f.col("k.partition").alias("partition"),
        f.col("timestamp").alias("time"),
        (f.col("type") == "ShareSnapshot").alias("snapshot"),
        f.col("v.leader_epoch").alias("leaderEpoch"),
        f.col("v.start_offset").alias("startOffset"),
        f.col("v.delivery_complete_count").alias("deliveryCompleteCount"),
        f.col("v.state_batches").alias("batches"),
        f.struct(f.col("partition").alias("coordinator"), "offset").alias("at"),
    )
    return made.join(f.broadcast(topic_ids(partitions)), "topicId", "left")


def records(states: DataFrame) -> DataFrame:
    """Returns the last known state of each record, its delivery count, and when it was settled."""
    rows = states.select(*PLACE, "time", "at", f.explode("batches").alias("b")).where("b.last_offset >= b.first_offset")
    rows = rows.select(
        *PLACE, "time", "at", f.explode(f.sequence("b.first_offset", "b.last_offset")).alias("offset"),
        _named("b.delivery_state").alias("state"),
        f.col("b.delivery_count").alias("deliveryCount"),
    )  # fmt: skip
    found = rows.groupBy(*PLACE, "offset").agg(
        f.max_by("state", "at").alias("state"),
        f.max("deliveryCount").alias("deliveryCount"),
        f.min(f.when(f.col("state") != "Available", f.col("time"))).alias("settledTime"),
        f.sum((f.col("state") == "Available").cast("int")).alias("releases"),
    )
    return found.withColumn("settledTime", f.when(f.col("state") != "Available", f.col("settledTime")))


def _named(code: str) -> Column:
    names = f.create_map(*[f.lit(part) for code_, name in STATES.items() for part in (code_, name)])
    return f.coalesce(names[f.col(code)], f.col(code).cast("string"))


def timed(records: DataFrame, written: DataFrame) -> DataFrame:
    """Adds the time from a record's timestamp until it was settled. `written`: topic, partition, offset and timestamp
    of records.
    """
    rows = records.join(written, ["topic", "partition", "offset"], "left")
    after = f.expr("unix_millis(settledTime) - unix_millis(timestamp)").alias("settledAfterMs")
    return rows.select(*PLACE, "offset", "state", "deliveryCount", "settledTime", "releases", after)


def groups(states: DataFrame, records: DataFrame, partitions: DataFrame) -> DataFrame:
    """Returns a row per share-partition. `records` are those of `timed`:
    times are from a record's timestamp to its acknowledgement.
    """
    last = states.groupBy(*PLACE).agg(
        f.max_by("startOffset", "at").alias("startOffset"),
        f.max_by("deliveryCompleteCount", "at").alias("deliveryCompleteCount"),
        f.max_by("leaderEpoch", "at").alias("leaderEpoch"),
        f.max("time").alias("writtenTime"),
    )
    taken = f.when(f.col("state") == "Acknowledged", f.col("settledAfterMs"))
    counts = records.groupBy(*PLACE).agg(
        *[f.sum((f.col("state") == name).cast("long")).alias(name.lower()) for name in ("Acknowledged", "Archived")],
        f.sum((f.col("deliveryCount") > 1).cast("long")).alias("redelivered"),
        f.max("deliveryCount").alias("mostDeliveries"),
        f.percentile_approx(taken, 0.5).alias("acknowledgedAfterMsP50"),
        f.percentile_approx(taken, 0.99).alias("acknowledgedAfterMsP99"),
    )
    ends = partitions.select("topic", "partition", f.col("endOffset").alias("logEndOffset"))
    rows = last.join(counts, [*PLACE], "left").join(ends, ["topic", "partition"], "left")
    return rows.select(
        *PLACE, "startOffset", "logEndOffset", "deliveryCompleteCount", *_COUNTS, "leaderEpoch", "writtenTime"
    ).orderBy(*PLACE)


_COUNTS = (
    "acknowledged",
    "archived",
    "redelivered",
    "mostDeliveries",
    "acknowledgedAfterMsP50",
    "acknowledgedAfterMsP99",
)


def deliveries(records: DataFrame) -> DataFrame:
    """Returns how many records ended in each state after each number of deliveries."""
    return (
        records.groupBy(*PLACE, "state", "deliveryCount")
        .agg(f.count("*").alias("records"))
        .orderBy(*PLACE, "state", "deliveryCount")
    )


def stalls(states: DataFrame) -> DataFrame:
    """Returns where a start offset stayed while later records were settled: `waiting` of them. `toTime` is null if it
    still does.
    """
    window = Window.partitionBy(*PLACE).orderBy("at")
    moved = (f.col("startOffset") != f.lag("startOffset").over(window)).cast("int")
    rows = states.withColumn("run", f.sum(f.coalesce(moved, f.lit(0))).over(window))
    settled = f.expr(
        """aggregate(filter(batches, b -> b.delivery_state <> 0 AND b.first_offset > startOffset),
                  0L, (n, b) -> n + b.last_offset - b.first_offset + 1)"""
    )
    runs = rows.groupBy(*PLACE, "run", "startOffset").agg(
        f.min("time").alias("fromTime"), f.max(settled).alias("waiting")
    )
    runs = runs.withColumn("toTime", f.lead("fromTime").over(Window.partitionBy(*PLACE).orderBy("run"))).where(
        "waiting > 0"
    )
    place = f.format_string("%s %s-%d", *PLACE)
    duration = f.expr("unix_millis(toTime) - unix_millis(fromTime)")
    made = runs.withColumn("stalledMs", duration).withColumn("place", place)
    return made.select(*PLACE, "startOffset", "waiting", "fromTime", "toTime", "stalledMs", "place").orderBy(
        f.col("stalledMs").desc(), *PLACE
    )


def dead_letters(records: DataFrame) -> DataFrame:
    """Returns the records of dead-letter queues (KIP-1191), and the origin of each."""
    header = f.map_from_entries(f.transform("headers", lambda h: f.struct(h["key"], h["value"].cast("string"))))
    rows = records.where("exists(headers, h -> h.key = '__dlq.errors.group')").withColumn("h", header)
    names = {
        "group": "group",
        "topic": "topic",
        "partition": "partition",
        "offset": "offset",
        "deliveryCount": "delivery.count",
        "message": "message",
    }
    told = [f.col("h")[f"__dlq.errors.{name}"].alias(column) for column, name in names.items()]
    found = rows.select(f.col("topic").alias("queue"), f.col("offset").alias("queueOffset"), "timestamp", *told)
    casts = {
        "partition": f.col("partition").cast("int"),
        "offset": f.col("offset").cast("long"),
        "deliveryCount": f.col("deliveryCount").cast("int"),
    }
    return found.withColumns(casts).orderBy("group", "topic", "partition", "offset")


def _queues(source: Input) -> list[str]:
    """Returns the topics in the directory that share groups configure as dead-letter queues."""
    metadata = source.internal(CLUSTER_METADATA, committed=False)
    if metadata is None:
        return []
    named = configurations(metadata).where(f.col("name") == QUEUE_NAME).select("value").distinct().collect()
    return [row.value for row in named if row.value and source.has(row.value)]
