"""The nodes of the cluster: identities over one process.

Each node has an id, a rack and listeners of its own. The first one has the configured ones; each further node has the
next id, and the ports after those of the node before. What single nodes are given (`node_values.py`) comes before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum

from . import node_values
from .config import Config, as_text
from .listener_values import Listener

NODES_MAX = 100
MAIN_SIDE = 0  # of the network: where the active controller is, or may be elected


class NodeRefused(Exception):
    """A change of a node that is not possible now."""


class NodeState(Enum):
    """What a node does. A paused node keeps its connections and answers nothing."""

    RUNNING = "running"
    STARTING = "starting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    PAUSED = "paused"


class Node:
    """A node. `config`: the configuration as this node has it; `session`: counts its sessions with the controller."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.id = config.node_id
        self.state = NodeState.RUNNING
        self.session = 0
        self.is_held = False  # its replicas do not follow, as the lab asks
        self.side = MAIN_SIDE  # of the network: nodes on the same side reach each other; clients reach all nodes

    def __repr__(self) -> str:
        return f"Node({self.id})"

    @property
    def is_serving(self) -> bool:
        return self.state in (NodeState.RUNNING, NodeState.STOPPING)

    @property
    def is_cut(self) -> bool:
        """Whether the controller does not reach the node."""
        return self.side != MAIN_SIDE

    @property
    def rack(self) -> str | None:
        found: str | None = self.config["broker.rack"]
        return found

    def address(self, listener: str) -> Listener | None:
        """Returns what the node advertises for clients of a listener; None if it has no such listener."""
        return self.config.advertised.get(listener)


class Nodes:
    """All nodes of the configuration, in the order of their ids."""

    def __init__(self, config: Config) -> None:
        count, self._racks = config["ottla.nodes"], config["ottla.nodes.racks"] or []
        self._given = _copy(config)  # before listeners get ports
        first = _given_own(config) if count == 1 else _config_of(config, 0, self._racks)
        configs = [first, *(_config_of(_copy(self._given), number, self._racks) for number in range(1, count))]
        self.by_id = {one.id: one for one in map(Node, configs)}
        self._added = count  # how many there were, with those that were removed

    def add(self) -> Node:
        """Adds a node with the next id, and the ports after those of the last one. It does not run. Raises NodeRefused:
        the broker was started as one node; there are too many.
        """
        if self._added == 1:
            raise NodeRefused("a broker that was started as one node stays one: start it with --nodes 2 or more")
        if len(self) >= NODES_MAX:
            raise NodeRefused(f"there are {NODES_MAX} nodes, and no more are possible")
        node = Node(_config_of(_copy(self._given), self._added, self._racks))
        node.state = NodeState.STOPPED
        self._added += 1
        self.by_id[node.id] = node
        return node

    def remove(self, node: Node) -> None:
        del self.by_id[node.id]

    def number(self, node: Node) -> int:
        """Returns the number of a node, from 0."""
        return node.id - self.first.id

    def __iter__(self) -> Iterator[Node]:
        return iter(self.by_id.values())

    def __len__(self) -> int:
        return len(self.by_id)

    def have(self, replicas: Iterable[int]) -> bool:
        """Whether any replica is on one of these nodes."""
        return not self.by_id.keys().isdisjoint(replicas)

    def serves(self, node_id: int) -> bool:
        """Whether a node runs and answers."""
        node = self.by_id.get(node_id)
        return node is not None and node.is_serving

    def follows(self, node_id: int, leader: int) -> bool:
        """Whether the replicas of a node follow a leader, which answers. A leader that is no node counts as on the main
        side, where the next one is elected.
        """
        node, at = self.by_id.get(node_id), self.by_id.get(leader)
        if node is None or not node.is_serving or node.is_held or (at is not None and not at.is_serving):
            return False
        return node.side == (MAIN_SIDE if at is None else at.side)

    def hears(self, node_id: int) -> bool:
        """Whether a node hears of what the controller decides. One that does not leads nothing of which it was not the
        leader before, and nothing follows it, as in Kafka.
        """
        node = self.by_id.get(node_id)
        return node is None or not node.is_cut

    def reaches(self, one: int | None, other: int | None) -> bool:
        """Whether two nodes run, answer, and can speak with each other. None: not known, which is everywhere."""
        found = [self.by_id.get(node) for node in dict.fromkeys((one, other)) if node is not None]
        if any(node is None or not node.is_serving for node in found):
            return False
        return len({node.side for node in found if node is not None}) < 2

    def free_side(self) -> int:
        """Returns the number of a side on which no node is."""
        return 1 + max(node.side for node in self)

    @property
    def first(self) -> Node:
        return next(iter(self))


def _config_of(config: Config, number: int, racks: list[str]) -> Config:
    """Returns the configuration of the node with this number, from 0."""
    if racks:
        config.values["broker.rack"] = racks[0]
    if not number:
        return _given_own(config)
    step = number * len(config.listeners)
    values = dict(config.values)
    values["node.id"] = config.node_id + number
    values["listeners"] = [
        str(one if one.name == config.controller_listener.name else _moved(one, step)) for one in config.every_listener
    ]
    given = dict(config.given)
    if "advertised.listeners" in given:
        values["advertised.listeners"] = [str(_moved(one, step)) for one in config.advertised_given]
        given["advertised.listeners"] = as_text(values["advertised.listeners"])
    if "node.id" in given:
        given["node.id"] = str(values["node.id"])
    if racks:
        values["broker.rack"] = racks[number % len(racks)]
    if values["broker.rack"] is not None:
        given["broker.rack"] = values["broker.rack"]
    return _given_own(replace(config, values=values, given=given))


def _copy(config: Config) -> Config:
    return replace(config, values=dict(config.values), given=dict(config.given))


def _given_own(config: Config) -> Config:
    """Gives the configuration of a node what is this node's alone, and returns it."""
    own = node_values.of_node(config, config.node_id)
    values = node_values.parsed(config, own)
    controller = config.controller_listener
    config.values |= values
    if "listeners" in values:
        config.values["listeners"] = [*config.values["listeners"], str(controller)]
        config.values["controller.listener.names"] = [controller.name]  # no client is served there
    config.given |= own
    return config


def _moved(listener: Listener, step: int) -> Listener:
    """Returns the listener with a higher port; a listener with any free port stays so."""
    return listener._replace(port=listener.port + step) if listener.port else listener
