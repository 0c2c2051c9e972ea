"""The process of a simulated cluster ends, cleanly or not, and starts again; a node that was killed has lost the end of
its logs.
"""

from __future__ import annotations

import random
from typing import Any, Protocol

from ottla.broker.config.nodes import Node
from ottla.broker.later import Later
from ottla.broker.replica.followers import Stopped

from ..support.world import World
from .cluster_invariants import Invariant
from .cluster_network import Network
from .cluster_truth import Truth


class History(Protocol):
    """What a restart needs of the history that it is part of."""

    world: World
    chance: random.Random
    truth: Truth
    network: Network
    settings: dict[str, str]
    past_ms: int  # of earlier processes
    changes: list[Later[None]]

    @property
    def every(self) -> tuple[Invariant, ...]: ...


def restart(sim: History) -> None:
    """All nodes stop with their process, which may be killed, and start again."""
    before, is_clean = sim.world, sim.chance.random() < 0.6
    crashed = set(before.broker.log_directories.crashed)
    if is_clean:
        for node in before.broker.nodes:
            if node.id in crashed:
                lose_tails(before, node, sim.chance)
        assert before.broker.stop() is None, "the stop is not clean"
    sim.past_ms += before.schedule.monotonic_ms()
    start_ms = before.schedule.now_ms()
    sim.world = world = World(before.files, sim.chance.randrange(1 << 30), start_ms, **sim.settings)
    if is_clean:
        check_crashed(world, crashed)
    sim.changes.clear()
    sim.network.begin_again(world)
    for one in sim.every:
        one.began_again()
    sim.truth.begin_again(world, is_clean, crashed)


def check_crashed(world: World, crashed: set[int]) -> None:
    """Nodes that had been killed, and may have lost committed records, lead only where no one else can."""
    for state in world.broker.image.partitions.values():
        trusted = crashed.intersection((*state.isr, *state.elr)) - {state.leader}
        assert not trusted, f"nodes {sorted(trusted)} have crashed, and are trusted: {state}"


def lose_tails(world: World, node: Node, chance: random.Random) -> None:
    """A node that was killed has lost the end of the logs that it does not lead any more."""
    for partition in world.broker.partitions.by_name.values():
        replicas: Any = partition.replica_set
        one = None if replicas is None else replicas._by_node.get(node.id)
        if one is not None and one.stopped_at is not None and partition.leader != node.id and chance.random() < 0.5:
            reach = one.stopped_at.reach
            end = chance.randint(0, reach.end)
            if partition.log is not None:  # what is left are whole batches
                end = min(end, next((batch.base_offset for _, batch in partition.log.batches_from(end)), end))
            one.stopped_at = Stopped(reach.cut(end), one.stopped_at.caught_up_ms)
