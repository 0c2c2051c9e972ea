"""What a topic is in Metadata and in DescribeTopicPartitions is encoded once, until something of the topic changes."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.apis import k03_metadata, k75_describe_topic_partitions
from ottla.broker.later import drive
from ottla.broker.topic_pieces import OVERHEAD_BYTES, PIECES_MAX, Key, Piece, TopicPieces
from ottla.coordinator.metadata.delta import MetadataDelta, RemovedTopic
from ottla.coordinator.metadata.state import MetadataState
from ottla.coordinator.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.failing_files import FailingFiles
from ..support.lab import LabWorld
from ..support.node_world import cluster, happens
from ..support.node_world import create as place
from ..support.topic_world import create
from ..support.world import World

D = m.DescribeTopicPartitionsRequest
LOOKED_UP = "leadership"  # what both APIs ask of each partition that they describe


def everything(operations: bool = False) -> m.MetadataRequest:
    return m.MetadataRequest(topics=None, include_topic_authorized_operations=operations)


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics of the partitions that are described, in their order."""
    found: list[str] = []
    for module in (k03_metadata, k75_describe_topic_partitions):
        original = getattr(module, LOOKED_UP)

        def counted(broker: Any, topic: str, state: Any, original: Any = original) -> Any:
            found.append(topic)
            return original(broker, topic, state)

        monkeypatch.setattr(module, LOOKED_UP, counted)
    return found


def topics(world: World, name: str, version: int, message: Any, node: int = 1) -> list[Any]:
    return list(world.at(node, name, version, message).topics)


def test_a_topic_is_encoded_once_for_all_who_ask(looked_up: list[str]) -> None:
    world = World()
    create(world, "orders", 3)
    create(world, "users", 2)
    first = topics(world, "Metadata", 12, everything())
    assert sorted(looked_up) == ["orders"] * 3 + ["users"] * 2
    one = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="orders")])
    assert topics(world, "Metadata", 12, everything()) == first
    assert topics(world, "Metadata", 12, one) == first[:1]
    assert len(looked_up) == 5
    by_pages = topics(world, "DescribeTopicPartitions", 0, D())
    assert topics(world, "DescribeTopicPartitions", 0, D()) == by_pages
    assert len(looked_up) == 10
    topics(world, "Metadata", 9, everything())
    assert len(looked_up) == 15, "another version is another piece"


def test_what_changes_is_encoded_again_and_nothing_else(looked_up: list[str]) -> None:
    world = World()
    create(world, "orders", 3)
    create(world, "users", 2)
    topics(world, "Metadata", 12, everything())
    looked_up.clear()
    r = m.CreatePartitionsRequest
    more = r(topics=[r.CreatePartitionsTopic(name="users", count=4, assignments=None)], timeout_ms=1000)
    assert world.ask("CreatePartitions", 3, more).results[0].error_code == 0
    assert [len(one.partitions) for one in topics(world, "Metadata", 12, everything())] == [3, 4]
    assert looked_up == ["users"] * 4


def test_a_page_that_ends_within_a_topic_is_made_for_itself(looked_up: list[str]) -> None:
    world = World()
    create(world, "orders", 5)
    page = D(response_partition_limit=2)
    for _ in range(2):
        reply = world.ask("DescribeTopicPartitions", 0, page)
        assert [one.partition_index for one in reply.topics[0].partitions] == [0, 1]
        assert (reply.next_cursor.topic_name, reply.next_cursor.partition_index) == ("orders", 2)
    rest = D(response_partition_limit=9, cursor=D.Cursor(topic_name="orders", partition_index=2))
    assert [one.partition_index for one in topics(world, "DescribeTopicPartitions", 0, rest)[0].partitions] == [2, 3, 4]
    assert len(looked_up) == 7
    assert world.broker.partitions.pieces.bytes == 0


def asked(world: World) -> list[object]:
    """What all nodes say of all topics, in several versions."""
    found: list[object] = []
    for node in world.dispatchers:
        found += [topics(world, "Metadata", version, everything(), node) for version in (4, 8, 12)]
        found += [topics(world, "Metadata", 12, everything(operations=True), node)]
        found += [topics(world, "DescribeTopicPartitions", 0, D(), node)]
    return found


def same_as_made_now(world: World, after: str) -> None:
    kept = asked(world)
    pieces = world.broker.partitions.pieces
    for name in world.broker.image.topics:
        pieces.forget(name)
    assert pieces.bytes == 0, "pieces of topics that do not exist any more are gone"
    assert kept == asked(world), after


def delete(world: World, name: str) -> None:
    world.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=[name], timeout_ms=1000))


def test_whatever_happens_to_nodes_and_topics_pieces_say_what_is_so() -> None:
    world = cluster(log_dirs="/a,/b")
    site = LabWorld(world)
    for number in range(4):
        place(world, f"x{number}", [1, 2, 3])
    same_as_made_now(world, "the start")
    for what, node in (
        ("stop", 1),
        ("begin", 1),
        ("kill", 2),
        ("fence", 2),
        ("begin", 2),
        ("drain", 3),
        ("stop", 3),
        ("begin", 3),
    ):
        happens(world, what, node)
        same_as_made_now(world, f"{what} of node {node}")
        world.pass_ms(40_000)
        same_as_made_now(world, f"a while after {what} of node {node}")
    site.ask("POST /v1/nodes/1/failed-directories", directory="/a")
    world.pass_ms(100)
    lost = [one for one in topics(world, "Metadata", 12, everything()) if one.partitions[0].offline_replicas == [1]]
    assert lost
    same_as_made_now(world, "a directory of node 1 failed")
    for what in ("stop", "begin"):
        happens(world, what, 1)
    world.pass_ms(1000)
    assert all(not one.partitions[0].offline_replicas for one in topics(world, "Metadata", 12, everything()))
    same_as_made_now(world, "node 1 is well again")
    delete(world, "x0")
    same_as_made_now(world, "x0 was deleted")
    place(world, "x0", [3, 1])
    same_as_made_now(world, "x0 was made again")


