"""Where replicas are placed, and how they move: the same decisions and errors as Apache Kafka's controller."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.node_stories import NODES, Story, creation, description
from ..support.stories import nodes
from ..support.stories.topics import versions

pytestmark = pytest.mark.slow
A, L = m.AlterPartitionReassignmentsRequest, m.ListPartitionReassignmentsRequest


def move(story: Story, name: str, replicas: Sequence[int] | None, index: int = 0, *, at: int = 1, **more: Any) -> None:
    part = A.ReassignablePartition(partition_index=index, replicas=None if replicas is None else list(replicas))
    request = A(topics=[A.ReassignableTopic(name=name, partitions=[part])], timeout_ms=10_000, **more)
    story.at(at).ask("AlterPartitionReassignments", 1, request)


def listed(story: Story, *names: str, at: int = 1) -> None:
    topics = [L.ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 1, 9]) for name in names]
    story.at(at).agree("ListPartitionReassignments", 0, L(topics=topics, timeout_ms=10_000))


PLACED: dict[str, list[list[int]]] = {
    "unknown broker": [[1, 9]],
    "twice the same": [[1, 1]],
    "negative": [[-1]],
    "no replicas": [[]],
    "uneven": [[1, 2], [3]],
    "all": [[3, 1, 2], [1, 2, 3]],
    "more than brokers": [[1, 2, 3, 4]],
}


def test_topics_are_placed_by_hand(story: Story) -> None:
    for version in versions("CreateTopics"):
        for what, placed in PLACED.items():
            name = f"placed-{what.replace(' ', '-')}-{version}"
            story.at(1 + version % 3).ask("CreateTopics", version, creation(name, *placed))
    story.happens("stop", 3)
    story.at(1).agree("Metadata", 12, m.MetadataRequest(topics=[]))
    for name, placed in {"partly": [[3, 1]], "gone": [[3]], "first": [[3, 1, 2], [2, 3, 1]]}.items():
        story.at(1).ask("CreateTopics", 7, creation(f"placed-{name}", *placed))
    request = creation("placed-nowhere")
    request.topics[0].num_partitions, request.topics[0].replication_factor = 1, 3
    for validate_only in (True, False):
        request.validate_only = validate_only
        story.at(1).ask("CreateTopics", 7, request)
    story.knows("placed-partly", "placed-first")
    story.happens("start", 3)
    story.knows("placed-partly", "placed-first")
    assert story.errors("CreateTopics") == {"NONE", "INVALID_REPLICA_ASSIGNMENT"}


def test_resources_of_all_nodes_are_listed(story: Story) -> None:
    """Each node lists the brokers and the loggers of all nodes, also of one that has stopped."""

    def listed_at(*at: int) -> None:
        for node in at:
            for types in ([4], [8], [4, 8]):
                story.at(node).agree("ListConfigResources", 1, m.ListConfigResourcesRequest(resource_types=types))

    listed_at(1, 2)
    story.happens("stop", 3)
    story.at(1).agree("DescribeCluster", 2, m.DescribeClusterRequest(include_fenced_brokers=True))
    listed_at(1, 2)
    story.happens("start", 3)
    story.at(1).agree("DescribeCluster", 2, m.DescribeClusterRequest())
    listed_at(1, 3)


@pytest.mark.parametrize(("factor", "partitions"), [(3, 2), (2, 3), (1, 4), (4, 1), (0, 1), (-2, 1), (3, 0)])
def test_topics_are_placed_by_the_controller(story: Story, factor: int, partitions: int) -> None:
    """Where it begins is random; how many replicas there are, on how many nodes, is not."""

    def counted(reply: Any) -> None:
        for topic in reply.topics:
            used = [node for part in topic.partitions for node in part.replica_nodes]
            for part in topic.partitions:
                for listed_nodes in (part.replica_nodes, part.isr_nodes):
                    listed_nodes[:] = [len(set(listed_nodes))]
                part.leader_id = max(used.count(node) for node in NODES) - min(used.count(node) for node in NODES)

    name = f"automatic{factor}x{partitions}"
    request = creation(name)
    request.topics[0].num_partitions, request.topics[0].replication_factor = partitions, factor
    for version in (5, 7):
        for validate_only in (True, False):
            request.validate_only = validate_only
            story.at(2).ask("CreateTopics", version, request)
    story.trims["DescribeTopicPartitions"] = counted
    for node in NODES:
        story.at(node).agree("DescribeTopicPartitions", 0, description(name))


GROWN: dict[str, tuple[int, list[list[int]] | None]] = {
    "by the controller": (3, None),
    "by hand": (3, [[3, 1], [2, 3]]),
    "too few assignments": (4, [[3, 1]]),
    "too many assignments": (2, [[3, 1]]),
    "another factor": (3, [[3]]),
    "unknown broker": (3, [[3, 9]]),
    "twice the same": (3, [[3, 3]]),
    "no replicas": (3, [[]]),
    "uneven": (4, [[3, 1], [2]]),
    "less": (1, None),
    "the same": (2, None),
}


def test_partitions_are_added(story: Story) -> None:
    r = m.CreatePartitionsRequest
    story.topic("grown", [1, 2], [2, 1])
    for version in versions("CreatePartitions"):
        for validate_only in (True, False):
            for what, (count, placed) in GROWN.items():
                if what in ("by hand", "by the controller") and not validate_only:
                    continue
                topic = r.CreatePartitionsTopic(name="grown", count=count, assignments=None)
                if placed is not None:
                    topic.assignments = [r.CreatePartitionsAssignment(broker_ids=one) for one in placed]
                request = r(topics=[topic], timeout_ms=10_000, validate_only=validate_only)
                story.at(3).ask("CreatePartitions", version, request)
    by_hand = [r.CreatePartitionsAssignment(broker_ids=one) for one in ([3, 1], [2, 3])]
    grown = r.CreatePartitionsTopic(name="grown", count=4, assignments=by_hand)
    story.at(3).ask("CreatePartitions", 3, r(topics=[grown], timeout_ms=10_000))
    story.knows("grown")
    story.happens("stop", 3)
    story.knows("grown")
    for name, nodes_of in {"partly": [3, 1], "gone": [3, 3], "alive": [2, 1]}.items():
        assigned = [r.CreatePartitionsAssignment(broker_ids=nodes_of)]
        topic = r.CreatePartitionsTopic(name="grown", count=6 if name == "alive" else 5, assignments=assigned)
        story.at(1).ask("CreatePartitions", 3, r(topics=[topic], timeout_ms=10_000))
    story.knows("grown")
    assert story.errors("CreatePartitions") >= {"NONE", "INVALID_REPLICA_ASSIGNMENT", "INVALID_PARTITIONS"}


def test_replicas_move(story: Story) -> None:
    """To other nodes, to more and to fewer, and back; the leader goes when its replica does."""
    story.trims["Fetch"] = nodes.values_only
    ids = story.topic("moved", [1, 2], [2, 1])
    nodes.written(story.at(1), "moved", ids, "a", "b")
    for replicas in ([1, 2, 3], [3, 2, 1], [3], [2], [1, 3], [2, 1]):
        move(story, "moved", replicas)
        listed(story, "moved")
        story.knows("moved")
    nodes.read(story.at(2), "moved", ids)
    story.at(2).ask("OffsetForLeaderEpoch", 4, nodes.end_of_epoch("moved", 0))
    for leader in (1, 2, 3):
        story.at(leader).both("Produce", 10, nodes.produce("moved", ids, 10))


def test_moves_that_wait_for_a_node(story: Story) -> None:
    """They are listed, changed and cancelled while the new replica's node is gone."""
    for name in ("waits", "cancels", "changes"):
        story.topic(name, [1, 2], [2, 1])
    story.happens("stop", 3)
    story.knows("waits", "cancels", "changes")
    for name in ("waits", "cancels", "changes"):
        move(story, name, [3, 1])
        move(story, name, [3, 2], 1)
        story.knows(name)
    listed(story, "waits", "cancels", "changes")
    for replicas in (None, None, [9], []):
        move(story, "cancels", replicas)
    move(story, "changes", [2, 3])
    move(story, "changes", [1, 2], 1)
    move(story, "changes", [1], 1, allow_replication_factor_change=False)
    listed(story, "waits", "cancels", "changes", at=2)
    story.knows("waits", "cancels", "changes")
    story.happens("start", 3)
    for node in NODES:
        listed(story, "waits", "cancels", "changes", at=node)
    story.knows("waits", "cancels", "changes")
    assert "NO_REASSIGNMENT_IN_PROGRESS" in story.errors("AlterPartitionReassignments")


