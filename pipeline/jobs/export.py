"""Writes topics to Parquet files by topic and date, each committed record once.

A stream with a checkpoint (`_checkpoint` in the target). Each of its batches writes its own partitions, `batch=N`, and
overwrites them if it is repeated. So no record is in the files twice, even if the process is killed and the export
continues later.
"""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ..directory import Directory
from ..files import Files

CHECKPOINT = "_checkpoint"
PARTITIONS = ("topic", "date", "batch")


def export(
    spark: SparkSession, path: str, topics: str, out: str, offsets_per_batch: int, fail_on_data_loss: bool = True
) -> int:
    """Exports committed records that are not exported yet to `out`; returns their number. Raises
    ValueError for a topic that has never been there.
    """

    def write(frame: DataFrame, number: int) -> None:
        rows = dated(frame).withColumn("batch", f.lit(number))
        rows.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy(*PARTITIONS).parquet(out)

    first = _batches(out)
    if not first:  # later a topic may be gone, as `fail_on_data_loss` says
        Directory(path).chosen(name.strip() for name in topics.split(","))
    options = {
        "path": path,
        "topic": topics,
        "isolation": "read_committed",
        "maxOffsetsPerTrigger": str(offsets_per_batch),
        "failOnDataLoss": str(fail_on_data_loss).lower(),
    }
    stream = spark.readStream.format("kafka-log").options(**options).load()
    query = (
        stream.writeStream.foreachBatch(write)
        .option("checkpointLocation", os.path.join(out, CHECKPOINT))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    if _batches(out) == first:
        return 0
    written = spark.read.schema("offset long, topic string, date date, batch int").parquet(out)
    return written.where(f.col("batch") >= first).count()


def _batches(out: str) -> int:
    """Returns how many batches are complete."""
    try:
        names = Files(os.path.join(out, CHECKPOINT, "commits")).names()
    except FileNotFoundError:
        return 0
    return max((int(name) + 1 for name in names if name.isdecimal()), default=0)


def dated(records: DataFrame) -> DataFrame:
    """Adds the day (UTC) of each record's timestamp."""
    return records.withColumn("date", f.to_date(f.to_utc_timestamp("timestamp", f.current_timezone())))
