"""Clients that are throttled show the throttle time, the same as with Kafka within a window."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..oracle.kafka import Kafka
from ..oracle.tools import tool
from ..support.ask import create
from ..support.poll import until
from ..support.wire import Wire
from .conftest import Run

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
A = m.AlterClientQuotasRequest
RATE, SIZE, WINDOW_MS = 10_000.0, 60_000, 1000
SETTINGS: dict[str, object] = {"quota.window.num": 3, "quota.window.size.seconds": 1}
Throttled = Callable[[str, str], float]
"""Produces one batch beyond the quota to a topic; returns the throttle time in ms that the client shows."""


def librdkafka(servers: str, topic: str) -> float:
    found: list[float] = []
    producer = Producer({"bootstrap.servers": servers, "throttle_cb": lambda event: found.append(event.throttle_time)})
    producer.produce(topic, bytes(SIZE))
    producer.flush(30)
    until(lambda: producer.poll(0.05) or found, "the callback of throttle times")
    return max(found) * 1000


def kafka_python(servers: str, topic: str) -> float:
    """It warns of it."""
    warnings: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("kafka").addHandler(handler)
    try:
        with KafkaProducer(bootstrap_servers=servers, max_request_size=1 << 20) as producer:
            producer.send(topic, bytes(SIZE)).get(30)
    finally:
        logging.getLogger("kafka").removeHandler(handler)
    (found,) = re.findall(r"throttled by broker \((\d+) ms\)", " ".join(warnings))
    return float(found)


def java(servers: str, topic: str) -> float:
    done = tool(
        "ProducerPerformance", "--bootstrap-server", servers, "--topic", topic, "--num-records", "1", "--record-size",
        str(SIZE), "--throughput", "-1", "--print-metrics",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = re.findall(r"produce-throttle-time-max:\{.*\}\s*:\s*([\d.]+)", done.stdout)
    return float(found)


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[str, str]]:
    with Broker(SETTINGS, lab=False) as ours, Kafka(SETTINGS) as kafka:
        yield ours.bootstrap_servers, kafka.bootstrap_servers


def limited(servers: str) -> str:
    """Returns a topic; no client has used anything of its quota."""
    topic = f"t-{uuid.uuid4().hex[:8]}"
    ops = [A.OpData(key="producer_byte_rate", value=RATE)]
    entity = [A.EntityData(entity_type="client-id", entity_name=None)]
    with Wire(servers) as wire:
        create(wire, topic)
        wire.ask("AlterClientQuotas", 1, A(entries=[A.EntryData(entity=entity, ops=ops)]))
        described = m.DescribeClientQuotasRequest(components=[], strict=False)
        until(lambda: wire.ask("DescribeClientQuotas", 1, described).entries, "the quota is known")
    return topic


@pytest.mark.parametrize("client", [librdkafka, kafka_python, java], ids=lambda client: client.__name__)
def test_a_client_shows_its_throttle_time(client: Throttled, brokers: tuple[str, str]) -> None:
    compare(client, brokers)


@pytest.mark.go
@pytest.mark.parametrize("what", ["quota", "sarama-quota"])
def test_franz_go_and_sarama_show_their_throttle_times(go_clients: Run, brokers: tuple[str, str], what: str) -> None:
    def produce(servers: str, topic: str) -> float:
        return float(go_clients(servers, what, topic, str(SIZE), within=60).split()[0])

    compare(produce, brokers)


@pytest.mark.node
def test_kafkajs_shows_its_throttle_time(kafkajs: Run, brokers: tuple[str, str]) -> None:
    def produce(servers: str, topic: str) -> float:
        return float(kafkajs("quota.js", servers, topic, str(SIZE), within=60).split()[0])

    compare(produce, brokers)


def compare(client: Throttled, brokers: tuple[str, str]) -> None:
    ours, kafkas = (client(servers, limited(servers)) for servers in brokers)
    expected = (SIZE / RATE - (3 - 1)) * WINDOW_MS  # beyond what two whole windows let through
    for found in (ours, kafkas):
        assert expected - WINDOW_MS <= found <= expected + WINDOW_MS, (ours, kafkas)
    assert abs(ours - kafkas) <= WINDOW_MS
