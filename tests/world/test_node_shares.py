"""Share groups over several nodes: each node leads share-partitions of its own, which move with their leaders."""

from __future__ import annotations

from typing import Any

from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.node_world import cluster, create, happens, produce
from ..support.share_world import EARLIEST, Consumer, acquired, beat, configure
from ..support.world import World

ACCEPT = 1


def shared() -> World:
    """A cluster with a topic `s` that node 1 leads, and the group `q` with a member."""
    w = cluster(share_coordinator_state_topic_num_partitions="3")
    create(w, "s", [1, 2, 3])
    assert configure(w, 32, "q", EARLIEST) == 0
    found = w.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["q"]))
    w.dispatcher = w.dispatchers[found.coordinators[0].node_id]
    assert beat(w, "m", 0, "s").error_code == 0
    w.pass_ms(1000)
    w.dispatcher = w.dispatchers[1]
    return w


def partition(reply: Any) -> Any:
    return reply.responses[0].partitions[0]


def test_another_node_names_the_leader_of_a_share_partition() -> None:
    w = shared()
    one = Consumer(w, topic="s")
    w.dispatcher = w.dispatchers[2]
    reply = one.fetch()
    refused = partition(reply)
    assert Errors(refused.error_code).name == "NOT_LEADER_OR_FOLLOWER"
    assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (1, 0)
    assert [(node.node_id, node.port) for node in reply.node_endpoints] == [(1, 9092)]
    reply = one.send_acknowledge((0, 0, ACCEPT)).reply
    assert Errors(partition(reply).error_code).name == "UNKNOWN_TOPIC_OR_PARTITION", "it knows no such share-partition"
    assert reply.node_endpoints == []


def test_a_share_session_belongs_to_its_node() -> None:
    w = shared()
    one = Consumer(w, topic="s")
    one.fetch()
    w.dispatcher = w.dispatchers[2]
    assert Errors(one.fetch().error_code).name == "SHARE_SESSION_NOT_FOUND"


def test_a_share_partition_goes_on_with_its_state_at_the_next_leader() -> None:
    """What was accepted is not delivered again; what was only acquired is."""
    w = shared()
    one = Consumer(w, topic="s")
    one.fetch()
    for value in (b"a", b"b"):
        assert produce(w, 1, value=value, topic="s").error_code == 0
    assert one.got() == [(0, 1, 1)]
    assert one.acknowledge((0, 0, ACCEPT)) == 0
    happens(w, "stop", 1)
    w.dispatcher = w.dispatchers[2]
    again = Consumer(w, topic="s")
    found = []
    for _ in range(10):
        found += acquired(again.fetch(wait_ms=500))
    assert [(first, last) for first, last, _ in found] == [(1, 1)]
    assert again.acknowledge((1, 1, ACCEPT)) == 0
    assert again.got() == []
