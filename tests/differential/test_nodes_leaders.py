"""What nodes answer that do not lead, or do not lead in the epoch that the client knows: the same as Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.node_stories import NODES, Story, ends
from ..support.stories import nodes
from ..support.stories.leases import acknowledged, fetched
from ..support.stories.topics import versions

pytestmark = pytest.mark.slow
Ids = tuple[bytes, bytes]


def everywhere(story: Story, name: str, version: int, message: Any) -> None:
    for node in sorted(story.running):
        story.at(node).both(name, version, message if callable(message) else lambda side: message)


@pytest.mark.parametrize("version", [9, 10, 11, 12, 13])
def test_produce(story: Story, version: int) -> None:
    """From version 10 on the reply names the leader, and where it is (KIP-951)."""
    name = f"produce{version}"
    ids = story.topic(name, [1, 2], [3, 1])
    for acks in (-1, 1):
        for partition in (0, 1, 2):
            everywhere(story, "Produce", version, nodes.produce(name, ids, version, partition=partition, acks=acks))
    nobody = (b"\7" * 16, b"\7" * 16)
    everywhere(story, "Produce", version, nodes.produce("nobody", nobody, version))
    story.happens("stop", 1)
    story.knows(name)
    for partition in (0, 1):
        everywhere(story, "Produce", version, nodes.produce(name, ids, version, partition=partition))
    story.happens("stop", 3)
    story.knows(name)
    everywhere(story, "Produce", version, nodes.produce(name, ids, version, partition=1))
    unknown = "UNKNOWN_TOPIC_ID" if version >= 13 else "UNKNOWN_TOPIC_OR_PARTITION"
    assert story.errors("Produce") == {"NONE", "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", unknown}


@pytest.mark.parametrize("version", [10, 12, 15, 16, 18])
def test_fetch(story: Story, version: int) -> None:
    """From version 16 on the reply says where the leader is (KIP-951); clients read from followers."""
    story.trims["Fetch"] = nodes.values_only
    name = f"fetch{version}"
    ids = story.topic(name, [1, 2], [3, 1])
    nodes.written(story.at(1), name, ids, "a", "b")
    for node in (1, 2):
        story.at(node).agree("Fetch", version, nodes.fetch(name, ids, version))
    for partition in (0, 1, 2):
        for offset in (0, 2, 3):
            everywhere(story, "Fetch", version, nodes.fetch(name, ids, version, offset, partition=partition))
    for epoch in (0, 1):
        everywhere(story, "Fetch", version, nodes.fetch(name, ids, version, current_leader_epoch=epoch))
    story.happens("stop", 1)
    story.knows(name)
    for epoch in (-1, 0, 1, 2):
        for partition in (0, 1):
            known = {"current_leader_epoch": epoch, "partition": partition}
            everywhere(story, "Fetch", version, nodes.fetch(name, ids, version, **known))
    for last in (-1, 0, 1) if version >= 12 else ():
        everywhere(story, "Fetch", version, nodes.fetch(name, ids, version, 2, last_fetched_epoch=last))
    assert {"NONE", "NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"} <= story.errors("Fetch")


def test_sessions_of_fetches_hear_of_a_leader_that_moves(story: Story) -> None:
    """An incremental fetch (KIP-227) tells of the partition that has another leader now."""
    story.trims["Fetch"] = nodes.values_only
    ids = story.topic("session", [1, 2], [2, 1])
    at = story.at(2)
    mine, other = at.both("Fetch", 12, nodes.fetch("session", ids, 12, partition=1, session_epoch=0))
    sessions = (mine.session_id, other.session_id)

    def more(epoch: int, *named: Any) -> None:
        def make(side: int) -> Any:
            r = m.FetchRequest
            topics = [r.FetchTopic(topic="session", partitions=list(named))] if named else []
            return r(topics=topics, session_id=sessions[side], session_epoch=epoch, max_bytes=1 << 20, min_bytes=0)

        at.both("Fetch", 12, make)

    more(1)
    more(2, m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20))
    nodes.written(at, "session", ids, "a", partition=1)
    more(3)
    more(4)
    story.happens("stop", 1)
    story.knows("session")
    nodes.written(at, "session", ids, "b", partition=0)
    more(5)
    more(6, m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20, current_leader_epoch=0))
    more(7)
    more(9)
    assert story.errors("Fetch") == {"NONE", "FENCED_LEADER_EPOCH", "INVALID_FETCH_SESSION_EPOCH"}


@pytest.mark.parametrize("version", [5, 7, 10, 11])
def test_list_offsets(story: Story, version: int) -> None:
    name = f"offsets{version}"
    ids = story.topic(name, [1, 2], [3, 1])
    nodes.written(story.at(1), name, ids, "a", "b")
    story.knows(name)
    times = {5: (-1, -2, 0), 7: (-1, -2, -3, 0)}.get(version, (-1, -2, -3, -4, -5, 0))
    for timestamp in times:
        for isolation in (0, 1):
            asked = ends(name, 0, 1, 2, timestamp=timestamp, isolation=isolation)
            everywhere(story, "ListOffsets", version, asked)
    story.happens("stop", 1)
    story.knows(name)
    for epoch in (-1, 0, 1, 2):
        everywhere(story, "ListOffsets", version, ends(name, 0, 1, epoch=epoch))
    story.happens("stop", 3)
    story.knows(name)
    everywhere(story, "ListOffsets", version, ends(name, 1))
    assert story.errors("ListOffsets") >= {"NONE", "NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"}


@pytest.mark.parametrize("version", [2, 3, 4])
def test_offset_for_leader_epoch(story: Story, version: int) -> None:
    name = f"ends{version}"
    ids = story.topic(name, [1, 2], [3, 1])
    nodes.written(story.at(1), name, ids, "a", "b")
    story.knows(name)
    story.happens("stop", 1)
    story.knows(name)
    nodes.written(story.at(2), name, ids, "c")
    for partition in (0, 1, 2):
        for epoch in (-1, 0, 1, 2):
            for current in (-1, 0, 1, 2):
                asked = nodes.end_of_epoch(name, epoch, current, partition)
                everywhere(story, "OffsetForLeaderEpoch", version, asked)
    assert story.errors("OffsetForLeaderEpoch") == {
        "NONE",
        "NOT_LEADER_OR_FOLLOWER",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_delete_records_and_describe_producers(story: Story) -> None:
    """Followers hear of the new start with their next fetch."""
    ids = story.topic("cut", [1, 2], [3, 1])
    nodes.written(story.at(1), "cut", ids, "a", "b", "c")
    for version in versions("DeleteRecords"):
        for offset in (version, 9, -1 if version == 2 else 0):
            everywhere(story, "DeleteRecords", version, nodes.deletion("cut", offset))
    everywhere(story, "DeleteRecords", 2, nodes.deletion("cut", 0, 1))
    everywhere(story, "DeleteRecords", 2, nodes.deletion("cut", 0, 2))
    everywhere(story, "DescribeProducers", 0, nodes.producers("cut", 0, 1, 2))
    story.happens("stop", 1)
    story.knows("cut")
    everywhere(story, "DeleteRecords", 2, nodes.deletion("cut", 3))
    everywhere(story, "DescribeProducers", 0, nodes.producers("cut", 0, 1))
    everywhere(story, "ListOffsets", 7, ends("cut", 0, timestamp=-2))
    assert "NOT_LEADER_OR_FOLLOWER" in story.errors("DeleteRecords") & story.errors("DescribeProducers")


def test_share_fetch_and_share_acknowledge(story: Story) -> None:
    """Members of share groups hear where the leader of a share-partition is (KIP-932). A node acknowledges nothing in
    share-partitions that it does not lead, and does not know them.
    """
    ids = story.topic("leased", [1, 2], [3, 1])
    for node in NODES:
        at = story.at(node)
        fetched(at, "leased", ids, 0, partitions=(1, 2) if node < 3 else (0, 2), max_wait_ms=0)
        acknowledged(at, "leased", ids, 1, [(0, 0, [1])], index=1 if node < 3 else 0)
        acknowledged(at, "leased", ids, 2, [(0, 0, [1])], index=2)
    story.happens("stop", 1)
    story.knows("leased")
    for node in (2, 3):
        at = story.at(node)
        fetched(at, "leased", ids, 0, partitions=(3 - node,), member="m2", max_wait_ms=0)
        acknowledged(at, "leased", ids, 1, [(0, 0, [1])], member="m2", index=3 - node)
    assert "NOT_LEADER_OR_FOLLOWER" in story.errors("ShareFetch")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in story.errors("ShareAcknowledge")


@pytest.mark.parametrize("version", [0, 4, 7, 9, 12, 13])
def test_metadata_while_leaders_move(story: Story, version: int) -> None:
    """Old versions know no epochs and no offline replicas; version 0 asks for all topics by naming none."""
    name = f"known{version}"
    story.topic(name, [1, 2], [2, 3], [3, 1])
    request = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=name)])
    request.allow_auto_topic_creation = version < 4
    everywhere(story, "Metadata", version, request)
    story.happens("stop", 2)
    story.knows(name)
    everywhere(story, "Metadata", version, request)
    story.happens("kill", 1)
    story.knows(name)
    everywhere(story, "Metadata", version, request)
    unavailable = {"LEADER_NOT_AVAILABLE", *(["REPLICA_NOT_AVAILABLE"] if version == 0 else [])}
    assert story.errors("Metadata") == {"NONE", *unavailable}
