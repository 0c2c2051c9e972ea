"""Java's clients and librdkafka push their metrics (KIP-714), as kafka-client-metrics asks them to."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer

from ottla.testing import Broker

from ..oracle.kafka import program
from ..oracle.tools import tool
from ..support.poll import until
from ..support.telemetry import altered
from ..support.wire import Wire

pytestmark = pytest.mark.slow
PRODUCER, CONSUMER = "org_apache_kafka_producer_", "org_apache_kafka_consumer_"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def subscribe(broker: Broker, **values: str | None) -> None:
    """Changes the subscription `m`; None removes a value."""
    with Wire(broker.bootstrap_servers) as wire:
        assert wire.ask("IncrementalAlterConfigs", 1, altered("m", **values)).responses[0].error_code == 0


@pytest.fixture
def all_metrics(broker: Broker) -> Iterator[None]:
    subscribe(broker, metrics="*", interval_ms="100")
    yield
    subscribe(broker, metrics=None, interval_ms=None)


def client(broker: Broker, client_id: str, connected: bool = True) -> Any:
    """The client that pushes metrics, by client id; None if there is none."""
    found = (one for one in broker.lab.clients() if one["client_id"] == client_id)
    return next((one for one in found if one["telemetry"] and one["connected"] is connected), None)


def pushes_of(broker: Broker, client_id: str, more_than: int = 0) -> Any:
    """The client, after it has pushed more often than so."""

    def is_there() -> Any:
        found = client(broker, client_id)
        return found if found and found["telemetry"]["pushes"] > more_than else None

    return until(is_there, f"pushes of {client_id}", every=0.05)


def names_of(broker: Broker, client: str) -> set[str]:
    return {one["name"] for one in broker.lab.get(f"clients/{client}")["metrics"]}


def metrics(broker: Broker) -> str:
    with urlopen(f"{broker.lab_url}/metrics", timeout=60) as answer:
        text: str = answer.read().decode()
    return text


@contextmanager
def librdkafka(broker: Broker, client_id: str, **more: object) -> Iterator[Callable[[], None]]:
    """A producer of librdkafka that pushes metrics; yields a function that produces a record."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "client.id": client_id, "enable.metrics.push": True}
    producer = Producer({**settings, **more})

    def produce() -> None:
        producer.produce("t", b"value")
        assert producer.flush(60) == 0

    produce()
    yield produce
    producer.flush(60)


def test_librdkafka_pushes_and_says_when_it_ends(broker: Broker, all_metrics: None) -> None:
    with librdkafka(broker, "rd", **{"compression.type": "zstd"}):
        found = pushes_of(broker, "rd", more_than=1)
        instance_id = found["telemetry"]["client_instance_id"]
        names = names_of(broker, found["id"])
        assert {one for one in names if one.startswith(PRODUCER)} >= {f"{PRODUCER}connection_creation_total"}
        assert f'client_instance_id="{instance_id}"' in metrics(broker)
        assert found["software_name"] == "confluent-kafka-python" or "librdkafka" in found["software_name"]
        assert found["telemetry"]["requested_metrics"] == ["*"]
        assert found["requests"]["PushTelemetry v0"] >= 2
    assert ended_of(broker, instance_id)["telemetry"]["has_ended"]
    assert names_of(broker, instance_id) >= names


def ended_of(broker: Broker, instance_id: str) -> Any:
    """The client, once it has no connection any more; its metrics are still there."""

    def has_ended() -> Any:
        return next((one for one in broker.lab.clients() if one["id"] == instance_id), None)

    return until(has_ended, f"the end of {instance_id}", every=0.05)


def test_subscriptions_that_change_and_end(broker: Broker) -> None:
    subscribe(broker, metrics=f"{PRODUCER.replace('_', '.')}connection.", interval_ms="100")
    with librdkafka(broker, "changing"):
        found = pushes_of(broker, "changing")
        names = names_of(broker, found["id"])
        assert names
        assert all("connection" in one for one in names)
        subscribe(broker, metrics=f"{PRODUCER.replace('_', '.')}node.")
        until(
            lambda: any("_node_" in one for one in names_of(broker, found["id"])),
            "metrics of the new subscription",
            every=0.05,
        )
        subscribe(broker, metrics=None, interval_ms=None)
        until(lambda: client(broker, "changing")["telemetry"]["requested_metrics"] == [], "no subscription", every=0.05)
        before = client(broker, "changing")["telemetry"]["pushes"]
        subscribe(broker, metrics="*", interval_ms="100", match="client_id=other")
        assert client(broker, "changing")["telemetry"]["pushes"] == before
        subscribe(broker, metrics=None, interval_ms=None, match=None)


def test_pushes_that_are_too_large_harm_nothing() -> None:
    with Broker({"telemetry.max.bytes": 10}) as broker:
        subscribe(broker, metrics="*", interval_ms="100")
        with librdkafka(broker, "large") as produce:
            too_large = 'kafka_network_RequestMetrics_Errors_total{error="118",request="PushTelemetry"}'
            until(lambda: too_large in metrics(broker), "TELEMETRY_TOO_LARGE", every=0.05)
            produce()
            assert client(broker, "large")["telemetry"]["pushes"] == 0


def test_a_broker_that_starts_again_gets_the_metrics_again(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker:
        subscribe(broker, metrics="*", interval_ms="100")
        with librdkafka(broker, "faithful") as produce:
            before = pushes_of(broker, "faithful")["telemetry"]
            broker.stop()
            broker.start()
            produce()
            after = pushes_of(broker, "faithful")["telemetry"]
            assert after["client_instance_id"] == before["client_instance_id"]
            assert after["subscription_id"] == before["subscription_id"]


@pytest.mark.oracle
def test_javas_clients_push_what_kafka_client_metrics_asks_for(broker: Broker, tmp_path: Path) -> None:
    at = ("--bootstrap-server", broker.bootstrap_servers)
    match = "client_software_name=apache-kafka-java,client_id=java-.*"
    asked = (
        "--metrics",
        "org.apache.kafka.producer.,org.apache.kafka.consumer.",
        "--interval",
        "100",
        "--match",
        match,
    )
    made = tool("ClientMetricsCommand", *at, "--alter", "--name", "java", *asked)
    assert "Altered client metrics config for java." in made.stdout, made.stdout + made.stderr
    assert tool("ClientMetricsCommand", *at, "--list").stdout.split() == ["java"]
    command = [*program("tools", "TelemetryClients", tmp_path), broker.bootstrap_servers, "java-topic"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        instances = process.stdout.readline().split()
        producer, consumer = (pushes_of(broker, name, more_than=1) for name in ("java-producer", "java-consumer"))
        assert [one["telemetry"]["client_instance_id"] for one in (producer, consumer)] == instances
        assert f"{PRODUCER}record_send_total" in names_of(broker, producer["id"])
        assert f"{CONSUMER}poll_idle_ratio_avg" in names_of(broker, consumer["id"])
        shown = metrics(broker)
        assert f'{PRODUCER}record_send_total{{client_id="java-producer",client_instance_id="{instances[0]}"}}' in shown
        assert 'group_id="java-group"' in shown
        process.stdin.write("end\n")
        process.stdin.flush()
        assert process.stdout.read().split()[-1:] == ["ok"]
    ended = [ended_of(broker, one) for one in instances]
    assert ended[1]["telemetry"]["has_ended"]  # Java's producer sends its last push only if other requests are pending
    assert tool("ClientMetricsCommand", *at, "--delete", "--name", "java").returncode == 0
    assert tool("ClientMetricsCommand", *at, "--list").stdout.split() == []
