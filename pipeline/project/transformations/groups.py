"""Consumer groups and share groups: their lag, the owners of partitions, the deliveries of records."""

from ottla.pipeline.jobs import lag as lags
from ottla.pipeline.jobs import rebalances as owners
from ottla.pipeline.jobs import shares
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


def of(topic: str) -> DataFrame:
    return spark.read.table("internal").where(f"topic = '{topic}'")


@dp.materialized_view
def lag() -> DataFrame:
    return lags.lag(lags.commits(of("__consumer_offsets")), spark.read.table("partitions"))


@dp.materialized_view
def lag_history() -> DataFrame:
    return lags.history(lags.commits(of("__consumer_offsets")), spark.read.table("batches"))


@dp.materialized_view
def group_steps() -> DataFrame:
    return owners.steps(of("__consumer_offsets"))


@dp.materialized_view
def rebalances() -> DataFrame:
    return owners.rebalances(spark.read.table("group_steps"))


@dp.materialized_view
def ownership() -> DataFrame:
    return owners.ownership(spark.read.table("group_steps"), spark.read.table("partitions"))


@dp.materialized_view
def share_deliveries() -> DataFrame:
    return shares.deliveries(shares.records(shares.states(of("__share_group_state"), spark.read.table("partitions"))))
