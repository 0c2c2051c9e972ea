"""No replica is placed where all log directories of the only broker are cordoned (KIP-1066): Kafka says it so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ottla.coordinator.metadata.configs import DELETE, SET
from ottla.coordinator.metadata.state import BROKER
from ottla.protocol import messages as m

from ..support.differential import Pair
from ..support.stories.core import alter
from ..support.stories.topics import creatable, create

pytestmark = pytest.mark.slow
KEY, NAME = "cordoned.log.dirs", "cordoned"


def wanted(partitions: int = 1, factor: int = 1, *assigned: list[int]) -> m.CreateTopicsRequest:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name="uncordoned", num_partitions=partitions, replication_factor=factor)
    topic.assignments = [
        r.CreatableReplicaAssignment(partition_index=n, broker_ids=on) for n, on in enumerate(assigned)
    ]
    return r(topics=[topic], timeout_ms=10_000, validate_only=True)


def more(count: int, *assigned: list[int]) -> m.CreatePartitionsRequest:
    r = m.CreatePartitionsRequest
    given = [r.CreatePartitionsAssignment(broker_ids=one) for one in assigned] or None
    topic = r.CreatePartitionsTopic(name=NAME, count=count, assignments=given)
    return r(topics=[topic], timeout_ms=10_000, validate_only=True)


def has_failed(reply: Any) -> bool:
    return bool(reply.topics[0].error_code)


@pytest.fixture
def cordoned(pair: Pair) -> Iterator[Pair]:
    """Both brokers, once their controllers know that all directories are cordoned."""
    create(pair, creatable(NAME))
    alter(pair, BROKER, "1", (KEY, SET, "*"), keeps=True)
    pair.until("CreateTopics", 7, wanted(), has_failed)
    yield pair
    alter(pair, BROKER, "1", (KEY, DELETE, None), keeps=True)
    pair.until("CreateTopics", 7, wanted(), lambda reply: not has_failed(reply))
    pair.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=[NAME], timeout_ms=10_000))


def test_no_topic_is_placed(cordoned: Pair) -> None:
    for request in (wanted(), wanted(2, 3), wanted(-1, -1, [1]), wanted(-1, -1, [9]), wanted(-1, -1, [1], [9])):
        cordoned.ask("CreateTopics", 7, request)
    assert cordoned.errors("CreateTopics") >= {"INVALID_REPLICATION_FACTOR", "INVALID_REPLICA_ASSIGNMENT"}


def test_no_partition_is_added(cordoned: Pair) -> None:
    for request in (more(2), more(2, [1]), more(2, [9]), more(3, [1], [9])):
        cordoned.ask("CreatePartitions", 3, request)
    assert cordoned.errors("CreatePartitions") == {"INVALID_REPLICATION_FACTOR", "INVALID_REPLICA_ASSIGNMENT"}


def test_no_partition_is_reassigned(cordoned: Pair) -> None:
    r = m.AlterPartitionReassignmentsRequest
    for replicas in ([1], [9], [1, 9], None):
        topic = r.ReassignableTopic(
            name=NAME, partitions=[r.ReassignablePartition(partition_index=0, replicas=replicas)]
        )
        cordoned.ask("AlterPartitionReassignments", 1, r(topics=[topic], timeout_ms=10_000))
    assert cordoned.errors("AlterPartitionReassignments") >= {"INVALID_REPLICA_ASSIGNMENT"}
