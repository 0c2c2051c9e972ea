"""Topics that brokers of earlier releases, with ZooKeeper, refuse to create: kafka-node's own tests read the words.
Kafka's answers were written down once, as in `test_earlier_releases`.
"""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair
from ..support.stories.earlier import earlier_brokers

pytestmark = pytest.mark.slow
release, kafka, ours, settled = earlier_brokers(("0.10.2", "0.11", "1.1", "2.8"))
REFUSED: tuple[tuple[int, int, dict[int, list[int]]], ...] = (
    (1, 2, {}),
    (1, 0, {}),
    (1, -2, {}),
    (0, 1, {}),
    (-2, 1, {}),
    (0, 0, {}),
    (0, 2, {}),
    (1, 1, {0: [1]}),
    (-1, 1, {0: [1]}),
    (1, -1, {0: [1]}),
)
"""Partitions, replication factor, and replicas by partition."""


def test_what_is_said_of_topics_that_one_broker_cannot_have(pair: Pair) -> None:
    c = m.CreateTopicsRequest
    for index, (partitions, factor, replicas) in enumerate(REFUSED):
        assigned = [c.CreatableReplicaAssignment(partition_index=i, broker_ids=ids) for i, ids in replicas.items()]
        made = c.CreatableTopic(
            name=f"refused-{index}", num_partitions=partitions, replication_factor=factor, assignments=assigned
        )
        pair.ask("CreateTopics", 1, c(topics=[made], timeout_ms=30_000, validate_only=True))
    assert pair.errors("CreateTopics") >= {"INVALID_REPLICATION_FACTOR", "INVALID_PARTITIONS", "INVALID_REQUEST"}
