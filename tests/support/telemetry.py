"""Subscriptions to metrics of clients, and pushes (KIP-714)."""

from __future__ import annotations

from typing import Any

from ottla.broker.peer import Peer
from ottla.protocol import messages as m

from .world import World

CLIENT = bytes(range(16))
"""The instance id of a client."""


def altered(name: str, **values: str | None) -> m.IncrementalAlterConfigsRequest:
    """A change of a subscription; None removes a value."""
    i = m.IncrementalAlterConfigsRequest
    configs = [
        i.AlterableConfig(name=key.replace("_", "."), config_operation=int(value is None), value=value)
        for key, value in values.items()
    ]
    return i(resources=[i.AlterConfigsResource(resource_type=16, resource_name=name, configs=configs)])


def alter(world: World, name: str, **values: str | None) -> None:
    assert world.ask("IncrementalAlterConfigs", 1, altered(name, **values)).responses[0].error_code == 0


def get(world: World, client: bytes = CLIENT, peer: Peer | None = None) -> Any:
    found = world.send(
        "GetTelemetrySubscriptions", 0, m.GetTelemetrySubscriptionsRequest(client_instance_id=client), peer
    )
    return found.reply


def push(world: World, subscription_id: int, data: bytes = b"", client: bytes = CLIENT, **more: Any) -> int:
    request = m.PushTelemetryRequest(client_instance_id=client, subscription_id=subscription_id, metrics=data, **more)
    return int(world.send("PushTelemetry", 0, request).reply.error_code)
