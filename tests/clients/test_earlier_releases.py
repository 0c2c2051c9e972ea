"""Clients of all years against the releases that a broker emulates: they write, read from the beginning, and commit."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PyTopicPartition
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS
from ottla.broker.config.config import RELEASES
from ottla.protocol.config_def import numbers_of

from ottla.testing import Broker

from ..oracle.jars import classpath, missing
from ..support.poll import until
from .conftest import Run
from .earlier_pairs import ALL, pairs, since

pytestmark = pytest.mark.slow
CODECS = ("none", "gzip", "snappy", "lz4")
VALUES = [b"%d-%s" % (number, b"x" * number) for number in range(20)]
OWN = [("0.8.2", "0.8.2"), ("0.9", "0.9"), ("0.10.2", "0.10.2"), ("2.8", "2.8")]
PYTHON = [one for one in RELEASES if numbers_of(one) in BROKER_API_VERSIONS]
FALLBACKS = {
    "0.8.2": "0.8.2.2",
    "0.9": "0.9.0.1",
    "0.10.0": "0.10.0.1",
    "0.10.1": "0.10.1.1",
    "0.10.2": "0.10.2.2",
}
SARAMA = {one: f"{one}.0.0" if one in ("0.9", "0.11") else f"{one}.0" for one in since("0.8.2", "4.1")}
NEWEST_MESSAGES = {"0.8.2": CODECS[:3], "0.9": CODECS[:3]}  # librdkafka writes lz4 since 0.10


@pytest.fixture(scope="module")
def brokers() -> Iterator[dict[str, Broker]]:
    """Makes a broker of a release when it is first asked for."""
    running: dict[str, Broker] = {}

    class Made(dict[str, Broker]):
        def __missing__(self, release: str) -> Broker:
            broker = Broker(settings={"ottla.emulate": release, "num.partitions": 1}, lab=False)
            running[release] = self[release] = broker.__enter__()
            return broker

    yield Made()
    for broker in running.values():
        broker.__exit__(None, None, None)


@pytest.mark.parametrize(("client", "release"), pairs(PYTHON, OWN))
def test_kafka_python(brokers: dict[str, Broker], client: str, release: str) -> None:
    servers, api_version = brokers[release].bootstrap_servers, numbers_of(client)
    topic = f"python-{client}"
    for codec in CODECS:
        producer = KafkaProducer(
            bootstrap_servers=servers,
            api_version=api_version,
            compression_type=None if codec == "none" else codec,
            acks="all",
            linger_ms=5,
        )
        futures = [producer.send(topic, value, key=b"k", partition=0) for value in VALUES]
        offsets = [future.get(20).offset for future in futures]
        assert offsets == sorted(set(offsets)), codec
        producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=servers, api_version=api_version, group_id=f"g-{topic}", enable_auto_commit=False
    )
    place = PyTopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    found: list[Any] = []
    expected = VALUES * len(CODECS)

    def is_read() -> bool:
        for some in consumer.poll(200).values():
            found.extend(some)
        return len(found) >= len(expected)

    until(is_read, "all is read", within=30)
    assert [one.value for one in found] == expected
    assert [one.offset for one in found] == list(range(len(expected)))
    consumer.commit()
    assert consumer.committed(place) == len(expected)
    consumer.close()


def librdkafka(servers: str, client: str, **more: Any) -> dict[str, Any]:
    """The configuration of a client that does not ask for versions, as those before 0.10 could not. Without `client` it
    does.
    """
    asks = {"api.version.request": False, "broker.version.fallback": FALLBACKS[client]} if client else {}
    return {
        "bootstrap.servers": servers,
        **asks,
        "log_level": 2,
        **more,
    }


RD_OWN = [*OWN[:3], ("0.9", "2.8")]
RD_ASKING = [("", one) for one in (since("0.10.0") if ALL else ("0.10.0", "3.9"))]


@pytest.mark.parametrize(("client", "release"), [*pairs(FALLBACKS, RD_OWN), *RD_ASKING])
def test_librdkafka(brokers: dict[str, Broker], client: str, release: str) -> None:
    servers = brokers[release].bootstrap_servers
    topic, codecs, sent = f"rd-{client}", NEWEST_MESSAGES.get(client or release, CODECS), 0
    reported: list[Any] = []
    for codec in codecs:
        producer = Producer(librdkafka(servers, client, **{"compression.type": codec, "linger.ms": 5}))
        for value in VALUES:
            producer.produce(topic, value, b"k", partition=0, on_delivery=lambda *what: reported.append(what))
            sent += 1
        assert producer.flush(30) == 0
    assert [error for error, _ in reported if error is not None] == []
    consumer = Consumer(librdkafka(servers, client, **{"group.id": f"g-{topic}", "enable.auto.commit": False}))
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[Any] = []
    deadline = time.monotonic() + 30
    while len(found) < sent and time.monotonic() < deadline:
        found += [one for one in consumer.consume(100, 0.2) if one.error() is None]
    assert [one.value() for one in found] == VALUES * len(codecs)
    assert [one.offset() for one in found] == list(range(sent))
    consumer.commit(offsets=[TopicPartition(topic, 0, sent)], asynchronous=False)
    assert consumer.committed([TopicPartition(topic, 0)], 10)[0].offset == sent
    consumer.close()


def old_tool(version: str, name: str, *arguments: str, given: str = "") -> str:
    """Runs a tool of an old Kafka; returns what it prints."""
    command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classpath(f"kafka-{version}")]
    done = subprocess.run(
        [*command, f"kafka.tools.{name}", *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture
def jvm() -> None:
    reason = missing()
    if reason is not None:
        assert not os.environ.get("CI"), reason
        pytest.skip(reason)


def test_tools_of_0_8_2(brokers: dict[str, Broker], jvm: None) -> None:
    """The Scala producer and SimpleConsumer, and the command-line tools that use them."""
    servers, topic, version = brokers["0.8.2"].bootstrap_servers, "tools-0.8.2", "0.8.2.2"
    lines = [f"{number}:value {number}" for number in range(100)]
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    for more in (("--sync",), ("--compression-codec", "gzip")):
        old_tool(
            *(version, "ConsoleProducer", "--broker-list", servers, "--topic", topic, *keyed, *more),
            given="\n".join(lines) + "\n",
        )
    listed = old_tool(version, "GetOffsetShell", "--broker-list", servers, "--topic", topic, "--time", "-1")
    assert listed.split() == [f"{topic}:0:200"]
    shown = old_tool(
        *(version, "SimpleConsumerShell", "--broker-list", servers, "--topic", topic, "--partition", "0"),
        *("--offset", "-2", "--no-wait-at-logend", "--property", "print.key=true"),
    )
    found = [line.replace("\t", ":") for line in shown.splitlines() if "value" in line]
    assert found[:100] == lines
    assert sorted(found) == sorted(lines * 2)


def test_tools_of_0_10_2(brokers: dict[str, Broker], jvm: None) -> None:
    """The Java producer and the new consumer of 0.10.2, in the console tools."""
    servers, topic, version = brokers["0.10.2"].bootstrap_servers, "tools-0.10.2", "0.10.2.2"
    lines = [f"value {number}" for number in range(100)]
    old_tool(
        *(version, "ConsoleProducer", "--broker-list", servers, "--topic", topic, "--compression-codec", "lz4"),
        given="\n".join(lines) + "\n",
    )
    shown = old_tool(
        *(version, "ConsoleConsumer", "--bootstrap-server", servers, "--topic", topic, "--from-beginning"),
        *("--max-messages", "100", "--timeout-ms", "30000"),
    )
    assert shown.split("\n")[:100] == lines


@pytest.mark.go
@pytest.mark.parametrize(("client", "release"), pairs(SARAMA, [*OWN[:3], ("0.8.2", "2.8")]))
def test_sarama(brokers: dict[str, Broker], go_clients: Run, client: str, release: str) -> None:
    go_clients(brokers[release].bootstrap_servers, "earlier", f"sarama-{client}", SARAMA[client], within=60)


@pytest.mark.node
@pytest.mark.parametrize("release", since("0.10.0") if ALL else ["0.10.0", "2.8"])
def test_kafkajs(brokers: dict[str, Broker], kafkajs: Run, release: str) -> None:
    creates = () if release == "0.10.0" else ("creates",)
    kafkajs("earlier.js", brokers[release].bootstrap_servers, f"kafkajs-{release}", *creates, within=60)


@pytest.mark.node
@pytest.mark.skipif(not ALL, reason="needs OTTLA_RELEASES=1: what kafka-node comes with takes long to install")
@pytest.mark.parametrize("release", since("0.9", "4.0"))
def test_kafka_node(brokers: dict[str, Broker], kafka_node: Run, release: str) -> None:
    """0.8.2 ends the connection for a request that it does not know, with which kafka-node begins."""
    kafka_node("earlier.js", brokers[release].bootstrap_servers, f"kafka-node-{release}", "groups", within=60)
