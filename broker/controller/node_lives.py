"""The lives of nodes: they stop, are killed, pause, start and are fenced, as the lab asks.

A node that stops leads nothing any more before its connections are closed (controlled shutdown). One that is killed or
paused is fenced when its session with the controller has expired, as in Kafka (`broker.session.timeout.ms`). The
process goes on, and so do its log directories.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from ...coordinator.metadata import brokers
from ...coordinator.metadata.controller import Controller
from ...coordinator.metadata.elections import Kind
from ...coordinator.shard import Decision
from ...protocol.errors import ApiError, Errors
from ..config.nodes import MAIN_SIDE, Node, NodeRefused, Nodes, NodeState
from ..later import Later, drive, finished
from ..replica.leaders import Leaders
from ..settings import Settings
from ..turn import Turn
from .controller import MetadataController
from .in_sync import InSync

R = TypeVar("R")
logger = logging.getLogger("ottla.org.apache.kafka.controller.QuorumController")


class Sockets(Protocol):
    """The listeners and connections of nodes."""

    def join(self, node: Node) -> None:
        """Gets ready for a new node, whose listeners are not open."""

    def leave(self, node: Node) -> None:
        """Forgets a node whose listeners are closed."""

    def open(self, node: Node) -> Later[None]:
        """Opens the listeners of a node, or opens them again. Fails with OSError."""
        ...

    def close(self, node: Node) -> None:
        """Closes the listeners and all connections of a node."""

    def pause(self, node: Node) -> None:
        """Lets the connections of a node stay open; nothing is read or sent any more."""

    def resume(self, node: Node) -> None: ...


class NoSockets:
    """Of a broker that is called in its process."""

    def join(self, node: Node) -> None:
        """Does nothing."""

    def leave(self, node: Node) -> None:
        """Does nothing."""

    def open(self, node: Node) -> Later[None]:
        return finished(None)

    def close(self, node: Node) -> None:
        """Does nothing."""

    def pause(self, node: Node) -> None:
        """Does nothing."""

    def resume(self, node: Node) -> None:
        """Does nothing."""


class Views(Protocol):
    """What nodes know of the metadata."""

    def cut_off(self, node: Node) -> None:
        """A node hears of no change any more, and does not reach the controller."""

    def healed(self, node: Node) -> None:
        """Ends `cut_off`."""


class NodeLives:
    """Changes what nodes do. Its methods complete when that has happened and is committed."""

    def __init__(
        self,
        turn: Turn,
        settings: Settings,
        metadata: MetadataController,
        leaders: Leaders,
        in_sync: InSync,
        nodes: Nodes,
    ) -> None:
        self.turn = turn
        self.settings = settings
        self.metadata = metadata
        self.leaders = leaders
        self.in_sync = in_sync
        self.nodes = nodes
        self.sockets: Sockets = NoSockets()
        self.views: Views
        self._leaving: set[int] = set()  # nodes that are being removed, by their ids

    def start(self) -> None:
        """Begins to give partitions back to their preferred leaders from time to time, and to elect leaders uncleanly
        where that was enabled since the last one went.
        """
        if len(self.nodes) == 1:
            return
        config, controller = self.settings.config, self.metadata.controller
        if config["auto.leader.rebalance.enable"]:
            balance = partial(brokers.elect, controller, Kind.PREFERRED, None)
            self._every(config["leader.imbalance.check.interval.seconds"] * 1000, brokers.may_balance, balance)
        elect = partial(brokers.elect_uncleanly, controller)
        self._every(config["unclean.leader.election.interval.ms"], brokers.may_elect_uncleanly, elect)

    def _every(self, interval_ms: int, is_due: Callable[[Controller], bool], elect: Callable[[], Decision[R]]) -> None:
        controller, quorum = self.metadata.controller, self.metadata.quorum

        def run() -> None:
            if quorum.missing is None:
                self.metadata.submit(elect)

        self.turn.every(lambda: interval_ms, run, due_ms=lambda: -math.inf if is_due(controller) else math.inf)

    def find(self, node_id: int) -> Node:
        """Raises LookupError."""
        found = self.nodes.by_id.get(node_id)
        if found is None:
            raise LookupError(f"there is no node {node_id}")
        return found

    def is_fenced(self, node: Node) -> bool:
        found = self.metadata.image.brokers.get(node.id)
        return found is None or found.fenced

    def is_drained(self, node: Node) -> bool:
        """Whether others lead instead of a node that goes on."""
        found = self.metadata.image.brokers.get(node.id)
        return found is not None and found.in_controlled_shutdown and node.state is NodeState.RUNNING

    # what may happen to a node

    async def add(self) -> Node:
        """Adds a node and starts it. Raises NodeRefused, OSError or ApiError."""
        node = self.nodes.add()
        for directory in self.metadata.log_directories.all:
            directory.share_among([node.id], self.nodes.first.id)
        self.sockets.join(node)
        self.metadata.quorum.joined(node)
        try:
            await self.begin(node)
        except BaseException:
            if node.state is not NodeState.STOPPED:  # it ran already when it could not be unfenced
                self._gone(node)
            self.sockets.leave(node)
            self.nodes.remove(node)
            self.metadata.quorum.left(node)
            raise
        return node

    async def remove(self, node: Node) -> None:
        """Stops a node, and forgets it (UnregisterBroker). Its replicas stay in their partitions, and do not follow.
        Raises NodeRefused or ApiError.
        """
        if node is self.nodes.first:
            raise NodeRefused(f"node {node.id} is the first one, with the broker's own listeners, and stays")
        if node.state is NodeState.RUNNING:
            await self.stop(node)
        self._expect(node, NodeState.STOPPED)
        self._leaving.add(node.id)
        try:
            await self._unregister(node)
        finally:
            self._leaving.discard(node.id)
        self._crashed.discard(node.id)
        self.nodes.remove(node)
        self.sockets.leave(node)
        self.metadata.quorum.left(node)

    async def _unregister(self, node: Node) -> None:
        """Has the controller forget a node, unless a client has (UnregisterBroker). Raises ApiError."""
        controller = self.metadata.controller
        try:
            await self.metadata.submit(lambda: brokers.unregister(controller, node.id))
        except ApiError as error:
            if error.code != Errors.BROKER_ID_NOT_REGISTERED:
                raise

    async def stop(self, node: Node) -> None:
        """Raises NodeRefused or ApiError."""
        self._expect(node, NodeState.RUNNING)
        self._expect_reachable(node)
        node.state = NodeState.STOPPING
        controller = self.metadata.controller
        try:
            if self.metadata.quorum.is_possible:  # else there is no controller to ask
                await self.metadata.submit(lambda: brokers.shut_down(controller, node.id))
        except ApiError:
            node.state = NodeState.RUNNING
            raise
        self._gone(node)
        self.metadata.quorum.lost(node, resigned=True)
        if self.metadata.quorum.missing is None:
            await self._fence(node)
        else:  # there is no controller that hears of it
            self._expire_session(node)

    async def drain(self, node: Node) -> None:
        """Lets others lead, as before a stop; the node goes on, and leads nothing. Raises NodeRefused or ApiError."""
        self._expect(node, NodeState.RUNNING)
        self._expect_reachable(node)
        controller = self.metadata.controller
        await self.metadata.submit(lambda: brokers.shut_down(controller, node.id))

    async def kill(self, node: Node) -> None:
        """The node is fenced later. Raises NodeRefused."""
        self._expect(node, NodeState.RUNNING, NodeState.PAUSED)
        self._crashed.add(node.id)
        self._gone(node)
        self.metadata.quorum.lost(node)
        self._expire_session(node)

    async def pause(self, node: Node) -> None:
        """The node is fenced later. Raises NodeRefused."""
        self._expect(node, NodeState.RUNNING)
        node.state = NodeState.PAUSED
        self.sockets.pause(node)
        self.leaders.lose_touch([node.id])
        self.metadata.quorum.lost(node)
        self._expire_session(node)

    async def resume(self, node: Node) -> None:
        """Raises NodeRefused or ApiError."""
        self._expect(node, NodeState.PAUSED)
        node.state = NodeState.RUNNING
        self.sockets.resume(node)
        if node.is_cut:
            self.leaders.reach_again(node.id)  # on its side
        else:
            self.metadata.quorum.came(node)
            node.session += 1
            await self._unfence(node)

    async def begin(self, node: Node) -> None:
        """Starts a node. Raises NodeRefused, OSError or ApiError."""
        self._expect(node, NodeState.STOPPED)
        self._expect_reachable(node)
        node.state = NodeState.STARTING
        try:
            await self.sockets.open(node)
            await self._come(node)
        except BaseException:
            self._gone(node)
            raise
        node.state = NodeState.RUNNING
        node.session += 1
        await self._unfence(node)

    async def _come(self, node: Node) -> None:
        """Registers a node that starts. If that fails, it is no voter that runs, nor the active controller."""
        self.metadata.quorum.came(node)
        self.leaders.heal_directories(node.id)
        try:
            await self._register(node)
        except BaseException:
            node.state = NodeState.STOPPED
            self.metadata.quorum.lost(node)
            raise

    async def fence(self, node: Node) -> None:
        """Fences a node that goes on serving. Raises ApiError."""
        await self._fence(node)

    async def unfence(self, node: Node) -> None:
        """Raises NodeRefused or ApiError."""
        self._expect(node, NodeState.RUNNING)
        self._expect_reachable(node)
        if self.is_drained(node):  # only a new registration ends a controlled shutdown
            await self._register(node)
        await self._unfence(node)

    async def cut(self, node: Node) -> None:
        """Cuts a node off from all others and from the controller: its clients reach it, and it still leads, until the
        controller fences it. Raises NodeRefused.
        """
        self._expect(node, NodeState.RUNNING)
        self._expect_reachable(node)
        await self._move({node: self.nodes.free_side()})

    async def heal(self, node: Node) -> None:
        """Lets the controller, and the nodes that it reaches, reach a node again. Raises NodeRefused or ApiError."""
        if not node.is_cut:
            raise NodeRefused(f"node {node.id} is not cut off")
        await self._move({node: MAIN_SIDE})

    async def part(self, sides: Sequence[Sequence[Node]]) -> None:
        """Parts the network: nodes reach those on their own side alone. The active controller is, or can be, on the
        side with most voters of the metadata log; one at no node is on the first side. The others go on like a node
        that is cut off, and still follow the leaders on their side. Raises NodeRefused or ApiError.
        """
        named = Counter(node for side in sides for node in side)
        wrong = [node for node in self.nodes if named[node] != 1]
        if wrong or len(sides) < 2 or not all(sides):
            what = f"node {wrong[0].id} is on {named[wrong[0]]}" if wrong else f"there are {len(sides)}"
            raise NodeRefused(f"each node must be on one of two or more sides; {what}")
        main = self.metadata.quorum.main_side([[node.id for node in side] for side in sides])
        ordered = [sides[main], *(side for number, side in enumerate(sides) if number != main)]
        await self._move({node: number for number, side in enumerate(ordered) for node in side})

    async def join(self) -> None:
        """Ends `part` and each `cut`: all nodes reach each other. Raises NodeRefused or ApiError."""
        if not any(node.is_cut for node in self.nodes):
            raise NodeRefused("all nodes reach each other")
        await self._move(dict.fromkeys(self.nodes, MAIN_SIDE))

    async def control(self, node: Node) -> None:
        """Makes a node the active controller. Raises NodeRefused."""
        self.metadata.quorum.place(node)

    async def hold(self, node: Node) -> None:
        """Lets the replicas of a node fall behind: they do not follow their leaders any more."""
        node.is_held = True
        self.leaders.lose_touch([node.id])

    async def release(self, node: Node) -> None:
        """Ends `hold`. Raises ApiError."""
        node.is_held = False
        if node.is_serving:
            await self.in_sync.extend(self.leaders.follow_again(node.id))

    # steps

    async def _move(self, sides: Mapping[Node, int]) -> None:
        """Moves nodes to sides of the network. The controller hears no more of those that leave its side, and fences
        them when their sessions are over.
        """
        moved = {node: side for node, side in sides.items() if node.side != side}
        lost = [node for node in moved if not node.is_cut]
        back = [node for node, side in moved.items() if side == MAIN_SIDE]
        for node in lost:
            self._expect(node, NodeState.RUNNING, NodeState.PAUSED, NodeState.STOPPED)
        for node, side in moved.items():
            node.side = side
        for node in lost:
            self.views.cut_off(node)
        self.leaders.lose_touch([node.id for node in moved])
        for node in lost:
            if node.state is NodeState.RUNNING:  # else that has happened
                self.metadata.quorum.lost(node)
                self._expire_session(node)
        for node in moved:
            if node.is_cut:
                self.leaders.reach_again(node.id)
        await self._reached(back)

    async def _reached(self, nodes: list[Node]) -> None:
        """The controller, and the nodes on its side, reach nodes again."""
        for node in nodes:
            self.views.healed(node)
            self.leaders.forget_stale(node.id)
        running = [node for node in nodes if node.state is NodeState.RUNNING]
        for node in running:
            node.session += 1
            self.metadata.quorum.came(node)
        for done in [drive(self._unfence_reached(node)) for node in running]:
            await done

    async def _unfence_reached(self, node: Node) -> None:
        controller = self.metadata.controller
        await self.metadata.submit(lambda: brokers.unfence(controller, node.id))
        await self.in_sync.extend(self.leaders.reach_again(node.id))

    @property
    def _crashed(self) -> set[int]:
        return self.metadata.log_directories.crashed

    def _expect(self, node: Node, *states: NodeState) -> None:
        if node.id in self._leaving:
            raise NodeRefused(f"node {node.id} is being removed")
        if node.state not in states:
            raise NodeRefused(f"node {node.id} is {node.state.value}")

    def _expect_reachable(self, node: Node) -> None:
        if node.is_cut:
            raise NodeRefused(f"node {node.id} is cut off from the controller")

    def _gone(self, node: Node) -> None:
        node.state = NodeState.STOPPED
        node.session += 1
        self.sockets.close(node)
        self.leaders.forget_stale(node.id)
        self.leaders.lose_touch([node.id], gone=node.id)

    def _expire_session(self, node: Node) -> None:
        """Fences a node of which the controller does not hear any more, when its session is over."""
        terms = self.metadata.quorum.terms
        self.turn.later(self._session_timeout_ms, partial(self._expired, node, node.session, terms))

    @property
    def _session_timeout_ms(self) -> int:
        timeout_ms: int = self.settings.config["broker.session.timeout.ms"]
        return timeout_ms

    def _expired(self, node: Node, session: int, terms: int) -> None:
        """The session is over, unless a new controller, which knows of no heartbeat, has begun it again."""
        quorum = self.metadata.quorum
        if node.session != session or self.turn.stopped:
            return
        if quorum.missing is not None:
            quorum.missing.when_done(lambda _: self._expired(node, session, terms))
        elif quorum.terms != terms:
            left_ms = quorum.since_ms + self._session_timeout_ms - self.turn.schedule.monotonic_ms()
            self.turn.later(max(left_ms, 0), partial(self._expired, node, session, quorum.terms))
        else:
            logger.info("the session of node %d has expired", node.id)
            self.turn.background(self._fence_alone(node))

    async def _register(self, node: Node) -> None:
        metadata, controller = self.metadata, self.metadata.controller
        request = metadata.registration(node, -1)
        was_clean = node.id not in self._crashed
        await metadata.submit(lambda: brokers.register(controller, request, metadata.next_offset, was_clean))
        self._crashed.discard(node.id)

    async def _fence(self, node: Node) -> None:
        controller = self.metadata.controller
        await self.metadata.submit(lambda: brokers.fence(controller, node.id))

    async def _fence_alone(self, node: Node) -> None:
        """Fences a node while nothing waits for it; a process that stops fences all."""
        try:
            await self._fence(node)
        except ApiError:
            if not self.turn.stopped:
                raise

    async def _unfence(self, node: Node) -> None:
        controller = self.metadata.controller
        await self.metadata.submit(lambda: brokers.unfence(controller, node.id))
        if node.is_serving and not node.is_cut:  # those that follow it, too: it may have been healed while it paused
            await self.in_sync.extend(self.leaders.reach_again(node.id))
