"""Quotas of a running broker: connections that wait or are closed, muted connections, metrics, and Kafka's own tool."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.ask import batch, create, lab_text, produce_message
from ..support.wire import Closed, Wire

pytestmark = pytest.mark.slow
A = m.AlterClientQuotasRequest


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"max.connections.per.ip.overrides": "127.0.0.3:2", "quota.window.num": 3}) as running:
        yield running


def limit(wire: Wire, kind: str, name: str | None, key: str, value: float) -> None:
    entity = [A.EntityData(entity_type=kind, entity_name=name)]
    reply = wire.ask(
        "AlterClientQuotas", 1, A(entries=[A.EntryData(entity=entity, ops=[A.OpData(key=key, value=value)])])
    )
    assert reply.entries[0].error_code == 0


def asks(wire: Wire) -> None:
    wire.ask("ApiVersions", 0, m.ApiVersionsRequest())


def test_a_muted_connection_serves_the_next_request_after_the_throttle_time(broker: Broker) -> None:
    """Two requests in one write: the reply of the second one comes when the connection is not muted any more."""
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, "t")
        limit(wire, "client-id", None, "producer_byte_rate", 10_000.0)
        request = produce_message("t", batch(b"x" * 12_000))
        for _ in range(2):
            wire.say("Produce", 9, request)
        first, second = (wire.reply("Produce", 9) for _ in range(2))
        assert second.throttle_time_ms > first.throttle_time_ms >= 0
        wire.say("Produce", 9, request)
        asked = wire.reply("Produce", 9)
        assert asked.throttle_time_ms > 0
    text = lab_text(broker, "/metrics")
    assert 'kafka_server_Produce_throttle_time{client_id="wire",user=""}' in text
    assert 'kafka_server_Produce_byte_rate{client_id="wire",user=""}' in text


def test_connections_beyond_the_rate_of_their_address_are_closed_and_counted(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        limit(wire, "ip", "127.0.0.2", "connection_creation_rate", 2.0)
    found = []
    for one in [Wire(broker.bootstrap_servers, source="127.0.0.2") for _ in range(8)]:  # all are open before one asks
        with one:
            try:
                asks(one)
                found.append("served")
            except Closed:
                found.append("closed")
    assert found[:4] == ["served"] * 4
    assert "closed" in found
    text = lab_text(broker, "/metrics")
    assert 'socket_server_metrics_ip_connection_accept_rate{ip="127.0.0.2"}' in text
    assert "ip_connection_accept_throttle_time" in text


def test_an_address_has_its_own_number_of_connections(broker: Broker) -> None:
    wires = [Wire(broker.bootstrap_servers, source="127.0.0.3") for _ in range(2)]
    for wire in wires:
        asks(wire)
    with Wire(broker.bootstrap_servers, source="127.0.0.3") as third, pytest.raises((Closed, ConnectionError)):
        asks(third)
    with Wire(broker.bootstrap_servers, source="127.0.0.2") as other:
        asks(other)
    for wire in wires:
        wire.close()


def test_a_listener_takes_connections_at_its_rate() -> None:
    settings = {"listeners": "A://127.0.0.1:0", "listener.security.protocol.map": "A:PLAINTEXT",
                "inter.broker.listener.name": "A", "listener.name.a.max.connection.creation.rate": 2,
                "quota.window.num": 2}  # fmt: skip
    with Broker(settings) as broker:
        wires = [Wire(broker.bootstrap_servers) for _ in range(6)]
        for wire in wires:
            asks(wire)
            wire.close()
        text = lab_text(broker, "/metrics")
    name = "kafka_server_socket_server_metrics_connection_accept_throttle_time{"
    (waited,) = [line for line in text.splitlines() if line.startswith(name)]
    assert float(waited.split()[-1]) > 0


def test_a_connection_that_ends_while_it_waits_or_is_muted_leaves_nothing() -> None:
    settings: dict[str, object] = {"max.connection.creation.rate": 1, "quota.window.num": 2}
    with Broker(settings) as broker:
        with Wire(broker.bootstrap_servers) as wire:
            asks(wire)
        host, port = broker.bootstrap_servers.split(":")
        for _ in range(5):
            socket.create_connection((host, int(port))).close()
        with Wire(broker.bootstrap_servers) as wire:
            asks(wire)
        assert "ottla_bugs_total 0.0" in lab_text(broker, "/metrics")
