"""What is wrong with the logs."""

from ottla.pipeline.jobs import audit
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.materialized_view
def findings() -> DataFrame:
    batches, partitions = spark.read.table("batches"), spark.read.table("partitions")
    indexes, files = spark.read.table("indexes"), spark.read.table("files")
    found = audit.in_batches(batches, partitions).unionByName(audit.in_sequences(batches, partitions))
    found = found.unionByName(audit.in_indexes(batches, indexes)).unionByName(audit.in_aborted(batches, partitions, indexes))
    found = found.unionByName(audit.in_transactions(batches, spark.read.table("internal")))
    return found.unionByName(audit.in_files(files)).unionByName(audit.in_ends(partitions))
