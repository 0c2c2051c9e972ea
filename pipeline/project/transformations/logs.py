"""The content of the logs as tables, from which the other tables are derived."""

import os

from ottla.pipeline import register
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

DIRECTORY = os.environ.get("OTTLA_DIRECTORY", "@DIRECTORY@")

spark = SparkSession.active()
register(spark)


def view(name: str, **options: str) -> DataFrame:
    return spark.read.format("kafka-log").options(path=DIRECTORY, view=name, **options).load()


@dp.materialized_view
def batches() -> DataFrame:
    return view("batches")


@dp.materialized_view
def indexes() -> DataFrame:
    return view("index", verifyIndex="true")


@dp.materialized_view
def partitions() -> DataFrame:
    return view("partitions")


@dp.materialized_view
def files() -> DataFrame:
    return view("files")


@dp.table
def internal() -> DataFrame:
    """A stream: each run adds the new records of Kafka's internal topics."""
    return (
        spark.readStream.format("kafka-log")
        .options(path=DIRECTORY, view="internal", isolation="read_committed", mode="dropmalformed")
        .load()
    )
