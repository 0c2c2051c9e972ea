"""Who the new nodes are, where they listen, and which replicas they get."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import uuid4

from ..broker.replica.directories import id_of_node
from ..coordinator.metadata.placement import Placer
from ..coordinator.metadata.registration import Broker, Endpoint
from ..coordinator.metadata.state import Partition
from . import EXIT_USAGE, HandoverRefused
from .source import Source

INTERNAL = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
INTERNAL_REPLICAS = 3  # Kafka's default
PORT_MAX = 65535
CLIENT_PORT, CONTROLLER = 9092, "CONTROLLER"


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node of the target. `epoch`: its broker epoch, which its clean shutdown names; `path`: of its directory."""

    id: int
    epoch: int
    path: str
    directory_id: bytes
    endpoints: tuple[Endpoint, ...]
    controller: Endpoint
    rack: str | None

    def registration(self) -> Broker:
        """Returns the fenced registration with which the metadata knows the node."""
        return Broker(self.id, self.epoch, uuid4().bytes, self.endpoints, self.rack, True, False, (self.directory_id,))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asks for. `hosts`: of the nodes, in their order; `replicas`: of each topic, None to keep them."""

    nodes: int | None = None
    replicas: int | None = None
    hosts: tuple[str, ...] = ()
    controller_port: int | None = None


@dataclass(frozen=True)
class Layout:
    """The target. `replicas`: the nodes of each partition's replicas, by topic id and partition; `is_kept`: these are
    those of the source, with the nodes that it had.
    """

    nodes: tuple[NewNode, ...]
    replicas: dict[tuple[bytes, int], tuple[int, ...]]
    is_kept: bool

    @cached_property
    def by_id(self) -> dict[int, NewNode]:
        return {one.id: one for one in self.nodes}


def node_ids(source: Source, wanted: Wanted) -> list[int]:
    """Returns the ids of the new nodes: those of the source, and the next ones."""
    known = sorted(source.image.brokers) or source.node_ids
    count = wanted.nodes or len(known)
    ids = known[:count]
    while len(ids) < count:
        ids.append(ids[-1] + 1)
    return ids


def kafka_nodes(source: Source, wanted: Wanted, path: str) -> tuple[NewNode, ...]:
    """Returns nodes with directories of their own. Raises HandoverRefused."""
    ids = node_ids(source, wanted)
    if wanted.hosts and len(wanted.hosts) != len(ids):
        raise HandoverRefused(f"--host is given {len(wanted.hosts)} times for {len(ids)} nodes", EXIT_USAGE)
    ports = _Ports()
    endpoints = _endpoints(source, ids, wanted.hosts, ports)
    found = []
    epochs = _epochs(source, ids)
    for node in ids:
        controller = _controller(source, node, endpoints[node][0].host, wanted.controller_port, ports)
        known = source.image.brokers.get(node)
        rack = known.rack if known is not None else None
        own = f"{path}/node-{node}/data"
        found.append(NewNode(node, epochs[node], own, uuid4().bytes, endpoints[node], controller, rack))
    return tuple(found)


def ottla_nodes(source: Source, wanted: Wanted, path: str) -> tuple[NewNode, ...]:
    """Returns nodes that share a directory, with consecutive ids from the first one on."""
    first = min(source.node_ids or source.image.brokers or [1])
    ids = range(first, first + (wanted.nodes or 1))
    shared, epochs = uuid4().bytes, _epochs(source, ids)
    endpoints = _endpoints(source, list(ids), (), _Ports())
    found = []
    for node in ids:
        directory_id = shared if node == first else id_of_node(shared, node)
        controller = Endpoint(CONTROLLER, endpoints[first][0].host, 9093)
        known = source.image.brokers.get(node)
        rack = known.rack if known is not None else None
        found.append(NewNode(node, epochs[node], path, directory_id, endpoints[node], controller, rack))
    return tuple(found)


def _epochs(source: Source, ids: Iterable[int]) -> dict[int, int]:
    """Returns the broker epochs: those that are known, and a lower one for a node that is new."""
    known = source.image.brokers
    return {node: known[node].epoch if node in known else 0 for node in ids}


class _Ports:
    """Gives out ports, each once on a host."""

    def __init__(self) -> None:
        self._used: set[tuple[str, int]] = set()

    def take(self, host: str, wanted: int) -> int:
        """Returns the first port that is free from `wanted` on. Raises HandoverRefused."""
        while (host, wanted) in self._used:
            wanted += 1
        if wanted > PORT_MAX:
            raise HandoverRefused(f"no port is left on {host}", EXIT_USAGE)
        self._used.add((host, wanted))
        return wanted


def _endpoints(source: Source, ids: list[int], hosts: Sequence[str], ports: _Ports) -> dict[int, tuple[Endpoint, ...]]:
    """Returns where each node listens: where it did; a new one beside the first."""
    known = source.image.brokers
    first = known[min(known)].endpoints if known else (Endpoint("PLAINTEXT", "127.0.0.1", CLIENT_PORT),)
    found: dict[int, tuple[Endpoint, ...]] = {}
    for node in sorted(ids, key=lambda one: (one not in known, one)):
        own = known[node].endpoints if node in known else first
        host_of = hosts[ids.index(node)] if hosts else None
        moved = [one._replace(host=host_of or one.host) for one in own]
        found[node] = tuple(one._replace(port=ports.take(one.host, one.port)) for one in moved)
    return found


def _controller(source: Source, node: int, host: str, wanted: int | None, ports: _Ports) -> Endpoint:
    registered = source.image.controllers.get(node)
    known = registered.end_points[0].port if registered is not None and registered.end_points else 0
    return Endpoint(CONTROLLER, host, ports.take(host, wanted or known or 9093))


def placed(source: Source, nodes: Sequence[NewNode], wanted: Wanted) -> Layout:
    """Returns the replicas of all partitions: those of the source where the nodes are the same and no other number is
    wanted, else as Kafka's placer chooses them. Raises HandoverRefused.
    """
    image, ids = source.image, {one.id for one in nodes}
    fits = all(ids.issuperset(one.replicas) for one in image.partitions.values())
    if fits and wanted.replicas is None and len(ids) == len(image.brokers):
        return Layout(tuple(nodes), {key: _staying(one) for key, one in image.partitions.items()}, is_kept=True)
    if wanted.replicas is not None and wanted.replicas > len(ids):
        raise HandoverRefused(f"{wanted.replicas} replicas need as many nodes; there are {len(ids)}", EXIT_USAGE)
    registrations = [one.registration()._replace(fenced=False) for one in nodes]
    chance = random.Random(source.cluster_id)  # the same plan again gives the same replicas
    found: dict[tuple[bytes, int], tuple[int, ...]] = {}
    for topic in image.topics.values():
        placer = Placer(registrations, chance.randrange)
        for one in image.partitions_of(topic.id):
            count = _replicas(topic.name, one, wanted, len(ids))
            found[topic.id, one.index] = tuple(placer.place(count))
    return Layout(tuple(nodes), found, is_kept=False)


def _staying(partition: Partition) -> tuple[int, ...]:
    """Returns the replicas without those that a reassignment takes away: its new ones get the log with the others."""
    return tuple(one for one in partition.replicas if one not in partition.removing)


def _replicas(topic: str, partition: Partition, wanted: Wanted, nodes: int) -> int:
    count = wanted.replicas or len(_staying(partition))
    if wanted.replicas is None and topic in INTERNAL:
        count = max(count, INTERNAL_REPLICAS)
    return min(count, nodes)
