"""Kafka 0.8.2.2's MirrorMaker carries topics from a broker in a ZooKeeper, ottla or Kafka, to an ottla."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ottla.classic import (
    EARLIEST_TIME,
    FetchRequest,
    Producer,
    ProducerConfig,
    ProducerData,
    StringEncoder,
)

from ottla.testing import Broker

from ..support.classic_group import leader_of, leaders_of
from ..support.poll import until
from .conftest import PARTITIONS
from .installations import Installation
from .jars import archived, classpath

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
PART = "kafka-0.8.2.2"
COUNT = 200
CONSUMER = {"auto.offset.reset": "smallest", "auto.commit.interval.ms": 500, "zookeeper.session.timeout.ms": 3000}
PRODUCER = {"request.required.acks": -1, "producer.type": "async", "queue.buffering.max.ms": 50}


@pytest.fixture(scope="module")
def target() -> Iterator[Broker]:
    with Broker({"ottla.emulate": "0.8.2", "num.partitions": PARTITIONS}) as running:
        yield running


def _properties(path: Path, values: dict[str, object]) -> str:
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return str(path)


@contextmanager
def _mirror(source: Installation, target: Broker, topic: str, storage: str, folder: Path) -> Iterator[None]:
    """Runs until it is told to end, and then commits what it has carried."""
    consumer: dict[str, object] = {**CONSUMER, "group.id": topic, "zookeeper.connect": source.zookeeper}
    consumer |= {"offsets.storage": storage, "dual.commit.enabled": "false"}
    producer: dict[str, object] = {**PRODUCER, "metadata.broker.list": target.bootstrap_servers}
    command = [
        *("java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *archived(PART, "mirror")),
        *("-cp", classpath(PART), "kafka.tools.MirrorMaker", "--whitelist", topic),
        *("--consumer.config", _properties(folder / "consumer.properties", consumer)),
        *("--producer.config", _properties(folder / "producer.properties", producer)),
    ]
    with (folder / "mirror.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield
        assert process.poll() is None, (folder / "mirror.log").read_text()[-2000:]
        process.terminate()
        process.wait(60)
    finally:
        process.kill()
        process.wait(60)


def _write(source: Installation, topic: str, start: int) -> set[tuple[bytes, bytes]]:
    config = ProducerConfig(source.bootstrap_servers, request_required_acks=1, message_send_max_retries=50)
    producer: Producer[str, bytes] = Producer(config, key_encoder=StringEncoder())
    for n in range(start, start + COUNT):
        producer.send(ProducerData(topic, [b"value-%d" % n], key=f"key-{n}"))
    producer.close()
    return {(b"key-%d" % n, b"value-%d" % n) for n in range(start, start + COUNT)}


def _read(target: Broker, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """All messages of a topic; none while it is not there yet."""
    found: list[tuple[bytes | None, bytes | None]] = []
    for partition in leaders_of(target.bootstrap_servers, topic):
        with leader_of(target.bootstrap_servers, topic, partition) as consumer:
            (offset,) = consumer.get_offsets_before(topic, partition, EARLIEST_TIME, 1)
            while messages := list(consumer.fetch(FetchRequest(topic, partition, offset, 1 << 20))):
                found += [(one.message.key, one.message.value) for one in messages]
                offset = messages[-1].offset + 1
    return found


def _carried(target: Broker, topic: str, count: int) -> None:
    """Waits for so many messages."""
    until(lambda: len(_read(target, topic)) == count, f"{count} messages of {topic} are carried", within=60)


@pytest.mark.parametrize("storage", ["zookeeper", "kafka"])
def test_it_carries_each_message_once(kafka: Installation, target: Broker, storage: str, tmp_path: Path) -> None:
    """It is stopped and started again: it goes on where it was, by the offsets that it committed."""
    topic = f"mirrored-{storage}-{type(kafka).__name__}"
    wanted = _write(kafka, topic, 0)
    for start in (COUNT, 2 * COUNT):
        with _mirror(kafka, target, topic, storage, tmp_path):
            _carried(target, topic, len(wanted))
            wanted |= _write(kafka, topic, start)
            _carried(target, topic, len(wanted))
    found = _read(target, topic)
    assert len(found) == len(wanted)
    assert set(found) == wanted
