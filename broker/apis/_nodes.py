"""The nodes that replies name, with their addresses for the client's listener."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from ..config.listener_values import Listener
from ..config.nodes import Node
from ..net.context import Context

Endpoint = TypeVar("Endpoint")


def reachable(context: Context) -> Iterator[tuple[Node, Listener]]:
    """Yields the nodes that are not fenced and have the client's listener, with their addresses."""
    for node in context.broker.alive():
        at = node.address(context.listener)
        if at is not None:
            yield node, at


class Neighbour(NamedTuple):
    id: int
    host: str
    port: int
    rack: str | None


def neighbours(context: Context) -> Iterator[Neighbour]:
    """Yields the brokers of Kafka that are registered in the same ZooKeeper and have the client's listener."""
    zookeeper = context.broker.zookeeper
    for number, one in zookeeper.neighbours.registered.items() if zookeeper is not None else ():
        at = one.listening(context.listener)
        if at is not None:
            yield Neighbour(number, at.host or "", at.port, one.rack)


def controller_id(context: Context) -> int:
    """Returns the node to which a client sends requests to the controller: any that is alive, as in KRaft; -1 if none
    is.
    """
    broker = context.broker
    alive = [node.id for node in broker.alive()]
    return alive[0] if len(alive) == 1 else broker.chance.choice(alive) if alive else -1


def node_endpoints(context: Context, endpoint: Callable[..., Endpoint], leaders: Iterable[int]) -> list[Endpoint]:
    """Returns the endpoints of the leaders that a reply names (KIP-951)."""
    wanted = dict.fromkeys(leaders)
    nodes = {node.id: (node, at) for node, at in reachable(context)} if wanted else {}
    named = [nodes[leader] for leader in wanted if leader in nodes]
    return [endpoint(node_id=node.id, host=at.host, port=at.port, rack=node.rack) for node, at in named]
