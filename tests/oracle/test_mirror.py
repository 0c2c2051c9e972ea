"""MirrorMaker 2 carries topics, configurations and groups' offsets between ottla and Apache Kafka, in both directions
at the same time, while both run.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla.testing import Broker

from ..support.ask import create, fetch, fetch_message
from ..support.poll import until
from ..support.wire import Wire
from .kafka import Kafka, java

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
COUNT = 50


def properties(ours: str, theirs: str) -> str:
    """The file of docs/how-to/handover.md, with short intervals and free ports."""
    values = {
        "clusters": "ottla, kafka",
        "ottla.bootstrap.servers": ours,
        "kafka.bootstrap.servers": theirs,
        "ottla->kafka.enabled": "true",
        "kafka->ottla.enabled": "true",
        "topics": "orders",
        "groups": "g",
        "replication.factor": 1,
        "offset-syncs.topic.replication.factor": 1,
        "checkpoints.topic.replication.factor": 1,
        "heartbeats.topic.replication.factor": 1,
        "config.storage.replication.factor": 1,
        "offset.storage.replication.factor": 1,
        "status.storage.replication.factor": 1,
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": 1,
        "emit.checkpoints.interval.seconds": 1,
        "refresh.topics.interval.seconds": 5,
        "refresh.groups.interval.seconds": 1,
        "offset.lag.max": 0,
        "listeners": "http://127.0.0.1:0",
        "dedicated.mode.enable.internal.rest": "false",
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


def fill(servers: str, name: str) -> None:
    """Records, and a group that has read all of them."""
    with Wire(servers) as wire:
        until(lambda: create(wire, "orders", 1, retention_ms="900000000"), "the topic is created")
    producer = Producer({"bootstrap.servers": servers, "log_level": 2})
    for number in range(COUNT):
        producer.produce("orders", f"{name} {number}", partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    consumer.subscribe(["orders"])
    read: list[Any] = []

    def is_read() -> bool:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            read.append(message)
        return len(read) == COUNT

    until(is_read, "the records are read")
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of ottla and of Kafka."""
    path = tmp_path_factory.mktemp("mirror")
    with Broker() as ottla, Kafka() as kafka:
        ours, theirs = ottla.bootstrap_servers, kafka.bootstrap_servers
        fill(ours, "ottla")
        fill(theirs, "kafka")
        file = path / "mm2.properties"
        file.write_text(properties(ours, theirs))
        with (path / "mirror.log").open("wb") as log:
            command = java("mirror", "org.apache.kafka.connect.mirror.MirrorMaker", str(file))
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield ours, theirs
        finally:
            process.kill()
            process.wait()


def copied(servers: str, topic: str) -> list[bytes | None]:
    """The records of the copy, as soon as there are all of them."""

    def found() -> list[bytes | None] | None:
        with Wire(servers) as wire:
            reply = wire.ask("Metadata", 12, m.MetadataRequest(topics=None))
            if not any(one.name == topic and one.partitions[0].leader_id >= 0 for one in reply.topics):
                return None
            (first,) = wire.ask("Fetch", 11, fetch_message(topic, 0)).responses[0].partitions
            if first.error_code == Errors.NOT_LEADER_OR_FOLLOWER:  # Kafka shows a leader before it leads
                return None
            values = fetch(wire, topic)
        return values if len(values) >= COUNT else None

    return until(found, f"{topic} is copied", every=0.2)


def committed(servers: str, topic: str) -> int:
    """Where the group goes on in the copy; -1 if it is not known."""
    r = m.OffsetFetchRequest
    asked = r.OffsetFetchRequestGroup(
        group_id="g", topics=[r.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    )
    with Wire(servers) as wire:
        found = wire.ask("OffsetFetch", 8, r(groups=[asked])).groups[0]
    return int(found.topics[0].partitions[0].committed_offset) if not found.error_code else -1


def retention(servers: str, topic: str) -> str:
    r = m.DescribeConfigsRequest
    with Wire(servers) as wire:
        reply = wire.ask(
            "DescribeConfigs", 4, r(resources=[r.DescribeConfigsResource(resource_type=2, resource_name=topic)])
        )
    return next(str(one.value) for one in reply.results[0].configs if one.name == "retention.ms")


@pytest.mark.parametrize(("source", "target"), [("ottla", "kafka"), ("kafka", "ottla")])
def test_a_topic_is_copied_with_its_configuration_and_the_offsets_of_its_groups(
    source: str, target: str, mirrored: tuple[str, str]
) -> None:
    servers = mirrored[("ottla", "kafka").index(target)]
    copy = f"{source}.orders"
    assert copied(servers, copy) == [f"{source} {n}".encode() for n in range(COUNT)]
    assert retention(servers, copy) == "900000000"
    until(lambda: committed(servers, copy) == COUNT, "the offset of the group is translated", every=0.2)
