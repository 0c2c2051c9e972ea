"""A simulated cluster whose network is parted between groups of nodes, with the controller at a node: which side has a
controller, and what happens on the others.
"""

from __future__ import annotations

import random
from typing import Any, Protocol

from ottla.broker.config.nodes import Node, NodeState
from ottla.coordinator.metadata.state import NO_LEADER
from ottla.coordinator.metadata.state import Partition as State

from ..support.world import World
from .cluster_invariants import Cluster, Invariant
from .cluster_truth import Told

CONTROLLERS = (-1, -1, 1, 2, 3)  # `ottla.controller.node`; -1: at no node, as with controllers of their own
NODES = (3, 3, 4, 5)
GRACE_MS = 500  # for an election that is due, and for records on their way


class History(Protocol):
    """What the network needs of the history that it is part of."""

    world: World
    chance: random.Random

    def happens(self, what: str, *about: Any) -> None: ...

    def any_node(self) -> Node: ...


def part(sim: History) -> None:
    """The network is parted, or parted otherwise, or joined."""
    chance, nodes = sim.chance, list(sim.world.broker.nodes)
    if chance.random() < 0.3:
        sim.happens("join")
        return
    chance.shuffle(nodes)
    cuts = sorted(chance.sample(range(1, len(nodes)), chance.choice((1, 1, 1, 2))))
    sim.happens("part", [nodes[start:end] for start, end in zip([0, *cuts], [*cuts, len(nodes)], strict=True)])


def control(sim: History) -> None:
    """The controller moves to a node, and fails with it from now on."""
    if sim.world.broker.metadata.quorum.active is not None:
        sim.happens("control", sim.any_node())


def _side_with_majority(cluster: Cluster) -> frozenset[int]:
    """The nodes that run, and reach each other, if they are the majority; all are voters. Not asked of the broker."""
    nodes = list(cluster.world.broker.nodes)
    away = (NodeState.STOPPED, NodeState.PAUSED)
    for side in {node.side for node in nodes}:
        found = frozenset(node.id for node in nodes if node.side == side and node.state not in away)
        if 2 * len(found) > len(nodes):
            return found
    return frozenset()


class TheMajorityHasTheController(Invariant):
    """Or elects one, and no other side has it."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._since: tuple[frozenset[int], int] | None = None  # when a majority was seen without a controller

    def holds(self) -> None:
        broker, now_ms = self.cluster.world.broker, self.cluster.world.schedule.monotonic_ms()
        quorum, side = broker.metadata.quorum, _side_with_majority(self.cluster)
        before, self._since = self._since, None
        if quorum.active is None:
            return
        if quorum.missing is None:
            assert quorum.leader in side, f"node {quorum.leader} is the controller, and the majority is {sorted(side)}"
        elif side:
            self._since = before if before is not None and before[0] == side else (side, now_ms)
            since = self._since[1]
            timeout_ms = broker.config["controller.quorum.fetch.timeout.ms"]
            assert now_ms <= since + timeout_ms + GRACE_MS, f"{sorted(side)} have no controller since {since}"

    def began_again(self) -> None:
        self._since = None


class NothingChangesWithoutAController(Invariant):
    """But for what the last one had written."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._missing: object = None  # the wait for a controller, and when it was seen first
        self._since_ms = 0

    def followed(self, told: Told, before: State, after: State) -> None:
        world = self.cluster.world
        missing, late_ms = world.broker.metadata.quorum.missing, world.schedule.monotonic_ms() - self._since_ms
        assert missing is None or missing is not self._missing or late_ms <= GRACE_MS, (
            f"{told.name} changes {late_ms} ms after the controller was seen missing: {before} to {after}"
        )

    def holds(self) -> None:
        missing = self.cluster.world.broker.metadata.quorum.missing
        if missing is not self._missing:
            self._missing, self._since_ms = missing, self.cluster.world.schedule.monotonic_ms()

    def began_again(self) -> None:
        self._missing = None


class ReplicasFollowTheLeaderOnTheirSide(Invariant):
    """Also where the controller is not, unless one of them has not heard of its part: it was cut off then. A leader
    that is cut off leads on while nobody is elected who hears of it.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._known = self._names()  # partitions that were seen
        self._unheard: set[str] = set()  # those whose leader was cut off when it was elected
        self._alone: dict[str, int] = {}  # those that lead on
        self._added: set[tuple[str, int]] = set()  # replicas that were added where they or the leader were cut off

    def followed(self, told: Told, before: State, after: State) -> None:
        for node in set(after.replicas).difference(before.replicas):
            if not (self._reaches_controller(node) and self._reaches_controller(after.leader)):
                self._added.add((told.name, node))
        if after.leader != before.leader:
            has_led = told.name in self._known and told.name not in self._unheard
            led = self._alone.pop(told.name, before.leader if has_led else NO_LEADER)
            self._unheard.discard(told.name)
            if not self._reaches_controller(after.leader):
                self._unheard.add(told.name)
            if self._leads_on(led) and (after.leader == NO_LEADER or told.name in self._unheard):
                self._alone[told.name] = led

    def _names(self) -> set[str]:
        return {told.name for told in self.cluster.truth.partitions.values()}

    def _reaches_controller(self, node: int) -> bool:
        found = self.cluster.world.broker.nodes.by_id.get(node)
        return found is None or found.side == 0

    def _leads_on(self, node: int) -> bool:
        found = self.cluster.world.broker.nodes.by_id.get(node)
        return found is not None and found.side != 0 and found.is_serving

    def holds(self) -> None:
        nodes = self.cluster.world.broker.nodes.by_id
        self._alone = {name: node for name, node in self._alone.items() if self._leads_on(node)}
        for told, partition in self.cluster.truth.open():
            if told.state.leader != NO_LEADER and self._reaches_controller(told.state.leader):
                self._alone.pop(told.name, None)
            is_new, leader = told.name not in self._known, nodes.get(self._alone.get(told.name, told.state.leader))
            self._known.add(told.name)
            if partition.replica_set is not None and leader is not None and not leader.is_serving:
                views = partition.replica_set.views(partition.end_offset, partition.follower.replicated)
                found = [at for at, _, follows in views if follows and at != leader.id]
                assert not found, f"{found} follow {leader}, which leads {told.name} and does not answer"
            if partition.replica_set is None or leader is None or leader.side == 0:
                self._unheard.discard(told.name)
                self._added -= {(told.name, at) for at in told.state.replicas if self._reaches_controller(at)}
                continue
            if is_new:
                self._unheard.add(told.name)
            for at, _, follows in partition.replica_set.views(partition.end_offset, partition.follower.replicated):
                node = nodes[at]
                if (told.name, at) in self._added:
                    continue
                if told.name in self._unheard and told.name not in self._alone:
                    assert node is leader or not follows, f"{node} follows {leader} too early, to lead {told.name}"
                elif leader.is_serving and node.side == leader.side and node.is_serving and not node.is_held:
                    assert follows, f"{node} reaches {leader}, which leads {told.name}, and does not follow"

    def began_again(self) -> None:
        self._known = self._names()
        self._unheard.clear()
        self._alone.clear()
        self._added.clear()


SIDES: tuple[type[Invariant], ...] = (
    TheMajorityHasTheController,
    NothingChangesWithoutAController,
    ReplicasFollowTheLeaderOnTheirSide,
)
