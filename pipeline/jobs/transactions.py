"""Transactions: their duration and outcome, from the records of their coordinators; and which of them held back last
stable offsets, from the logs.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from ...coordinator.transaction.state import NAMES, State
from . import Input, Plot, Report

VALUE = """producer_id long, producer_epoch int, transaction_timeout_ms long, transaction_status int,
 transaction_partitions array<struct<topic: string, partition_ids: array<int>>>,
 transaction_last_update_timestamp_ms long, transaction_start_timestamp_ms long"""
REST = (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT, State.DEAD)
# The first `initcap`, `lower` or `upper` of a Java has Spark look up the case of every character there is.
_OUTCOME = "CASE outcome WHEN 'COMMIT' THEN 'Commit' WHEN 'ABORT' THEN 'Abort' ELSE outcome END AS outcome"
UNDER_WAY = "state NOT IN (" + ", ".join(f"'{NAMES[one]}'" for one in REST) + ")"


def report(source: Input) -> Report:
    batches = source.table("batches")
    internal = source.internal("__transaction_state")
    log = spans(batches)
    if internal is None:
        return Report({"held": source.lately(held(log), "endTime")})
    past = history(internal)
    done = source.lately(transactions(past), "endTime")
    names = past.select("transactionalId", "producerId").distinct()
    return Report(
        {
            "transactions": done,
            "held": source.lately(held(log, names), "endTime"),
            "hanging": hanging(log, latest(past)),
        },
        findings="hanging",
        plots=(
            Plot("Duration of transactions, in ms", "transactions", "scatter", "startTime", "durationMs", "outcome"),
            Plot(
                "Transactions that held back last stable offsets",
                "held",
                "timeline",
                "heldFrom",
                "transactionalId",
                "topic",
                "endTime",
            ),
        ),
    )


def history(internal: DataFrame) -> DataFrame:
    """Returns every state of every transactional id, from `__transaction_state`;
    `state` is null if the id was removed.
    """
    rows = internal.where("type = 'TransactionLog'")
    value = f.from_json("value", VALUE).alias("v")
    rows = rows.select(
        f.get_json_object("key", "$.transactional_id").alias("transactionalId"), "partition", "offset", value
    )
    names = f.create_map(*[f.lit(part) for state, name in NAMES.items() for part in (int(state), name)])
    return rows.select(
        "transactionalId",
        "partition",
        "offset",
        f.col("v.producer_id").alias("producerId"),
        f.col("v.producer_epoch").alias("producerEpoch"),
        names[f.col("v.transaction_status")].alias("state"),
        f.col("v.transaction_timeout_ms").alias("timeoutMs"),
        f.expr(
            "flatten(transform(v.transaction_partitions, t -> transform(t.partition_ids, p -> concat(t.topic, '-', "
            "p))))"
        ).alias("partitions"),
        f.timestamp_millis(f.expr("nullif(v.transaction_start_timestamp_ms, -1)")).alias("startTime"),
        f.timestamp_millis("v.transaction_last_update_timestamp_ms").alias("updateTime"),
    )


def states(internal: DataFrame) -> DataFrame:
    """Returns the last state of every transactional id that still exists."""
    return latest(history(internal))


def latest(history: DataFrame) -> DataFrame:
    """Like `states`, from every state."""
    window = Window.partitionBy("transactionalId").orderBy(f.col("partition"), f.col("offset").desc())
    last = history.withColumn("n", f.row_number().over(window)).where("n = 1 AND state IS NOT NULL")
    return last.select(
        "transactionalId", "producerId", "producerEpoch", "state", "timeoutMs", "partitions", "startTime", "updateTime"
    )


def transactions(history: DataFrame) -> DataFrame:
    """Returns a row per transaction. An open one has no end; `preparedTime` is when its outcome was decided."""
    window = Window.partitionBy("transactionalId").orderBy("partition", "offset")
    rows = history.where("state IS NOT NULL")
    rest = "('" + "', '".join(NAMES[one] for one in REST) + "')"
    begins = f.expr(f"state NOT IN {rest}") & f.coalesce(f.expr(f"before IN {rest}"), f.lit(True))
    rows = rows.withColumn("before", f.lag("state").over(window)).withColumn(
        "number", f.sum(begins.cast("int")).over(window)
    )
    done = f.col("state").isin(NAMES[State.COMPLETE_COMMIT], NAMES[State.COMPLETE_ABORT])
    found = (
        rows.where(f.col("number") > 0).where(f"state <> '{NAMES[State.EMPTY]}'").groupBy("transactionalId", "number")
    )
    made = found.agg(
        f.max("producerId").alias("producerId"),
        f.max("producerEpoch").alias("producerEpoch"),
        f.min("startTime").alias("startTime"),
        f.min(f.when(f.col("state").startswith("Prepare"), f.col("updateTime"))).alias("preparedTime"),
        f.min(f.when(done, f.col("updateTime"))).alias("endTime"),
        f.max_by(f.regexp_replace("state", "Prepare|Complete", ""), "offset").alias("outcome"),
        f.max(f.size("partitions")).alias("partitions"),
    )
    duration = f.unix_millis("endTime") - f.unix_millis("startTime")
    columns = (
        "transactionalId",
        "producerId",
        "producerEpoch",
        "startTime",
        "preparedTime",
        "endTime",
        "outcome",
        "partitions",
    )
    return made.select(*columns, duration.alias("durationMs")).orderBy("startTime", "transactionalId")


def spans(batches: DataFrame) -> DataFrame:
    """Returns where transactions are in partitions: first offset, marker and outcome; without a marker they are open,
    without a first offset they are empty.
    """
    before = (
        "(PARTITION BY topic, partition, producerId ORDER BY segment, position ROWS BETWEEN UNBOUNDED PRECEDING "
        "AND 1 PRECEDING)"
    )
    rows = batches.where("magic = 2 AND transactional AND producerId >= 0").selectExpr(
        "*", f"coalesce(count_if(control) OVER {before}, 0) AS number"
    )
    made = rows.groupBy("topic", "partition", "producerId", "number").agg(
        f.expr("max(producerEpoch) AS producerEpoch"),
        f.expr("min(if(control, NULL, baseOffset)) AS firstOffset"),
        f.expr("max(if(control, baseOffset, NULL)) AS endOffset"),
        f.expr("max(if(control, segment, NULL)) AS endSegment"),
        f.expr("max(controlType) AS outcome"),
        f.expr("sum(if(control, 0, recordCount)) AS records"),
        f.expr("min(if(control, NULL, baseTimestamp)) AS startTime"),
        f.expr("max(if(control, maxTimestamp, NULL)) AS endTime"),
    )
    place = ("topic", "partition", "producerId", "producerEpoch")
    return made.select(*place, "firstOffset", "endOffset", "endSegment", "outcome", "records", "startTime", "endTime")


def held(spans: DataFrame, names: DataFrame | None = None) -> DataFrame:
    """Returns the transactions that held back a last stable offset, one at a time: the oldest open one of its
    partition, from `heldFrom` to its end.

    `names`: transactional ids of producer ids. `recordsBehind`: offsets of other producers that read_committed
    consumers could not read meanwhile.
    """
    rows = spans.where("firstOffset IS NOT NULL")
    older = Window.partitionBy("topic", "partition").orderBy("firstOffset").rowsBetween(Window.unboundedPreceding, -1)
    forever = f.lit("9999-12-31").cast("timestamp")
    rows = rows.withColumn("freed", f.max(f.coalesce("endTime", forever)).over(older)).withColumn(
        "heldFrom", f.greatest("startTime", "freed")
    )
    rows = rows.where("endTime IS NULL AND heldFrom < timestamp'9999-12-31' OR heldFrom < endTime")
    if names is not None:
        rows = rows.join(
            names.groupBy("producerId").agg(f.max("transactionalId").alias("transactionalId")), "producerId", "left"
        )
    else:
        rows = rows.withColumn("transactionalId", f.lit(None).cast("string"))
    return rows.select(
        "topic", "partition", "transactionalId", "producerId", "firstOffset", "endOffset",
        f.expr(_OUTCOME), "records",
        "heldFrom", "endTime",
        (f.unix_millis("endTime") - f.unix_millis("heldFrom")).alias("heldMs"),
        (f.col("endOffset") - f.col("firstOffset") - f.col("records")).alias("recordsBehind"),
    ).orderBy("topic", "partition", "firstOffset")  # fmt: skip


def hanging(spans: DataFrame, states: DataFrame) -> DataFrame:
    """Returns transactions that are open in a partition although no coordinator will end them there: the last stable
    offset cannot pass them.
    """
    open_ = spans.where("firstOffset IS NOT NULL AND endOffset IS NULL")
    known = states.select("producerId", "transactionalId", "state", "partitions")
    rows = open_.join(known, "producerId", "left")
    place = f.concat_ws("-", "topic", f.col("partition").cast("string"))
    why = (
        f.when(f.col("state").isNull(), "no transaction coordinator knows it")
        .when(~f.expr(UNDER_WAY), f.concat(f.lit("its state is "), f.col("state")))
        .when(~f.array_contains("partitions", place), "its transaction coordinator does not know this partition")
    )
    return (
        rows.withColumn("why", why)
        .where("why IS NOT NULL")
        .select("topic", "partition", "transactionalId", "producerId", "firstOffset", "records", "why")
    )
