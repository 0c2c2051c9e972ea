"""The network between simulated clients and the nodes of a broker in memory: nodes that are gone close their
connections, nodes that are paused answer nothing, and replies get lost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.broker.config.nodes import Node, NodeState
from ottla.broker.later import Later, finished

from ..support.world import Answer, World

Check = Callable[[Any], None]  # of a reply
Delivered = Callable[[int, str, Any], Check]  # a request reaches a node; returns what its reply must pass


class Call:
    """A request on its way, and its reply."""

    def __init__(self, network: Network, node: int) -> None:
        self.network = network
        self.node = node
        self.line = network.lines[node]
        self.answer: Answer | None = None
        self.check: Check | None = None
        self.is_cut = False  # nothing comes back

    @property
    def is_lost(self) -> bool:
        """Whether the connection has ended without a reply."""
        return self.is_cut or self.network.lines[self.node] != self.line

    def reply(self) -> Any:
        """Returns the reply, once; None while there is none."""
        answer = self.answer
        if answer is None or not answer.done or self.is_lost or self.node in self.network.paused:
            return None
        self.answer = None
        assert not answer.closed, "the broker has closed a connection"
        if self.check is not None:
            self.check(answer.reply)
        return answer.reply


class Network:
    """The connections to all nodes, which tell it when they open and close (`NodeLives.sockets`)."""

    def __init__(self, world: World, delivered: Delivered) -> None:
        self.world = world
        self.delivered = delivered
        self.lines = {node.id: 0 for node in world.broker.nodes}
        self.paused: dict[int, list[tuple[Call, str, int, Any]]] = {}
        world.broker.node_lives.sockets = self

    def begin_again(self, world: World) -> None:
        """All connections have ended, and the nodes are those of another process."""
        self.world = world
        self.lines = {node: line + 1 for node, line in self.lines.items()}
        self.paused.clear()
        world.broker.node_lives.sockets = self

    # what happens to nodes

    def join(self, node: Node) -> None:
        self.lines[node.id] = 0

    def leave(self, node: Node) -> None:
        del self.lines[node.id]

    def open(self, node: Node) -> Later[None]:
        return finished(None)

    def close(self, node: Node) -> None:
        self.lines[node.id] += 1
        self.paused.pop(node.id, None)

    def pause(self, node: Node) -> None:
        self.paused[node.id] = []

    def resume(self, node: Node) -> None:
        for call, name, version, message in self.paused.pop(node.id):
            if not call.is_lost:
                self.world.broker.turn.soon(partial(self._deliver, call, name, version, message))

    # requests

    def is_up(self, node: int) -> bool:
        return self.world.broker.nodes.by_id[node].state in (NodeState.RUNNING, NodeState.STOPPING, NodeState.PAUSED)

    def up(self) -> list[int]:
        """The nodes that accept connections."""
        return [node for node in self.lines if self.is_up(node)]

    def send(self, node: int, name: str, version: int, message: Any) -> Call:
        """Sends a request to a node."""
        call = Call(self, node)
        if not self.is_up(node):
            call.is_cut = True
        elif node in self.paused:
            self.paused[node].append((call, name, version, message))
        else:
            self._deliver(call, name, version, message)
        return call

    def _deliver(self, call: Call, name: str, version: int, message: Any) -> None:
        if call.is_lost:
            return
        world = self.world
        call.check = self.delivered(call.node, name, message)
        before, world.dispatcher = world.dispatcher, world.dispatchers[call.node]
        call.answer = world.send(name, version, message)
        world.dispatcher = before
