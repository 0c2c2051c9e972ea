"""`ottla compare` between three nodes of ottla and three of Kafka: which node leads a partition is A's choice, which
coordinates a group each one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.testing import Broker

from ..support import compared_work
from ..support.compared import assert_same, compared
from .cluster import KafkaCluster

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
SETTINGS: dict[str, object] = {
    "group.initial.rebalance.delay.ms": 1000,
    "offsets.topic.num.partitions": 6,
    "transaction.state.log.num.partitions": 6,
}


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[str, str]]:
    """An address of ottla and one of Kafka."""
    settings = {"ottla.nodes": 3, "ottla.group.settle": False, **SETTINGS}
    with Broker(settings, lab=False) as ours, KafkaCluster(SETTINGS, own_processes=()) as kafka:
        yield ours.bootstrap_servers.split(",")[0], kafka.address(1)


@pytest.mark.parametrize(("a", "b"), [(0, 1), (1, 0)], ids=["ottla first", "Kafka first"])
def test_a_client_of_three_nodes(pair: tuple[str, str], a: int, b: int) -> None:
    with compared(pair[a], pair[b]) as proxy:
        compared_work.visit_nodes(proxy.bootstrap_servers, f"orders-{a}")
        proxy.end()
        assert_same(proxy, "Produce", "Fetch", "CreateTopics", "OffsetCommit", "EndTxn", "Metadata", "FindCoordinator")
