"""Several nodes in one process: each has its address and leads its partitions, and sends clients to the others."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, fetch_message, produce_message, values
from ..support.world import World

NODES = (1, 2, 3)
SMALL = {f"{name}_num_partitions": "3" for name in ("offsets_topic", "transaction_state_log")}


def world(nodes: int = 3, **settings: str) -> World:
    w = World(None, 0, **{"ottla_nodes": str(nodes), **SMALL, **settings})
    create(w, "t", 6, 3)
    return w


def create(w: World, name: str, partitions: int, factor: int, assignments: dict[int, list[int]] | None = None) -> Any:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
    topic.assignments = [
        r.CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
        for index, nodes in (assignments or {}).items()
    ]
    return w.ask("CreateTopics", 7, r(topics=[topic], timeout_ms=10_000)).topics[0]


def metadata(w: World, node: int = 1, name: str = "t") -> Any:
    wanted = m.MetadataRequest.MetadataRequestTopic(name=name)
    return w.at(node, "Metadata", 12, m.MetadataRequest(topics=[wanted]))


def leaders(w: World, node: int = 1, name: str = "t") -> dict[int, int]:
    return {one.partition_index: one.leader_id for one in metadata(w, node, name).topics[0].partitions}


def partition_of(w: World, leader: int) -> int:
    return next(index for index, node in leaders(w).items() if node == leader)


def produce(w: World, node: int, partition: int, value: bytes = b"v", version: int = 10) -> Any:
    response = w.at(node, "Produce", version, produce_message("t", batch(value), partition))
    return response, response.responses[0].partition_responses[0]


def test_every_node_names_all_nodes_with_their_addresses_and_racks() -> None:
    w = world(ottla_nodes_racks="a,b")
    for node in NODES:
        found = metadata(w, node)
        assert [(b.node_id, b.host, b.port, b.rack) for b in found.brokers] == [
            (1, "127.0.0.1", 9092, "a"),
            (2, "127.0.0.1", 9093, "b"),
            (3, "127.0.0.1", 9094, "a"),
        ]
        assert found.controller_id in NODES
        described = w.at(node, "DescribeCluster", 1, m.DescribeClusterRequest())
        assert [(b.broker_id, b.port) for b in described.brokers] == [(1, 9092), (2, 9093), (3, 9094)]


def test_the_nodes_of_several_listeners_do_not_share_ports() -> None:
    w = world(
        listeners="A://127.0.0.1:9092,B://127.0.0.1:9093",
        listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
        inter_broker_listener_name="A",
    )
    ports = [one.port for node in w.broker.nodes for one in node.config.listeners]
    assert ports == [9092, 9093, 9094, 9095, 9096, 9097]
    assert all(len(broker.endpoints) == 2 for broker in w.broker.image.brokers.values())


def test_leaders_and_replicas_are_even() -> None:
    found = metadata(world()).topics[0].partitions
    assert sorted(one.leader_id for one in found) == [1, 1, 2, 2, 3, 3]
    assert all(sorted(one.replica_nodes) == sorted(one.isr_nodes) == [1, 2, 3] for one in found)
    assert not any(one.offline_replicas for one in found)


def test_a_node_takes_and_gives_the_records_of_what_it_leads() -> None:
    w = world()
    for node in NODES:
        index = partition_of(w, node)
        assert produce(w, node, index)[1].error_code == 0
        fetched = w.at(node, "Fetch", 11, fetch_message("t", 0, index)).responses[0].partitions[0]
        assert (fetched.error_code, values(fetched.records)) == (0, [b"v"])


def test_another_node_names_the_leader() -> None:
    w = world()
    index = partition_of(w, 2)
    response, refused = produce(w, 3, index)
    assert (refused.error_code, refused.base_offset) == (Errors.NOT_LEADER_OR_FOLLOWER, -1)
    assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (2, 0)
    assert [(one.node_id, one.port) for one in response.node_endpoints] == [(2, 9093)]
    create(w, "far", -1, -1, {0: [2]})
    message = fetch_message("far", 0, 0)
    topic = message.topics[0]
    topic.topic, topic.topic_id = "", w.broker.image.topics["far"].id
    response = w.at(1, "Fetch", 16, message)
    refused = response.responses[0].partitions[0]
    assert (refused.error_code, refused.current_leader.leader_id) == (Errors.NOT_LEADER_OR_FOLLOWER, 2)
    assert [(one.node_id, one.port) for one in response.node_endpoints] == [(2, 9093)]


@pytest.mark.parametrize(("epoch", "code"), [(-1, "NOT_LEADER_OR_FOLLOWER"), (5, "UNKNOWN_LEADER_EPOCH")])
def test_the_epoch_of_a_client_is_looked_at_before_the_leader(epoch: int, code: str) -> None:
    w = world()
    r = m.ListOffsetsRequest
    wanted = r.ListOffsetsPartition(partition_index=partition_of(w, 2), timestamp=-1, current_leader_epoch=epoch)
    request = r(topics=[r.ListOffsetsTopic(name="t", partitions=[wanted])])
    answer = w.at(1, "ListOffsets", 6, request).topics[0].partitions[0]
    assert Errors(answer.error_code).name == code


def test_a_node_without_a_replica_knows_no_epoch() -> None:
    w = world()
    create(w, "alone", -1, -1, {0: [2]})
    r = m.OffsetForLeaderEpochRequest
    wanted = r.OffsetForLeaderPartition(partition=0, current_leader_epoch=5, leader_epoch=0)
    request = r(topics=[r.OffsetForLeaderTopic(topic="alone", partitions=[wanted])], replica_id=-1)
    codes = [w.at(n, "OffsetForLeaderEpoch", 4, request).topics[0].partitions[0].error_code for n in (1, 2)]
    assert codes == [Errors.NOT_LEADER_OR_FOLLOWER, Errors.UNKNOWN_LEADER_EPOCH]


def coordinator(w: World, key: str, kind: int = 0) -> int:
    request = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    found = [w.at(node, "FindCoordinator", 4, request).coordinators[0] for node in NODES]
    assert len({one.node_id for one in found}) == 1, "all nodes say the same"
    assert found[0].port == 9091 + found[0].node_id
    return int(found[0].node_id)


def test_a_group_has_one_coordinator() -> None:
    w = world()
    own = {f"g{n}": coordinator(w, f"g{n}") for n in range(6)}
    assert set(own.values()) == set(NODES)
    for group, node in own.items():
        request = m.OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1)
        r = m.OffsetCommitRequest
        part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
        request.topics = [r.OffsetCommitRequestTopic(name="t", partitions=[part])]
        codes = {n: w.at(n, "OffsetCommit", 8, request).topics[0].partitions[0].error_code for n in NODES}
        assert codes == {n: 0 if n == node else Errors.NOT_COORDINATOR for n in NODES}
    listed = {n: {one.group_id for one in w.at(n, "ListGroups", 4, m.ListGroupsRequest()).groups} for n in NODES}
    assert listed == {n: {group for group, node in own.items() if node == n} for n in NODES}


def test_a_transactional_id_has_one_coordinator() -> None:
    w = world()
    node = coordinator(w, "tx", 1)
    request = m.InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000)
    codes = {n: w.at(n, "InitProducerId", 4, request).error_code for n in NODES}
    assert codes == {n: 0 if n == node else Errors.NOT_COORDINATOR for n in NODES}


def test_a_fetch_session_belongs_to_its_node() -> None:
    w = world()
    message = fetch_message("t", 0, partition_of(w, 2))
    message.session_epoch = 0
    session = w.at(2, "Fetch", 11, message).session_id
    message.session_id, message.session_epoch = session, 1
    assert w.at(1, "Fetch", 11, message).error_code == Errors.FETCH_SESSION_ID_NOT_FOUND
    assert w.at(2, "Fetch", 11, message).error_code == 0


def test_more_replicas_than_nodes_are_refused_in_kafkas_words() -> None:
    refused = create(world(), "wide", 1, 4)
    assert refused.error_code == Errors.INVALID_REPLICATION_FACTOR
    assert refused.error_message == (
        "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be reached because "
        "only 3 broker(s) are registered or some brokers have all their log directories cordoned."
    )


def test_internal_topics_have_as_many_replicas_as_nodes_allow() -> None:
    for nodes, replicas in ((1, 1), (2, 2), (5, 3)):
        w = World(None, 0, ottla_nodes=str(nodes), **SMALL)
        w.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g"]))
        topic = w.broker.image.topics["__consumer_offsets"]
        assert {len(one.replicas) for one in w.broker.image.partitions_of(topic.id)} == {replicas}


def test_partitions_are_added_and_assigned_by_hand() -> None:
    w = world()
    create(w, "hand", -1, -1, {0: [3, 1], 1: [2, 3]})
    r = m.CreatePartitionsRequest
    more = r.CreatePartitionsTopic(name="hand", count=4, assignments=None)
    assert w.ask("CreatePartitions", 3, r(topics=[more], timeout_ms=1000)).results[0].error_code == 0
    found = metadata(w, 2, "hand").topics[0].partitions
    assert [list(one.replica_nodes) for one in found[:2]] == [[3, 1], [2, 3]]
    assert all(len(one.replica_nodes) == 2 for one in found)


def test_a_start_with_fewer_nodes_elects_those_that_are_left() -> None:
    w = world()
    for node in NODES:
        produce(w, node, partition_of(w, node), b"%d" % node)
    records = {index: leader for leader in NODES for index in (partition_of(w, leader),)}
    assert w.broker.stop() is None
    again = World(w.files, 1)
    found = metadata(again).topics[0].partitions
    assert {(one.leader_id, tuple(one.isr_nodes)) for one in found} == {(1, (1,))}
    for index, leader in records.items():
        fetched = again.ask("Fetch", 11, fetch_message("t", 0, index)).responses[0].partitions[0]
        assert values(fetched.records) == [b"%d" % leader]


def test_a_start_with_the_same_nodes_changes_no_leader() -> None:
    w = world()
    before = metadata(w).topics[0]
    assert w.broker.stop() is None
    again = World(w.files, 1, ottla_nodes="3")
    assert metadata(again).topics[0] == before