@pytest.mark.parametrize("what", ["stop", "kill"])
def test_a_move_whose_new_replica_goes(story: Story, what: str) -> None:
    """The old replica leaves while the new one's node goes, and comes back: who leads, and who is eligible."""
    story.trims["Fetch"] = nodes.values_only
    gone = f"ended-{what}"
    ids = story.topic(gone, [1, 2], [2, 1])
    nodes.written(story.at(1), gone, ids, "a")
    nodes.read(story.at(2), gone, ids)
    story.happens(what, 2)
    story.knows(gone)
    move(story, gone, [2])
    move(story, gone, [2, 3], 1)
    listed(story, gone)
    story.knows(gone)
    other = 1 if what == "kill" else 3
    story.happens("stop", other)
    left = min(story.running)
    listed(story, gone, at=left)
    story.knows(gone)
    for kind in (0, 1):
        story.at(left).ask("ElectLeaders", 2, nodes.elections(kind, (gone, 0), (gone, 1)))
    story.happens("start", 2)
    listed(story, gone, at=left)
    story.knows(gone)
    story.happens("start", other)
    listed(story, gone, at=left)
    story.knows(gone)


def test_features_and_loggers_of_each_node(story: Story) -> None:
    """Any node takes what is of the cluster; what is of one broker, only that broker."""
    i, d = m.IncrementalAlterConfigsRequest, m.DescribeConfigsRequest

    def altered(at: int, kind: int, name: str, key: str, value: str | None, operation: int = 0) -> None:
        config = i.AlterableConfig(name=key, config_operation=operation, value=value)
        resource = i.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
        story.at(at).ask("IncrementalAlterConfigs", 1, i(resources=[resource]))

    def described(at: int, kind: int, name: str, *keys: str) -> None:
        resource = d.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys))
        story.at(at).agree("DescribeConfigs", 4, d(resources=[resource], include_synonyms=True))

    for at in NODES:
        for name in ("1", "2", "9", "x", ""):
            altered(at, 4, name, "log.cleaner.threads", "2")
            described(at, 4, name, "log.cleaner.threads")
            altered(at, 8, name, "kafka.server.KafkaApis", "DEBUG")
    for name in ("1", "2"):
        altered(3, 4, name, "log.cleaner.threads", None, 1)
    altered(2, 4, "", "log.cleaner.threads", None, 1)
    for at in NODES:
        for name in ("1", "2", ""):
            described(at, 4, name, "log.cleaner.threads")
    story.trims["UpdateFeatures"] = any_controller
    u = m.UpdateFeaturesRequest
    for feature, level in (("nope", 1), ("group.version", 99), ("group.version", 0), ("metadata.version", 1)):
        update = u.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=1)
        for at in NODES:
            story.at(at).ask("UpdateFeatures", 2, u(feature_updates=[update], timeout_ms=10_000, validate_only=True))


def any_controller(reply: Any) -> None:
    """The controller of Kafka's three is none of them, and has an id of its own."""
    reply.error_message = re.sub(r"controller \d+", "controller", reply.error_message or "")


def test_log_directories_are_altered_at_the_node_that_has_the_replica(story: Story) -> None:
    story.topic("directory", [1, 2], [3, 1])
    r = m.AlterReplicaLogDirsRequest
    for version in versions("AlterReplicaLogDirs"):
        for node in NODES:
            for partition in (0, 1, 2):
                topic = r.AlterReplicaLogDirTopic(name="directory", partitions=[partition])
                request = r(dirs=[r.AlterReplicaLogDir(path="/nowhere", topics=[topic])])
                story.at(node).ask("AlterReplicaLogDirs", version, request)
    assert story.errors("AlterReplicaLogDirs") == {"LOG_DIR_NOT_FOUND"}
