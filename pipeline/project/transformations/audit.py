"""Findings about the logs."""

from ottla.pipeline.jobs import audit_in_sql
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.materialized_view
def findings() -> DataFrame:
    batches, partitions = spark.read.table("batches"), spark.read.table("partitions")
    index, files = spark.read.table("indexes"), spark.read.table("files")
    return audit_in_sql.of_views(batches, partitions, index, files, spark.read.table("internal"))
