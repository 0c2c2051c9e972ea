"""Which nodes get the replicas of new partitions, and what is refused in Kafka's words."""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.node_world import cluster, create, happens
from ..support.world import World

Refused = tuple[str, str | None]
FACTOR, ASSIGNMENT = "INVALID_REPLICATION_FACTOR", "INVALID_REPLICA_ASSIGNMENT"
FENCED = "All brokers are currently fenced, or have all their log directories cordoned."
TOO_FEW = (
    "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered or some brokers have "
    "all their log directories cordoned."
)


@pytest.fixture
def w() -> World:
    return cluster()


def created(w: World, partitions: int, factor: int, node: int = 2) -> Refused:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name="new", num_partitions=partitions, replication_factor=factor)
    found = w.at(node, "CreateTopics", 7, r(topics=[topic], timeout_ms=1000)).topics[0]
    return Errors(found.error_code).name, found.error_message


def assigned(w: World, *assignments: tuple[int, list[int]]) -> Refused:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name="new", num_partitions=-1, replication_factor=-1)
    topic.assignments = [r.CreatableReplicaAssignment(partition_index=at, broker_ids=on) for at, on in assignments]
    found = w.at(2, "CreateTopics", 7, r(topics=[topic], timeout_ms=1000)).topics[0]
    return Errors(found.error_code).name, found.error_message


def grown(w: World, name: str, count: int, *assignments: list[int], node: int = 2) -> Refused:
    r = m.CreatePartitionsRequest
    topic = r.CreatePartitionsTopic(name=name, count=count, assignments=None)
    if assignments:
        topic.assignments = [r.CreatePartitionsAssignment(broker_ids=one) for one in assignments]
    found = w.at(node, "CreatePartitions", 3, r(topics=[topic], timeout_ms=1000)).results[0]
    return Errors(found.error_code).name, found.error_message


def test_a_node_that_shuts_down_gets_no_replica(w: World) -> None:
    happens(w, "drain", 1)
    assert created(w, 6, 2) == ("NONE", None)
    made = w.broker.image.partitions_of(w.broker.image.topics["new"].id)
    assert [sorted(one.replicas) for one in made] == [[2, 3]] * 6
    assert grown(w, "t", 3) == (FACTOR, TOO_FEW)


def test_a_placement_on_nodes_that_shut_down_or_are_fenced_is_refused(w: World) -> None:
    for node, what in ((1, "stop"), (2, "stop"), (3, "drain")):
        happens(w, what, node)
    assert created(w, 2, 1, node=3) == (FACTOR, f"Unable to replicate the partition 1 time(s): {FENCED}")
    assert grown(w, "one", 2, node=3) == (FACTOR, FENCED), "as Kafka says it of partitions that are added"


def test_partitions_are_added_on_fenced_nodes_only_where_a_topic_has_so_many_replicas(w: World) -> None:
    happens(w, "stop", 1)
    assert grown(w, "t", 4) == ("NONE", None)
    made = list(w.broker.image.partitions_of(w.broker.image.topics["t"].id))[2:]
    assert [(sorted(one.replicas), sorted(one.isr)) for one in made] == [([1, 2, 3], [2, 3])] * 2
    assert grown(w, "two", 5) == ("NONE", None)
    assert all(1 not in one.replicas for one in w.broker.image.partitions_of(w.broker.image.topics["two"].id))


def test_the_first_partition_that_is_assigned_wrongly_is_named(w: World) -> None:
    """Kafka looks at one assignment after the other, in the order of the request."""
    happens(w, "stop", 1)
    all_of = "All brokers specified in the manual partition assignment for partition"
    fenced = all_of + " {} are fenced or in controlled shutdown."
    assert assigned(w, (1, [1]), (0, [9])) == (ASSIGNMENT, fenced.format(1))
    assert assigned(w, (2, [1]), (2, [2])) == (ASSIGNMENT, fenced.format(2))
    create(w, "single", [2])
    assert grown(w, "single", 3, [1], [9]) == (ASSIGNMENT, fenced.format(1))
