"""Findings about the logs."""

from ottla.pipeline.jobs import audit
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.materialized_view
def findings() -> DataFrame:
    checked = spark.read.table("checked")
    hanging = audit.in_transactions(audit.open_spans(checked), spark.read.table("internal"))
    return audit.findings(checked).unionAll(hanging)
