"""Spark's own Kafka connector as a client of ottla: what it writes and reads is what the directory and the jar-free
reader have.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ottla.pipeline.jobs import load
from ottla.pipeline.jobs.specification import parse

from ottla.testing import Broker

from .story import CODECS, mix

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def connector(reader: Any, broker: Broker, **options: str) -> Any:
    return reader.format("kafka").options(**{"kafka.bootstrap.servers": broker.bootstrap_servers, **options})


def read(spark: Any, broker: Broker, topic: str, **options: str) -> Any:
    return connector(spark.read, broker, subscribe=topic, includeHeaders="true", **options).load().select(*COLUMNS)


def logs(spark: Any, broker: Broker, topic: str, **options: str) -> Any:
    return (
        spark.read.format("kafka-log")
        .options(path=str(broker.data_directory), topic=topic, **options)
        .load()
        .select(*COLUMNS)
    )


def rows(frame: Any) -> list[str]:
    """As text, so that nulls among headers can be sorted too."""
    return sorted(str(row) for row in frame.collect())


def test_what_it_writes_is_in_the_directory(spark: Any, broker: Broker) -> None:
    """The topic makes itself; keys, values and headers, nulls among them."""
    frame = spark.range(500).selectExpr(
        "if(id % 5 = 0, NULL, binary(string(id % 7))) AS key",
        "if(id % 9 = 0, NULL, binary(concat('value ', id))) AS value",
        "if(id % 2 = 0, array(struct('n' AS key, binary(string(id)) AS value)), NULL) AS headers",
    )
    connector(frame.write, broker, topic="written", includeHeaders="true").save()
    found = spark.read.format("kafka-log").options(path=str(broker.data_directory), topic="written").load()
    same = found.selectExpr("key", "value", "if(size(headers) = 0, NULL, headers) AS headers")
    assert rows(same) == rows(frame)
    assert rows(read(spark, broker, "written").drop("headers")) == rows(logs(spark, broker, "written").drop("headers"))


def test_what_it_reads_is_what_the_others_read(spark: Any, broker: Broker) -> None:
    """All codecs, with what was aborted and without, whole and a part."""
    load.load(spark, parse("topics: {mixed: {partitions: 2, records: 0, size: 1}}"), broker.bootstrap_servers)
    for codec in CODECS:
        mix(broker.bootstrap_servers, codec)
    committed = rows(read(spark, broker, "mixed", **{"kafka.isolation.level": "read_committed"}).drop("headers"))
    assert committed == rows(logs(spark, broker, "mixed", isolation="read_committed").drop("headers"))
    everything = rows(read(spark, broker, "mixed").drop("headers"))
    assert everything == rows(
        logs(spark, broker, "mixed")
        .join(markers(spark, broker), ["partition", "offset"], "left_anti")
        .select(*COLUMNS[:-1])
    )
    assert (len(committed), len(everything)) == (120 * len(CODECS), 160 * len(CODECS))
    part = {"startingOffsets": '{"mixed": {"0": 10, "1": -2}}', "endingOffsets": '{"mixed": {"0": 20, "1": 5}}'}
    live = (
        spark.read.format("kafka-wire")
        .options(**{"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "mixed", **part})
        .load()
    )
    assert rows(read(spark, broker, "mixed", **part).drop("headers")) == rows(live.select(*COLUMNS[:-1]))


def markers(spark: Any, broker: Broker) -> Any:
    frame = spark.read.format("kafka-log").options(path=str(broker.data_directory), topic="mixed").load()
    return frame.where("control").select("partition", "offset")


def test_a_stream_of_its_own_from_topic_to_topic(spark: Any, broker: Broker, tmp_path: Path) -> None:
    """In steps, and on from its checkpoint: what came in between is not read twice."""
    more = parse("topics: {steps: {partitions: 2, records: 300, key: '{n}', value: 'v{n}'}}")
    load.load(spark, more, broker.bootstrap_servers)
    for count in (300, 600):
        stream = connector(
            spark.readStream, broker, subscribe="steps", startingOffsets="earliest", maxOffsetsPerTrigger="200"
        ).load()
        writer = connector(stream.selectExpr("key", "value").writeStream, broker, topic="stepped")
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
        assert read(spark, broker, "stepped").count() == count
        load.load(spark, more, broker.bootstrap_servers)
    values = [row.v for row in logs(spark, broker, "stepped").selectExpr("cast(value AS string) AS v").collect()]
    assert sorted(values) == sorted(2 * [f"v{n}" for n in range(300)])
