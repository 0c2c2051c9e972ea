"""Data directories go both ways: Kafka's tools read what ottla wrote, Kafka starts on it, and ottla opens and extends Kafka's."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from .ask import create, fetch, produce
from .dumps import check_directory
from .oracle.kafka import Kafka, tool
from .wire import Wire

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
NOW = int(time.time() * 1000)


def fill(broker: Broker) -> None:
    chance = random.Random(5)
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, "plain", 2, segment_bytes="1048576", index_interval_bytes="100")
        create(wire, "small", segment_bytes="1048576", segment_index_bytes="100", index_interval_bytes="10")
        for n in range(60):
            produce(wire, "plain", *[b"%d" % n * chance.randrange(40) for _ in range(3)], partition=n % 2, codec=n % 5, now=1000 + n)
            produce(wire, "small", b"%d" % n, producer_id=3, producer_epoch=0, base_sequence=n, now=NOW - n)


def test_kafkas_tools_read_every_file(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker:
        fill(broker)
    assert check_directory(tmp_path / "data") > 10
    log = tmp_path / "data" / "__cluster_metadata-0" / "00000000000000000000.log"
    dumped = tool("DumpLogSegments", "--cluster-metadata-decoder", "--files", str(log)).stdout
    assert '"type":"TOPIC_RECORD","version":0,"data":{"name":"plain"' in dumped
    assert "LeaderChange" in dumped


def test_kafka_starts_on_ottlas_directory(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker:
        fill(broker)
        with Wire(broker.bootstrap_servers) as wire:
            before = fetch(wire, "plain"), fetch(wire, "small")
    (tmp_path / "data" / "ottla.json").unlink()
    kafka = Kafka(directory=tmp_path, formatted=True)
    with kafka, Wire(kafka.bootstrap_servers) as wire:
        assert (fetch(wire, "plain"), fetch(wire, "small")) == before
        assert produce(wire, "plain", b"by Kafka").error_code == 0
        again = produce(wire, "small", b"59", producer_id=3, producer_epoch=0, base_sequence=59, now=NOW - 59)
        assert again.base_offset == 59, "Kafka knows the producer from our snapshot"


def test_ottla_opens_and_extends_kafkas_directory(tmp_path: Path) -> None:
    with Kafka(directory=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        topic_id = create(wire, "theirs", 2, retention_ms="900000000")
        while produce(wire, "theirs", b"0").error_code:
            continue
        for n in range(1, 40):
            produce(wire, "theirs", b"%d" % n, codec=n % 5)
    broker = Broker({"node.id": 1}, directory=tmp_path)
    with broker, Wire(broker.bootstrap_servers) as wire:
        (topic,) = [t for t in wire.ask("Metadata", 12, m.MetadataRequest(topics=None)).topics if t.name == "theirs"]
        assert (topic.topic_id, len(topic.partitions)) == (topic_id, 2)
        while produce(wire, "theirs", b"40", acks=1).error_code:
            continue
        assert fetch(wire, "theirs") == [b"%d" % n for n in range(41)]
    assert check_directory(tmp_path / "data") > 3
    with Kafka(directory=tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert fetch(wire, "theirs") == [b"%d" % n for n in range(41)]
