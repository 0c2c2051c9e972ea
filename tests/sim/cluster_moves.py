"""Replicas that move in a simulated cluster: reassignments that begin, change, end and are cancelled."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Protocol

from ottla.coordinator.metadata.state import NO_LEADER
from ottla.coordinator.metadata.state import Partition as State
from ottla.protocol import messages as m

from ..support.world import World
from .cluster_invariants import Cluster, Invariant
from .cluster_network import Check
from .cluster_truth import Told

PATIENCE_MS = 10_000  # of a healthy cluster, before a reassignment that does not end is cancelled
a, ls = m.AlterPartitionReassignmentsRequest, m.ListPartitionReassignmentsRequest


class History(Protocol):
    """What moves need of the history that they are part of."""

    world: World
    chance: random.Random
    asks_unclean: bool

    def admin(self, name: str, version: int, message: Any) -> None: ...

    def happens(self, what: str, *about: Any) -> None: ...


def reassign(sim: History) -> None:
    """A partition gets other replicas, or those back that it had; now and then all reassignments are listed."""
    chance, image = sim.chance, sim.world.broker.image
    key = chance.choice(list(image.partitions))
    nodes = [node.id for node in sim.world.broker.nodes]
    replicas = chance.sample(nodes, chance.randint(1, min(3, len(nodes)))) if chance.random() < 0.8 else None
    _alter(sim, key, replicas)
    sim.admin("ListPartitionReassignments", 0, ls(topics=None, timeout_ms=1000))


def turn_back(sim: History) -> None:
    """A partition gets new replicas, one of which falls behind; or a reassignment that is not over is cancelled, when
    some of the new replicas may be in sync and others are not.
    """
    chance, partitions = sim.chance, sim.world.broker.image.partitions
    begun = [key for key, state in partitions.items() if state.is_reassigned]
    if begun:
        return _alter(sim, chance.choice(begun), None)
    nodes = list(sim.world.broker.nodes)
    key, state = chance.choice(list(partitions.items()))
    others = [node for node in nodes if node.id not in state.replicas]
    if others:
        chance.shuffle(others)
        sim.happens("hold", others[0])
        _alter(sim, key, [node.id for node in others[:3]])


def _alter(sim: History, key: tuple[bytes, int], replicas: list[int] | None) -> None:
    parts = [a.ReassignablePartition(partition_index=key[1], replicas=replicas)]
    topic = a.ReassignableTopic(name=sim.world.broker.image.topic_names[key[0]], partitions=parts)
    sim.admin("AlterPartitionReassignments", 1, a(topics=[topic], timeout_ms=1000))


def mend(sim: History, healing_ms: int) -> None:
    """Does what an operator has to do when the trouble has stopped, with Kafka too: a reassignment that names one
    replica as new and as leaving never ends, and a partition without eligible replicas (they have left it, or
    `min.insync.replicas` has changed) has no leader until somebody asks for an unclean election.
    """
    for key, state in sim.world.broker.image.partitions.items():
        if state.is_reassigned and healing_ms > PATIENCE_MS:
            _alter(sim, key, None)
        if state.leader == NO_LEADER and not {*state.isr, *state.elr} & set(state.replicas):
            sim.asks_unclean = True
            e = m.ElectLeadersRequest
            wanted = [e.TopicPartitions(topic=sim.world.broker.image.topic_names[key[0]], partitions=[key[1]])]
            sim.admin("ElectLeaders", 2, e(election_type=1, topic_partitions=wanted, timeout_ms=1000))


class ReassignmentsEndAsWasAsked(Invariant):
    """Or they are cancelled, and what they added leaves."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._asked: dict[str, set[tuple[int, ...]]] = {}

    def delivered(self, node: int, name: str, message: Any) -> Check | None:
        if name == "AlterPartitionReassignments":
            for topic in message.topics:
                for part in topic.partitions:
                    if part.replicas is not None:
                        asked = self._asked.setdefault(f"{topic.name}-{part.partition_index}", set())
                        asked.add(tuple(part.replicas))
        return None

    def followed(self, told: Told, before: State, after: State) -> None:
        if after.is_reassigned or not (before.is_reassigned or after.replicas != before.replicas):
            return
        cancelled = tuple(one for one in before.replicas if one not in before.adding)
        # one that is changed keeps what leaves if the new one takes nothing away, as in Kafka
        found = {
            tuple(one for one in asked if one not in left)
            for asked in self._asked.get(told.name, ())
            for left in ((), before.removing)
        }
        assert after.replicas in found or after.replicas == cancelled or _is_jump(before, after), (
            f"the reassignment of {told.name} ends with {after.replicas}; {found} were asked for: {before}"
        )


class ReplicasLeaveWhenOthersHaveTheLog(Invariant):
    """All new ones are in sync, and clients find out by the epoch."""

    def followed(self, told: Told, before: State, after: State) -> None:
        left = set(before.replicas) - set(after.replicas)
        if not left or _is_jump(before, after):
            return
        assert after.leader_epoch > before.leader_epoch, f"{left} leave {told.name} in the same epoch: {after}"
        assert set(after.elr) or set(after.isr), f"no replica has the log of {told.name} after {left} left: {after}"
        if not left & set(before.adding):
            new = set(after.replicas) & set(before.adding)
            assert new <= set(after.isr), f"{left} left {told.name} before {new} were in sync: {after}"


class ReplicasKeepTheirDirectories(Invariant):
    def followed(self, told: Told, before: State, after: State) -> None:
        assert len(after.directories) == len(after.replicas), (
            f"{told.name} has other directories than replicas: {after}"
        )
        known = dict(zip(before.replicas, before.directories, strict=True))
        for node, directory in zip(after.replicas, after.directories, strict=True):
            assert known.get(node, directory) == directory, f"{told.name} changes the directory of {node}: {after}"


class ReassignmentsAreListed(Invariant):
    def delivered(self, node: int, name: str, message: Any) -> Check | None:
        if name != "ListPartitionReassignments":
            return None
        expected = dict(self._expected())

        def check(reply: Any) -> None:
            found = {
                f"{topic.name}-{one.partition_index}": (one.replicas, one.adding_replicas, one.removing_replicas)
                for topic in reply.topics
                for one in topic.partitions
            }
            assert reply.error_code or found == expected, f"{found} are listed, and {expected} are reassigned"

        return check

    def _expected(self) -> Iterator[tuple[str, tuple[list[int], list[int], list[int]]]]:
        for told in self.cluster.truth.partitions.values():
            state = told.state
            if state.is_reassigned:
                yield told.name, (list(state.replicas), list(state.adding), list(state.removing))


def _is_jump(before: State, after: State) -> bool:
    """Whether several changes of a partition came in one commit."""
    return after.partition_epoch > before.partition_epoch + 1


MOVES: tuple[type[Invariant], ...] = (
    ReassignmentsEndAsWasAsked,
    ReplicasLeaveWhenOthersHaveTheLog,
    ReplicasKeepTheirDirectories,
    ReassignmentsAreListed,
)
