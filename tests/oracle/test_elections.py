"""Kafka's own controller changes 10,000 random partitions as ottla's does: leaders, replicas in sync, eligible ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from ottla.coordinator.metadata.elections import Assignment, Kind, Terms, changed
from ottla.coordinator.metadata.state import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, Partition
from ottla.protocol.features import SHRINKS_WITHIN_EPOCH_SINCE

from .recorded_cases import words

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
CASES = 10_000
UNASSIGNED = (1).to_bytes(16, "big")
NODES = (range(1, 8), (100, 33, 17, 1, 49, 21, 6))
VERSIONS = (7, 27)  # of the metadata


def case(seed: int) -> dict[str, Any]:
    """A partition, and a change of it, as the program is asked about them."""
    chance = random.Random(seed)
    nodes = chance.sample(chance.choice(NODES), 7)
    replicas = nodes[: chance.randint(1, 4)]
    isr = _some(chance, replicas)
    others = [one for one in replicas if one not in isr]
    leader = chance.choice(isr) if isr else -1
    adding = sorted(_some(chance, replicas)) if chance.random() < 0.3 else []
    rest = [one for one in replicas if one not in adding]
    removing = sorted(_some(chance, rest)) if adding else []
    new = chance.sample(nodes, chance.randint(1, 4))
    added, removed = sorted(set(new) - set(replicas)), sorted(set(replicas) - set(new))
    recovery = int(chance.random() < 0.3)
    return {
        "recovery": recovery,
        "target_recovery": chance.choice((0, recovery)),
        "replicas": replicas,
        "isr": isr,
        "adding": adding,
        "removing": removing,
        "elr": sorted(_some(chance, others)) if chance.random() < 0.5 else [],
        "last": [chance.choice(replicas)] if leader == -1 and chance.random() < 0.7 else [],
        "leader": leader,
        "alive": [one for one in nodes if chance.random() < 0.7],
        "min_isr": chance.randint(1, 3),
        "elr_on": chance.random() < 0.7,
        "target_isr": chance.choice((isr, [one for one in isr if chance.random() < 0.6], _some(chance, replicas))),
        "election": chance.choice(list(Kind)).name,
        "lost": _some(chance, replicas) if chance.random() < 0.3 else [],
        "target": [[*new, *removed], added or adding, removed or removing] if chance.random() < 0.3 else None,
        "version": chance.choice(VERSIONS),
    }


def _some(chance: random.Random, nodes: Sequence[int]) -> list[int]:
    return chance.sample(nodes, chance.randint(0, len(nodes)))


def change(one: dict[str, Any]) -> str:
    """The change of ottla's controller as the program writes it."""
    replicas = tuple(one["replicas"])
    elr, last, adding, removing = (tuple(one[name]) for name in ("elr", "last", "adding", "removing"))
    before = Partition(
        bytes(16),
        0,
        replicas,
        tuple(one["isr"]),
        one["leader"],
        leader_epoch=0,
        partition_epoch=0,
        directories=(UNASSIGNED,) * len(replicas),
        elr=elr,
        last_known_elr=last,
        adding=adding,
        removing=removing,
        is_recovering=one["recovery"] == 1,
    )
    counts_shrinking = one["version"] < SHRINKS_WITHIN_EPOCH_SINCE
    terms = Terms(one["alive"].__contains__, one["min_isr"], one["elr_on"], Kind[one["election"]], counts_shrinking)
    target = None
    if one["target"] is not None:
        wanted, added, removed = map(tuple, one["target"])
        target = Assignment(wanted, (UNASSIGNED,) * len(wanted), added, removed)
    is_recovered = one["target_recovery"] == 0
    found = changed(before, one["target_isr"], terms, one["lost"], target, is_recovered=is_recovered)
    if found is None:
        return "none"
    leader = "-" if found.leader == NO_LEADER_CHANGE else str(found.leader)
    eligible = map(_text, (found.eligible_leader_replicas, found.last_known_elr))
    assigned = map(_text, (found.replicas, found.adding_replicas, found.removing_replicas))
    recovery = "-" if found.leader_recovery_state == NO_RECOVERY_CHANGE else str(found.leader_recovery_state)
    return "|".join((_text(found.isr), leader, *eligible, *assigned, recovery))


def _text(nodes: Sequence[int] | None) -> str:
    return "-" if nodes is None else ",".join(map(str, nodes))


def test_every_partition_changes_as_in_kafka() -> None:
    cases = [case(seed) for seed in range(CASES)]
    answers = words("Elections", cases)
    for seed, (one, answer) in enumerate(zip(cases, answers, strict=True)):
        assert change(one) == answer, f"seed {seed}: {one}"
