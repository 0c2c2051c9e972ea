"""Changes of partitions (Kafka's PartitionChangeBuilder), also where eligible leader replicas were switched off."""

from __future__ import annotations

import pytest
from ottla.coordinator.metadata.elections import Kind, Terms, changed
from ottla.coordinator.metadata.state import NO_LEADER, NO_LEADER_CHANGE, Partition
from ottla.protocol import messages

TOPIC = b"t" * 16


def partition(leader: int, isr: tuple[int, ...], elr: tuple[int, ...]) -> Partition:
    return Partition(TOPIC, 0, (1, 2, 3), isr, leader, 5, 9, (), elr)


def after(before: Partition, isr: tuple[int, ...], *alive: int) -> messages.PartitionChangeRecord:
    found = changed(before, isr, Terms(alive.__contains__, 2, has_elr=False))
    assert found is not None
    return found


def test_a_replica_that_was_eligible_leads_when_the_last_one_in_sync_goes() -> None:
    found = after(partition(1, (1,), (2,)), (), 2, 3)
    assert (found.leader, found.isr, found.eligible_leader_replicas) == (2, [2], [])


@pytest.mark.parametrize("elr", [(), (2,)])
def test_without_a_replica_that_was_eligible_the_last_one_stays_in_sync(elr: tuple[int, ...]) -> None:
    found = after(partition(1, (1,), elr), (), 3)
    assert (found.leader, found.isr) == (NO_LEADER, None)
    assert found.eligible_leader_replicas == ([] if elr else None)


def test_no_replica_is_eligible_after_the_next_change() -> None:
    found = after(partition(1, (1,), (2,)), (1, 3), 1, 3)
    assert (found.leader, found.isr, found.eligible_leader_replicas) == (NO_LEADER_CHANGE, [1, 3], [])


def test_the_last_replicas_in_sync_are_not_in_sync_with_one_that_leads_uncleanly() -> None:
    terms = Terms({2}.__contains__, 2, has_elr=False, kind=Kind.UNCLEAN)
    found = changed(partition(1, (1, 2), ()), (), terms)
    assert found is not None
    assert (found.leader, found.isr) == (2, [2])


def test_eligible_replicas_are_in_the_order_of_a_java_set() -> None:
    before = Partition(TOPIC, 0, (100, 33, 6), (100, 33, 6), 100, 5, 9, ())
    found = changed(before, (100,), Terms({100}.__contains__, 3, has_elr=True))
    assert found is not None
    assert found.eligible_leader_replicas == [33, 6]


@pytest.mark.parametrize("counts_shrinking", [False, True])
def test_the_leader_of_old_metadata_has_a_new_epoch_when_a_replica_is_not_in_sync_any_more(
    counts_shrinking: bool,
) -> None:
    terms = Terms({1, 2}.__contains__, 1, has_elr=False, counts_shrinking=counts_shrinking)
    found = changed(partition(1, (1, 2), ()), (1,), terms)
    assert found is not None
    assert found.leader == (1 if counts_shrinking else NO_LEADER_CHANGE)
