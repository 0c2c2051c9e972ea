"""`ottla compare` in front of two clusters of three nodes: each node of A has an address of the proxy, and requests
reach the node of B that leads or coordinates there.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support import compared_work
from ..support.compared import Compared, assert_same, compared
from ..support.wire import Wire

pytestmark = pytest.mark.slow
SETTINGS: dict[str, object] = {
    "ottla.nodes": 3,
    "ottla.group.settle": False,
    "group.initial.rebalance.delay.ms": 1000,
    "offsets.topic.num.partitions": 6,
    "transaction.state.log.num.partitions": 6,
}


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Broker, Broker]]:
    with Broker(SETTINGS) as a, Broker(SETTINGS) as b:
        yield a, b


@pytest.fixture
def proxy(pair: tuple[Broker, Broker]) -> Iterator[Compared]:
    with compared(*(one.bootstrap_servers.split(",")[0] for one in pair), "--timeout", "10") as found:
        yield found


def placement(broker: Broker, topic: str) -> list[tuple[int, list[int]]]:
    """The leader and the replicas of each partition."""
    with Wire(broker.bootstrap_servers.split(",")[0]) as wire:
        t = m.MetadataRequest.MetadataRequestTopic
        (found,) = wire.ask("Metadata", 9, m.MetadataRequest(topics=[t(name=topic)])).topics
    return [
        (one.leader_id, list(one.replica_nodes)) for one in sorted(found.partitions, key=lambda p: p.partition_index)
    ]


def test_a_client_of_three_nodes(proxy: Compared, pair: tuple[Broker, Broker]) -> None:
    servers = proxy.bootstrap_servers
    compared_work.visit_nodes(servers, "orders")
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    admin.create_partitions([NewPartitions("orders", 8)])["orders"].result()
    proxy.end()
    assert_same(proxy, "Produce", "Fetch", "CreateTopics", "CreatePartitions", "OffsetCommit", "EndTxn", "Metadata")
    a, b = (placement(one, "orders") for one in pair)
    assert a == b
    assert len(a) == 8
    assert len({leader for leader, _ in a}) == 3
    a, b = (placement(one, "orders-made-by-metadata") for one in pair)
    assert a == b != []