def test_a_topic_that_is_deleted_and_made_again_at_once_is_the_new_one() -> None:
    world = World()
    create(world, "t")
    before = topics(world, "Metadata", 12, everything())[0].topic_id
    r = m.CreateTopicsRequest
    again = r(topics=[r.CreatableTopic(name="t", num_partitions=2, replication_factor=1)], timeout_ms=1000)
    answers = world.together(
        ("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)), ("CreateTopics", 7, again)
    )
    while not answers[1].done:
        world.pass_ms(1)
    after = topics(world, "Metadata", 12, everything())[0]
    assert after.topic_id == answers[1].reply.topics[0].topic_id != before
    same_as_made_now(world, "t was made again")


def test_a_failed_log_directory_takes_its_leaders_at_once_and_each_reply_counts_that(looked_up: list[str]) -> None:
    files = FailingFiles()
    world = World(files, log_dirs="/a,/b")
    create(world, "t", 4)
    same_as_made_now(world, "the start")
    directory = world.broker.log_directories.all[1]
    world.broker.turn.event(lambda: world.broker.log_directories.io_failed(directory, OSError(5, "Input/output error")))
    errors = world.broker.metrics.errors
    errors.clear()
    first = topics(world, "Metadata", 12, everything())
    assert sorted(one.error_code for one in first[0].partitions) == [0, 0, *[Errors.LEADER_NOT_AVAILABLE] * 2]
    assert errors[3, Errors.LEADER_NOT_AVAILABLE] == 2
    looked_up.clear()
    assert topics(world, "Metadata", 12, everything()) == first
    assert not looked_up
    assert errors[3, Errors.LEADER_NOT_AVAILABLE] == 4
    same_as_made_now(world, "a directory failed")


def test_what_is_lost_for_one_node_shows_before_the_metadata_says_so() -> None:
    world = cluster(log_dirs="/a,/b")
    asked(world)
    node, directory = world.broker.nodes.by_id[1], world.broker.log_directories.all[1]
    failing = drive(world.broker.node_directories.fail(node, directory))
    assert not failing.done, "the metadata is not committed yet"
    same_as_made_now(world, "a directory of node 1 failed")
    asked(world)
    before = world.broker.partitions.pieces.bytes
    world.broker.replicas.leaders.heal_directories(1)
    assert world.broker.partitions.pieces.bytes < before
    same_as_made_now(world, "it is well again")


def test_a_partition_that_is_removed_was_one_of_an_older_topic_of_that_name() -> None:
    """Metadata of the new one may have been asked for when only the metadata knew it."""
    world = World()
    create(world, "t")
    asked(world)
    world.broker.partitions.remove(world.broker.partitions.by_name["t", 0])
    assert world.broker.partitions.pieces.bytes == 0


def test_each_principal_sees_its_own_operations() -> None:
    world = World(authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer", super_users="User:a")
    world.peer.principal = "User:a"
    create(world, "t")
    assert world.broker.authorizer is not None
    for number, operation in enumerate((Operation.DESCRIBE, Operation.READ)):
        acl = Acl(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:b", "*", operation, Permission.ALLOW)
        world.broker.authorizer.put(bytes([number]), acl)
    seen = {}
    for principal in ("User:a", "User:b", "User:c"):
        world.peer.principal = principal
        replies = [("Metadata", 12, everything(operations=True)), ("DescribeTopicPartitions", 0, D())]
        seen[principal] = [[one.topic_authorized_operations for one in topics(world, *asked)] for asked in replies]
        assert [one.topic_authorized_operations for one in topics(world, "Metadata", 12, everything())] in (
            [],
            [k03_metadata.NOT_ASKED],
        )
    mine, theirs, none = seen.values()
    assert mine[0] == mine[1] != theirs[0] == theirs[1] == [1 << Operation.READ | 1 << Operation.DESCRIBE]
    assert none == [[], []]


def test_topics_that_are_removed_leave_no_piece() -> None:
    """Also those without a partition here."""
    pieces, delta = TopicPieces(), MetadataDelta(MetadataState())
    pieces.keep("a", Key(3, 12, 0), Piece(b"", ()))
    delta.removed.append(RemovedTopic("a", bytes(16), 1))
    assert list(pieces.forget_removed(delta)) == [None], "a step for each"
    assert pieces.bytes == 0


def test_pieces_are_bounded() -> None:
    data = bytes(1000)
    size = len(data) + OVERHEAD_BYTES
    pieces = TopicPieces(bytes_max=3 * size)
    for topic in "abcd":
        pieces.keep(topic, Key(3, 12, 0), Piece(data, ()))
    assert pieces.bytes == 3 * size
    assert [pieces.get(topic, Key(3, 12, 0)) is not None for topic in "abcd"] == [False, True, True, True]
    pieces = TopicPieces()
    for operations in range(PIECES_MAX + 1):
        pieces.keep("a", Key(3, 12, operations), Piece(data, ()))
    assert pieces.bytes == size, "the operations of many principals, or many versions"
    pieces.forget("a")
    pieces.forget("a")
    assert pieces.bytes == 0
    pieces = TopicPieces(bytes_max=10)
    pieces.keep("a", Key(3, 12, 0), Piece(data, ()))
    assert (pieces.bytes, pieces.get("a", Key(3, 12, 0))) == (0, None)
