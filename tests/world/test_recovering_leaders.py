"""A leader that an unclean election has chosen is recovering until it asks for replicas in sync (KIP-704)."""

from __future__ import annotations

from ottla.coordinator.metadata.state import RECOVERING, Partition, partition_of, partition_record

from ..support.node_world import cluster, create, happens
from ..support.world import World


def partition(w: World) -> Partition:
    return w.broker.image.partitions[w.broker.image.topics["u"].id, 0]


def elected_uncleanly() -> World:
    """Node 2 leads, although node 1 alone had all committed records."""
    w = cluster()
    create(w, "u", [1, 2], unclean_leader_election_enable="true")
    for what, node in (("stop", 2), ("stop", 1), ("begin", 2)):
        happens(w, what, node)
    assert partition(w).leader == 2
    return w


def test_a_clean_leader_is_not_recovering() -> None:
    w = cluster()
    create(w, "u", [1, 2])
    happens(w, "stop", 1)
    assert (partition(w).leader, partition(w).is_recovering) == (2, False)


def test_an_unclean_leader_is_recovering_until_another_replica_joins() -> None:
    w = elected_uncleanly()
    assert partition(w).is_recovering
    happens(w, "begin", 1)
    w.pass_ms(1000)
    assert (partition(w).isr, partition(w).is_recovering) == ((1, 2), False)


def test_the_record_of_a_snapshot_says_so() -> None:
    before = partition(elected_uncleanly())
    record = partition_record(before)
    assert record.leader_recovery_state == RECOVERING
    assert partition_of(record) == before


def test_a_restart_keeps_it() -> None:
    w = elected_uncleanly()
    assert partition(World(w.lose_power(), 0, ottla_nodes="3")).is_recovering
