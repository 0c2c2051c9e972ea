"""One Spark session for all tests, and small data directories that real clients filled."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from ottla.pipeline.java import check_java

from ottla import pipeline
from ottla.testing import Broker

from ..committed import committed

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FAST = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "OFF",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    try:
        check_java()
    except RuntimeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    session = pipeline.session(**FAST)
    yield session
    session.stop()


class Served(NamedTuple):
    """A data directory, and the records that a client read of it by topic: partition, offset, timestamp, key, value, headers."""

    path: str
    read: dict[str, list[tuple[Any, ...]]]


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    directory: Path = tmp_path_factory.mktemp("served")
    with Broker({"log.segment.bytes": 1 << 20, "log.index.interval.bytes": 500}, directory=directory) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for made in admin.create_topics([NewTopic("codecs", 3, 1), NewTopic("exact", 1, 1)]).values():
            made.result()
        for codec in CODECS:
            fill(broker.bootstrap_servers, codec)
        transactions(broker.bootstrap_servers)
        read = {topic: consumed(broker.bootstrap_servers, topic, partitions) for topic, partitions in (("codecs", 3), ("exact", 1))}
    return Served(str(directory / "data"), read)


def fill(servers: str, codec: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "compression.type": codec, "batch.num.messages": 50, "enable.idempotence": True})
    for n in range(600):
        headers = [("n", b"%d" % n), ("null", None)] if n % 4 == 0 else None
        producer.produce("codecs", f"{codec}-{n}" * 3 if n % 7 else None, f"k{n % 5}" if n % 3 else None, headers=headers)
    assert producer.flush(30) == 0


def transactions(servers: str) -> None:
    """Six transactions, every second one aborted, and one that stays open."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "exact"})
    producer.init_transactions(30)
    for number in range(7):
        producer.begin_transaction()
        for n in range(10):
            producer.produce("exact", f"{number}-{n}")
        producer.flush(30)
        if number < 6:
            (producer.commit_transaction if number % 2 else producer.abort_transaction)(30)


def consumed(servers: str, topic: str, partitions: int) -> list[tuple[Any, ...]]:
    found = []
    for one in committed(servers, topic, partitions):
        headers = [tuple(pair) for pair in one.headers() or []]
        found.append((one.partition(), one.offset(), one.timestamp()[1], one.key(), one.value(), headers))
    return sorted(found, key=lambda row: row[:2])
