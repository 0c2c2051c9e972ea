"""Nodes that stop, are killed, pause and start again: what the others say of them, as in Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.node_stories import NODES, Story, group_at
from ..support.stories import quorum

pytestmark = pytest.mark.slow


def cluster_described(story: Story) -> None:
    for node in sorted(story.running):
        for fenced in (False, True):
            request = m.DescribeClusterRequest(
                include_cluster_authorized_operations=True, include_fenced_brokers=fenced
            )
            story.at(node).agree("DescribeCluster", 2, request)


def coordinators_found(story: Story, name: str) -> None:
    """Where the coordinators of groups, transactions and share-partitions are, as each node says."""
    names = [group_at(partition, name) for partition in range(3)]
    for node in sorted(story.running):
        for version, kind in ((2, 0), (2, 1), (6, 0), (6, 1)):
            if version < 4:
                for one in names:
                    story.at(node).agree("FindCoordinator", 2, m.FindCoordinatorRequest(key=one, key_type=kind))
            else:
                asked = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=names)
                story.at(node).agree("FindCoordinator", version, asked)
        keys = [f"{name}:{'A' * 22}:{index}" for index in range(2)]
        story.at(node).agree("FindCoordinator", 6, m.FindCoordinatorRequest(key_type=2, coordinator_keys=keys))


@pytest.mark.parametrize("what", ["stop", "kill", "pause"])
@pytest.mark.parametrize("node", [1, 3])
def test_a_node_that_is_gone_and_comes_back(story: Story, what: str, node: int) -> None:
    name, alone = f"{what}{node}", f"{what}{node}-alone"
    story.topic(name, [1, 2, 3], [2, 3, 1], [3, 1, 2])
    story.topic(alone, [node])
    cluster_described(story)
    story.happens(what, node)
    story.knows(name, alone)
    assert story.state(alone) == (-1, 1, [], [node], [node])
    cluster_described(story)
    coordinators_found(story, name)
    story.happens("resume" if what == "pause" else "start", node)
    story.knows(name)
    assert story.state(alone)[0] == node
    cluster_described(story)
    coordinators_found(story, name)


def test_two_nodes_are_gone(story: Story) -> None:
    """min.insync.replicas=2 keeps replicas eligible that were in sync last."""
    story.topic("pair", [1, 2, 3], [2, 3, 1], [3, 1, 2], min_insync_replicas="2")
    story.happens("stop", 2)
    story.knows("pair")
    story.happens("kill", 3)
    assert story.state("pair", 1)[:3] == (1, 2, [1])
    cluster_described(story)
    coordinators_found(story, "two-gone")
    story.happens("start", 3)
    story.knows("pair")
    story.happens("start", 2)
    story.knows("pair")
    assert story.state("pair", 2)[:3] == (1, 1, [1, 2, 3])


def test_a_node_that_was_killed_may_have_lost_records(story: Story) -> None:
    """Kafka's controller takes it out of those in sync and eligible when it registers again (KIP-966)."""
    story.topic("lossy", [1, 2], [2, 1], min_insync_replicas="2")
    story.topic("lossy-last", [2])
    story.happens("kill", 2)
    assert story.state("lossy", 1) == (1, 1, [1], [2], [])
    assert story.state("lossy-last")[:3] == (-1, 1, [])
    story.happens("start", 2)
    assert story.state("lossy", 1)[:3] == (1, 1, [1, 2])
    assert story.state("lossy-last")[:3] == (2, 2, [2])


def test_log_directories_of_each_node(story: Story) -> None:
    """Each node has its own replicas, leaders or not; after a node has started again it has them still."""

    def without_places(reply: Any) -> None:
        """The paths differ, and only one of them is on a disk."""
        for number, one in enumerate(reply.results):
            one.log_dir, one.total_bytes, one.usable_bytes = f"{number}", -1, -1

    story.trims["DescribeLogDirs"] = without_places
    story.topic("dirs", [1, 2], [2, 3], [3, 1])
    r = m.DescribeLogDirsRequest
    request = r(topics=[r.DescribableLogDirTopic(topic="dirs", partitions=[0, 1, 2, 7])])
    for node in NODES:
        story.at(node).agree("DescribeLogDirs", 5, request)
    story.happens("stop", 2)
    story.knows("dirs")
    for node in (1, 3):
        story.at(node).agree("DescribeLogDirs", 5, request)
    story.happens("start", 2)
    story.knows("dirs")
    for node in NODES:
        story.at(node).agree("DescribeLogDirs", 5, request)


def test_a_broker_is_unregistered(story: Story) -> None:
    """One that is stopped is forgotten; its replicas stay where they are. It registers again when it starts."""
    story.topic("forgotten", [3, 1], [1, 3])
    at = story.at(1)
    for unknown in (7, -1):
        at.ask("UnregisterBroker", 0, m.UnregisterBrokerRequest(broker_id=unknown))
    story.happens("stop", 3)
    story.knows("forgotten")
    at.ask("UnregisterBroker", 0, m.UnregisterBrokerRequest(broker_id=3))
    cluster_described(story)
    story.knows("forgotten")
    at.ask("UnregisterBroker", 0, m.UnregisterBrokerRequest(broker_id=3))
    story.happens("start", 3)
    story.knows("forgotten")
    cluster_described(story)
    assert story.errors("UnregisterBroker") == {"NONE", "BROKER_ID_NOT_REGISTERED"}


@pytest.mark.parametrize("node", NODES)
def test_the_quorum_as_a_node_describes_it(story: Story, node: int) -> None:
    r = m.DescribeQuorumRequest

    def asked(topic: str, *indexes: int) -> Any:
        return r(
            topics=[r.TopicData(topic_name=topic, partitions=[r.PartitionData(partition_index=i) for i in indexes])]
        )

    for request in (asked("__cluster_metadata", 1), asked("nope", 0), asked("__cluster_metadata", 0, 1), r(topics=[])):
        for version in range(3):
            story.at(node).ask("DescribeQuorum", version, request)
    assert story.errors("DescribeQuorum") == {"NONE", "UNKNOWN_TOPIC_OR_PARTITION"}


def of_either_controller(reply: Any) -> None:
    """Kafka's controller is a process of its own here, and ours has the id of the first node."""
    quorum.of_one_moment(reply)
    for part in (part for topic in reply.topics for part in topic.partitions):
        part.leader_id = 1
        for voter in part.current_voters:
            voter.replica_id = 1
        part.observers = sorted((one for one in part.observers if one.replica_id != 1), key=lambda one: one.replica_id)
    for node in reply.nodes:
        node.node_id = 1
        for listener in node.listeners:
            listener.port = 1


def test_nodes_without_a_controller_observe_the_quorum(story: Story) -> None:
    story.trims["DescribeQuorum"] = of_either_controller
    for version in range(3):
        story.at(1).agree("DescribeQuorum", version, quorum.asked())
    story.happens("stop", 3)
    story.at(1).agree("DescribeQuorum", 2, quorum.asked())
    assert story.errors("DescribeQuorum") == {"NONE"}
