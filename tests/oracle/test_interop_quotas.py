"""Client quotas go both ways in a data directory, and Kafka's tools set them and show them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.ask import batch, create, produce_message
from ..support.poll import until
from ..support.wire import Wire
from .kafka import Kafka
from .tools import tool

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
A = m.AlterClientQuotasRequest
Limits = dict[tuple[tuple[str, str | None], ...], dict[str, float]]
LIMITS: Limits = {
    (("client-id", "wire"),): {"producer_byte_rate": 1000.0, "request_percentage": 1e6},
    (("client-id", None), ("user", "ünï code")): {"consumer_byte_rate": 5.0},
    (("user", None),): {"controller_mutation_rate": 0.5},
    (("ip", "10.0.0.1"),): {"connection_creation_rate": 3.0},
}


def alter(wire: Wire) -> None:
    """Sets the limits, and one more that it removes again."""
    gone: Limits = {(("user", "gone"),): {"producer_byte_rate": 7.0}}
    for limits, remove in ((LIMITS | gone, False), (gone, True)):
        entries = [
            A.EntryData(
                entity=[A.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                ops=[A.OpData(key=key, value=value, remove=remove) for key, value in values.items()],
            )
            for entity, values in limits.items()
        ]
        reply = wire.ask("AlterClientQuotas", 1, A(entries=entries))
        assert {one.error_code for one in reply.entries} == {0}


def described(wire: Wire) -> Limits:
    reply = wire.ask("DescribeClientQuotas", 1, m.DescribeClientQuotasRequest(components=[], strict=False))
    return {
        tuple(sorted((one.entity_type, one.entity_name) for one in entry.entity)): {
            value.key: value.value for value in entry.values
        }
        for entry in reply.entries
    }


def is_throttled(wire: Wire) -> bool:
    """Whether a Produce beyond the byte rate of the client id has a throttle time."""
    create(wire, "t")
    replies: list[m.ProduceResponse] = []

    def is_produced() -> bool:  # Kafka may not lead the partition yet when it has created the topic
        replies.append(wire.ask("Produce", 9, produce_message("t", batch(b"x" * 10_500))))
        return replies[-1].responses[0].partition_responses[0].error_code == 0

    until(is_produced, "the broker leads the partition")
    return bool(replies[-1].throttle_time_ms)


def test_kafka_keeps_to_the_limits_that_ottla_wrote(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        alter(wire)
        assert described(wire) == LIMITS
    with Kafka(directory=tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert described(wire) == LIMITS
        assert is_throttled(wire)


def test_ottla_keeps_to_the_limits_that_kafka_wrote(tmp_path: Path) -> None:
    with Kafka(directory=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        alter(wire)
        until(lambda: described(wire) == LIMITS, "Kafka describes the limits")
    with Broker({"node.id": 1}, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert described(wire) == LIMITS
        assert is_throttled(wire)


def test_kafkas_tool() -> None:
    def configs(*arguments: str) -> str:
        done = tool("kafka.admin.ConfigCommand", "--bootstrap-server", broker.bootstrap_servers, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    entities = {
        "users": ("--entity-name", "alice"),
        "clients": ("--entity-default",),
        "ips": ("--entity-name", "10.0.0.1"),
    }
    with Broker() as broker:
        for kind, which in entities.items():
            key = "connection_creation_rate" if kind == "ips" else "producer_byte_rate"
            configs("--alter", "--entity-type", kind, *which, "--add-config", f"{key}=100")
            assert f"{key}=100.0" in configs("--describe", "--entity-type", kind, *which)
            configs("--alter", "--entity-type", kind, *which, "--delete-config", key)
            assert key not in configs("--describe", "--entity-type", kind, *which)
        both = ("--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-name", "c")
        configs("--alter", *both, "--add-config", "request_percentage=200,consumer_byte_rate=5")
        found = configs("--describe", *both)
        assert "request_percentage=200.0" in found
        assert "consumer_byte_rate=5.0" in found
        refused = tool(
            "kafka.admin.ConfigCommand", "--bootstrap-server", broker.bootstrap_servers, "--alter",
            "--entity-type", "clients", "--entity-name", "c", "--add-config", "producer_byte_rate=-1",
        )  # fmt: skip
        assert "must be greater than 0" in refused.stdout + refused.stderr
