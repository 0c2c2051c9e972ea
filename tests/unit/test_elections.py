"""Elections where eligible leader replicas were switched off (Kafka's PartitionChangeBuilder)."""

from __future__ import annotations

import pytest
from ottla.coordinator.metadata.elections import Terms, changed
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
