"""Findings about the logs."""

from ottla.pipeline.jobs import audit
from ottla.pipeline.jobs.transactions import spans
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.materialized_view
def findings() -> DataFrame:
    batches, partitions = spark.read.table("batches"), spark.read.table("partitions")
    index, files = spark.read.table("indexes"), spark.read.table("files")
    log = spans(batches)
    return audit.all_of(
        audit.in_logs(batches, partitions),
        audit.in_ends(partitions),
        audit.in_indexes(index),
        audit.in_aborted(log, partitions, index),
        audit.in_transactions(log, spark.read.table("internal")),
        audit.in_files(files),
    )
