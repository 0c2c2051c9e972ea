"""Where the active controller is: outside of the nodes, where it never fails, or at one of them.

A controller at a node fails with it. The others elect another one: at once when the node stops, which resigns, and
after `controller.quorum.fetch.timeout.ms` when it is killed, paused or cut off. Until then the metadata does not
change: what brokers and clients ask of the controller waits (`Events`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..config.config import Config
from ..config.nodes import Node, NodeRefused, Nodes, NodeState
from ..later import Later
from ..turn import Turn

logger = logging.getLogger("ottla.org.apache.kafka.controller.QuorumController")
ANYWHERE = -1  # ottla.controller.node: the controller is at no node


class Quorum:
    """`begin_epoch`: called when another node is the active controller."""

    def __init__(self, turn: Turn, config: Config, nodes: Nodes, begin_epoch: Callable[[], None]) -> None:
        self.turn = turn
        self.nodes = nodes
        self.timeout_ms: int = config["controller.quorum.fetch.timeout.ms"]
        self.begin_epoch = begin_epoch
        given = config["ottla.controller.node"]
        self.active: int | None = None if given == ANYWHERE else given
        self.missing: Later[None] | None = None  # until there is an active controller

    @property
    def leader(self) -> int:
        """The id of the active controller; -1 while there is none."""
        if self.missing is not None:
            return -1
        return self.nodes.first.id if self.active is None else self.active

    @property
    def voters(self) -> list[int]:
        """The ids of the controllers."""
        return [self.nodes.first.id] if self.active is None else list(self.nodes.by_id)

    def place(self, node: Node | None) -> None:
        """Moves the active controller to a node; None: to no node, where it never fails. Raises NodeRefused."""
        if node is not None and not self._is_fit(node):
            raise NodeRefused(f"node {node.id} is {'cut off' if node.is_cut else node.state.value}")
        self._begin(None if node is None else node.id)

    def lost(self, node: Node, *, resigned: bool = False) -> None:
        """A node is stopped, killed, paused or cut off. `resigned`: it has asked the others to elect another one."""
        if node.id != self.active:
            return
        self.missing = self.missing or Later()
        if resigned:
            self._elect()
        else:
            self.turn.later(self.timeout_ms, self._elect)

    def came(self, node: Node) -> None:
        """A node runs, goes on or is reached again. The active controller is the active one still, if it was away for a
        short time.
        """
        if self.missing is not None and self._is_fit(node):
            if node.id == self.active:
                self._go_on()
            elif self.active is not None and not self._is_alive(self.active):
                self.turn.later(self.timeout_ms, self._elect)

    def _is_alive(self, node_id: int) -> bool:
        node = self.nodes.by_id.get(node_id)
        return node is not None and self._is_fit(node)

    @staticmethod
    def _is_fit(node: Node) -> bool:
        return not node.is_cut and (node.is_serving or node.state is NodeState.STARTING)

    def _elect(self) -> None:
        if self.missing is None or self.turn.stopped:
            return
        fit = [node.id for node in self.nodes if self._is_fit(node)]
        if fit:
            self._begin(fit[0])

    def _begin(self, node_id: int | None) -> None:
        if node_id != self.active:
            self.active = node_id
            self.begin_epoch()
            logger.info("the active controller is %s", "at no node" if node_id is None else f"node {node_id}")
        self._go_on()

    def _go_on(self) -> None:
        missing, self.missing = self.missing, None
        if missing is not None:
            missing.finish(None)
