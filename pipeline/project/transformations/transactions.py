"""Transactions, and those that held back last stable offsets."""

from ottla.pipeline.jobs import transactions as of
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.materialized_view
def transactions() -> DataFrame:
    return of.transactions(of.history(spark.read.table("internal").where("topic = '__transaction_state'")))


@dp.materialized_view
def held_offsets() -> DataFrame:
    return of.held(of.spans(spark.read.table("batches")))
