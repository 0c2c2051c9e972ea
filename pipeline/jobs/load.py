"""Produces the records of a specification, at a given rate."""

from __future__ import annotations

from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from .. import parallelism
from .specification import Topic, expression

REACHED_S, WITHIN_S = 10.0, 30.0


def load(spark: SparkSession, topics: list[Topic], servers: str, rate: int | None = None) -> int:
    """Creates missing topics and writes to one after the other; `rate` in records per second. Returns the number of
    records. Raises RuntimeError: a topic cannot be created, or no broker answers.
    """
    _create(topics, servers)
    for topic in topics:
        options = {"kafka.bootstrap.servers": servers, "kafka.compression.type": topic.codec, "topic": topic.name}
        tasks = min(parallelism(spark), rate or topic.records, topic.records) or 1
        if rate:
            options["rowsPerSecond"] = str(-(-rate // tasks))
        records(spark, topic).coalesce(tasks).write.format("kafka-wire").mode("append").options(**options).save()
    return sum(topic.records for topic in topics)


def records(spark: SparkSession, topic: Topic) -> DataFrame:
    """Returns key, value and headers of each record; the same each time."""
    rows = spark.range(topic.records).withColumnRenamed("id", "n")
    key = f.lit(None) if topic.key is None else f.expr(expression(topic.key))
    value = f.expr(expression(topic.value)) if topic.value is not None else _filled(topic)
    pairs = [
        f.struct(f.lit(name).alias("key"), f.lit(text).cast("binary").alias("value"))
        for name, text in topic.headers.items()
    ]
    rows = rows.select(key.cast("binary").alias("key"), value.cast("binary").alias("value"))
    return rows.withColumn("headers", f.array(*pairs)) if pairs else rows


def _filled(topic: Topic) -> Column:
    """Returns bytes that depend only on the seed and the number of the record."""
    times = -(-topic.size // 64)
    parts = [f.sha2(f.concat_ws(" ", f.lit(str(topic.seed)), "n", f.lit(str(i))), 256) for i in range(min(times, 4))]
    return f.substring(f.repeat(f.concat(*parts), -(-times // 4)), 1, topic.size) if parts else f.lit("")


def _create(topics: list[Topic], servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    try:
        admin.list_topics(timeout=REACHED_S)
        wanted = [NewTopic(one.name, one.partitions, 1) for one in topics]
        for name, made in admin.create_topics(wanted, operation_timeout=WITHIN_S).items():
            _wait_for(name, made)
    except KafkaException as error:
        raise RuntimeError(f"{servers}: {error.args[0].str()}") from None


def _wait_for(name: str, made: Future[None]) -> None:
    try:
        made.result(WITHIN_S)
    except TimeoutError:
        raise RuntimeError(f"the topic {name} was not created within {WITHIN_S:g} s") from None
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
