"""What the APIs of groups share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..coordinator.group.environment import Client
from .context import Context

# READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS, as bits
GROUP_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))


def client_of(context: Context) -> Client:
    """Who asks, as groups remember it."""
    return Client(context.client_id or "", context.peer.host, context.version)


def describe_each(group_ids: Iterable[str], with_operations: bool, describe: Callable[[str], Any]) -> list[Any]:
    """What there is to say of each group, with what a peer may do to it, which is everything."""
    found = []
    for group_id in group_ids:
        out = describe(group_id)
        if with_operations and out.error_code == 0:
            out.authorized_operations = GROUP_OPERATIONS
        found.append(out)
    return found


def supports_consumer_groups(context: Context) -> bool:
    """Whether the finalized `group.version` knows KIP-848, and `group.coordinator.rebalance.protocols` has it."""
    broker = context.broker
    return "consumer" in broker.config["group.coordinator.rebalance.protocols"] and int(broker.image.features.get("group.version", 0)) >= 1
