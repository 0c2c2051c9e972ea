"""`make bench-pipeline`: the data source `kafka-log` and Spark's own Kafka connector in turn over the same records, in
one session.

The records lie in a directory that Apache Kafka 4.4.0 wrote and, for the connector, still serves. Where the connector's
jars cannot be had, the source is measured alone. `make bench-pipeline ARGS="records=400000 runs=1"` is a short one.
`ARGS=audit` measures the audit only, and `ARGS=verdict` verdicts on traces (`tests.bench.verdicts`). Processor time is
that of all processes, whatever else the machine does; the connector's has that of its broker.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from ottla.pipeline.batches import scan
from ottla.pipeline.directory import Directory
from ottla.pipeline.jobs import Input, audit
from ottla.pipeline.opened import Opened, open_batches
from pyspark.sql import functions as f

from ottla import pipeline

from ..oracle import jars
from ..oracle.kafka import Kafka
from . import verdicts

RECORDS, RUNS, PARTITIONS = 4_000_000, 3, 4
WARM_RUNS = 3
COPIES = 4
CONNECTOR_TARGETS = {"100 B": 3.0, "100 B lz4": 3.0, "1 KB": 1.6}


class Topic(NamedTuple):
    name: str
    label: str
    size: int
    codec: str
    share: float  # of the records


TOPICS = (
    Topic("plain", "100 B", 100, "none", 1.0),
    Topic("lz4", "100 B lz4", 100, "lz4", 1.0),
    Topic("large", "1 KB", 1000, "none", 0.25),
)


def fill(servers: str, topic: Topic, count: int) -> None:
    """Records with values that compress about as well as text does."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic.name, PARTITIONS, 1)])[topic.name].result()
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": topic.codec,
            "linger.ms": 20,
            "queue.buffering.max.messages": 500_000,
        }
    )
    chance = np.random.default_rng(7)
    words = [bytes(chance.integers(97, 123, 5, np.uint8)) for _ in range(300)]
    values = [
        b" ".join(words[i] for i in chance.integers(0, 300, topic.size // 6 + 1))[: topic.size] for _ in range(500)
    ]
    for n in range(count):
        while True:
            try:
                producer.produce(topic.name, values[n % 500], partition=n % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(120) == 0


@contextmanager
def spark(jars_: str | None) -> Iterator[Any]:
    settings = {"spark.driver.memory": "3g", "spark.log.level": "ERROR", **({"spark.jars": jars_} if jars_ else {})}
    session = pipeline.session(**settings)
    yield session
    session.stop()


class Cost(NamedTuple):
    """Seconds by the clock, and of processors."""

    wall: float
    processors: float


def cost(work: Callable[[], Any]) -> Cost:
    began, spent = time.perf_counter(), verdicts.processor_seconds()
    work()
    return Cost(time.perf_counter() - began, verdicts.processor_seconds() - spent)


def median(work: Callable[[], Any], runs: int) -> Cost:
    return middle([cost(work) for _ in range(runs)])


def middle(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(one) for one in zip(*costs, strict=True)))


def rows_per_second(session: Any, kafka: Kafka, topic: Topic, count: int, runs: int, has_connector: bool) -> None:
    """Sum of the values' lengths, largest offset and timestamp: all columns that most queries need, once each way per
    run.
    """
    path = str(kafka.data_directory)

    def source() -> Any:
        frame = (
            session.read.format("kafka-log")
            .schema("value binary, offset long, timestamp timestamp")
            .options(path=path, topic=topic.name)
            .load()
        )
        return answer(frame)

    def connector() -> Any:
        frame = (
            session.read.format("kafka")
            .options(**{"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic.name})
            .load()
        )
        return answer(frame)

    def answer(frame: Any) -> Any:
        return frame.agg(f.sum(f.length("value")), f.max("offset"), f.max("timestamp"), f.count("*")).collect()[0]

    sides = {"source": source, **({"connector": connector} if has_connector else {})}
    for _ in range(WARM_RUNS):
        said = {name: work() for name, work in sides.items()}
        assert len(set(said.values())) == 1, said
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    for _ in range(runs):
        for name, work in sides.items():
            costs[name].append(cost(work))
    found = {name: middle(one) for name, one in costs.items()}
    text = f"{topic.label:12} " + "  ".join(
        f"{name} {count / one.wall / 1e6:.2f} M rows/s, {one.processors:.2f} s of processors"
        for name, one in found.items()
    )
    if has_connector:
        wall, processors = (other / mine for mine, other in zip(found["source"], found["connector"], strict=True))
        text += f"  ratio {wall:.2f} (target {CONNECTOR_TARGETS[topic.label]}), of processors {processors:.2f}"
    print(text, flush=True)


def equality(session: Any, kafka: Kafka, topic: Topic) -> None:
    """Every record's hash, summed: the connector reads the same."""
    sums = []
    for frame in (
        session.read.format("kafka-log")
        .schema("value binary, offset long, partition int")
        .options(path=str(kafka.data_directory), topic=topic.name)
        .load(),
        session.read.format("kafka")
        .options(**{"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic.name})
        .load(),
    ):
        sums.append(frame.agg(f.sum(f.xxhash64("value", "offset", "partition").cast("decimal(38,0)"))).collect()[0][0])
    print(
        f"{topic.label:12} hash of all records: {'equal' if sums[0] == sums[1] else f'DIFFERENT: {sums}'}", flush=True
    )
    assert sums[0] == sums[1]


def range_of_offsets(session: Any, kafka: Kafka, topic: Topic, runs: int) -> None:
    path = str(kafka.data_directory)

    def work() -> None:
        reader = session.read.format("kafka-log").options(
            path=path, topic=topic.name, partition="1", startingOffsets="5000", endingOffsets="6000"
        )
        assert reader.load().count() == 1000

    work()
    print(
        f"{topic.label:12} a range of 1,000 offsets: {median(work, runs).wall:.2f} s (target 0.3)",
        flush=True,
    )


def audited(session: Any, path: Path, runs: int) -> None:
    """CRC and every check of the audit, by what there is of bytes; and over COPIES times as much, where Spark's own
    time weighs less.
    """
    with tempfile.TemporaryDirectory(dir=path.parent) as copies:
        for log in path.glob("*-*/"):
            for n in range(COPIES):
                topic, _, partition = log.name.rpartition("-")
                shutil.copytree(log, Path(copies, f"{topic}.{n}-{partition}"), copy_function=os.link)
        for directory in (path, Path(copies)):
            total = sum(one.stat().st_size for one in directory.glob("*/*.log"))
            for label, work in (("batches with CRC", scanned), ("the whole audit", whole)):
                work(session, str(directory))
                found = median(partial(work, session, str(directory)), runs)
                print(
                    f"{label:20} {total / 1e9:.2f} GB in {found.wall:.2f} s: {total / found.wall / 1e9:.2f} GB/s "
                    f"(target 1.1); {found.processors:.2f} s of processors",
                    flush=True,
                )


def scanned(session: Any, path: str) -> None:
    session.read.format("kafka-log").options(path=path, view="batches").load().agg(
        f.sum(f.col("crcValid").cast("int"))
    ).collect()


def whole(session: Any, path: str) -> None:
    source = Input(session, path)
    assert audit.report(source).tables["findings"].count() == 0
    source.close()


def decoded(directory: Path, topic: Topic, runs: int) -> None:
    """The decoder alone, one process, what it reads in the page cache."""
    at = Directory(str(directory))
    (segment, *_) = at.segments(topic.name, 0)
    data, size = at.files.part(segment.name(), 0, segment.size)
    table = scan(data, 0, size).table
    count = int(table["count"].sum())

    def work() -> None:
        assert sum(len(one.offset) for one in open_batches(data, table) if isinstance(one, Opened)) == count

    work()
    rate = count / median(work, runs * 3).processors / 1e6
    print(f"{topic.label:12} decoder: {rate:.1f} M records/s and core (target 8)", flush=True)


def main(arguments: list[str]) -> int:
    if "verdict" in arguments:
        return verdicts.main(arguments)
    options = dict(one.split("=") for one in arguments if "=" in one)
    count, runs = int(options.get("records", RECORDS)), int(options.get("runs", RUNS))
    is_audit = "audit" in arguments
    found = None if is_audit else jars.connector()
    with Kafka({"log.segment.bytes": 256 << 20}, quick=False) as kafka:
        for topic in TOPICS:
            fill(kafka.bootstrap_servers, topic, int(count * topic.share))
        with spark(found) as session:
            if not is_audit:
                for topic in TOPICS:
                    rows_per_second(session, kafka, topic, int(count * topic.share), runs, found is not None)
                    if found is not None:
                        equality(session, kafka, topic)
                range_of_offsets(session, kafka, TOPICS[0], runs)
            audited(session, kafka.data_directory, runs)
        for topic in TOPICS if not is_audit else ():
            decoded(kafka.data_directory, topic, runs)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
