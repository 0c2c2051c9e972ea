"""Groups of each kind whose coordinator moves to another node: members go on, as with Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.node_stories import AtNode, Story, group_at
from ..support.stories import groups, nodes, share, streams
from ..support.stories.offsets import fetch_request

pytestmark = pytest.mark.slow
Ids = tuple[bytes, bytes]
WAYS = ["kill", "pause", "stop"]


def moves(story: Story, what: str, node: int = 1) -> AtNode:
    """The coordinator's node is gone; the next one, when it has loaded."""
    story.happens(what, node)
    story.knows("__consumer_offsets")
    nodes.coordinators_ready(story)
    return story.at(2)


def returns(story: Story, what: str, node: int = 1) -> None:
    story.happens("resume" if what == "pause" else "start", node)
    story.knows("__consumer_offsets")
    nodes.coordinators_ready(story)


def preferred(story: Story) -> None:
    """The first node coordinates again, while the one that did goes on."""
    story.at(2).ask("ElectLeaders", 2, nodes.elections(0, ("__consumer_offsets", 0)))
    story.knows("__consumer_offsets")
    nodes.coordinators_ready(story)


@pytest.mark.parametrize("what", WAYS)
def test_a_member_of_a_classic_group(story: Story, what: str) -> None:
    name = f"classic-{what}"
    story.topic(name, [2], [3])
    nodes.coordinators_ready(story)
    group = group_at(0, name)
    ids = groups.stable(story.at(1), group, name=name, session=300_000)
    committed = [(name, b"", [(0, 5, "")])]
    commit: Callable[[int], Any] = lambda s: groups.commit_request(9, group, committed, ids[s], 1)  # noqa: E731
    story.at(1).both("OffsetCommit", 9, commit)
    at = moves(story, what)
    for generation in (1, 2):
        groups.heartbeat(at, 4, group, ids, generation)
    at.both("OffsetCommit", 9, commit)
    at.ask("OffsetFetch", 9, fetch_request(9, group, None))
    groups.describe(at, group)
    groups.heartbeat(story.at(3), 4, group, ids, 1)
    returns(story, what)
    groups.heartbeat(story.at(1), 4, group, ids, 1)
    preferred(story)
    groups.heartbeat(at, 4, group, ids, 1)
    groups.heartbeat(story.at(1), 4, group, ids, 1)
    groups.describe(story.at(1), group)
    groups.leave(story.at(1), 5, group, (ids, None))
    assert story.errors("Heartbeat") == {"NONE", "NOT_COORDINATOR", "ILLEGAL_GENERATION"}


@pytest.mark.parametrize("what", WAYS)
def test_a_member_of_a_consumer_group(story: Story, what: str) -> None:
    """It goes on with its epoch (KIP-848)."""
    name = f"consumer-{what}"
    ids = story.topic(name, [2, 3], [3, 2])
    nodes.coordinators_ready(story)
    group = group_at(0, name)
    at = story.at(1)
    epoch = join(at, group, name)
    beat(at, group, epoch, ids)
    commit(at, group, ids, epoch)
    at = moves(story, what)
    beat(at, group, epoch, ids)
    beat(at, group, epoch)
    beat(at, group, 0)
    beat(at, group, 7)
    beat(at, group, epoch, member="other")
    commit(at, group, ids, epoch)
    commit(at, group, ids, 0)
    at.ask("OffsetFetch", 9, fetch_request(9, group, None, member_id="m1", member_epoch=epoch))
    groups.describe(at, group)
    returns(story, what)
    preferred(story)
    beat(at, group, epoch)
    beat(story.at(1), group, epoch)
    beat(story.at(1), group, -1)
    groups.describe(story.at(1), group)
    assert {"NONE", "NOT_COORDINATOR", "FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"} <= story.errors(
        "ConsumerGroupHeartbeat"
    )


def join(at: AtNode, group: str, topic: str) -> int:
    """The first heartbeats of a member, until the coordinator gives it partitions. Returns its epoch."""
    timeouts: dict[str, Any] = {"rebalance_timeout_ms": 300_000, "owned": []}
    first = groups.beat_request(1, group, "m1", 0, subscribed_topic_names=[topic], **timeouts)

    def is_given(said: Any) -> bool:
        return bool(said.assignment and said.assignment.topic_partitions)

    return int(at.awaited("ConsumerGroupHeartbeat", 1, first, is_given).member_epoch)


def beat(at: AtNode, group: str, epoch: int, ids: Ids | None = None, member: str = "m1") -> None:
    def make(side: int) -> Any:
        owned = [(ids[side], [0, 1])] if ids else None
        return groups.beat_request(1, group, member, epoch, owned=owned)

    at.both("ConsumerGroupHeartbeat", 1, make)


def commit(at: AtNode, group: str, ids: Ids, epoch: int) -> None:
    def make(side: int) -> Any:
        return groups.commit_request(10, group, [("", ids[side], [(0, 5, "")])], "m1", epoch)

    at.both("OffsetCommit", 10, make)


def share_joined(at: AtNode, first: Any) -> int:
    def is_given(said: Any) -> bool:
        return bool(said.assignment and said.assignment.topic_partitions)

    return int(at.awaited("ShareGroupHeartbeat", 1, first, is_given).member_epoch)


@pytest.mark.parametrize("what", WAYS)
def test_a_member_of_a_share_group(story: Story, what: str) -> None:
    name = f"sharer-{what}"
    ids = story.topic(name, [2, 3], [3, 2])
    nodes.coordinators_ready(story)
    group = group_at(0, name)
    at = story.at(1)
    first = m.ShareGroupHeartbeatRequest(group_id=group, member_id="m1", member_epoch=0, subscribed_topic_names=[name])
    epoch = share_joined(at, first)
    share.initialized(at, group, ids, 2)
    share.heartbeat(at, group, epoch)
    at = moves(story, what)
    for other in (epoch, 0, epoch + 9):
        share.heartbeat(at, group, other)
    share.heartbeat(at, group, epoch, member="other")
    share.heartbeat(story.at(3), group, epoch)
    at.ask("ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=[group]))
    returns(story, what)
    preferred(story)
    share.heartbeat(at, group, epoch)
    share.heartbeat(story.at(1), group, epoch)
    share.heartbeat(story.at(1), group, -1)
    story.at(1).ask("ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=[group]))
    assert {"NONE", "NOT_COORDINATOR", "UNKNOWN_MEMBER_ID"} <= story.errors("ShareGroupHeartbeat")


@pytest.mark.parametrize("what", WAYS)
def test_a_member_of_a_streams_group(story: Story, what: str) -> None:
    name = f"streamer-{what}"
    story.topic(name, [2, 3], [3, 2])
    nodes.coordinators_ready(story)
    group = group_at(0, name)
    at = story.at(1)
    joining = streams.joining(group, streams.part("0", name))
    reply = at.awaited("StreamsGroupHeartbeat", 1, joining, lambda said: not said.status and bool(said.active_tasks))
    epoch = reply.member_epoch
    streams.beat(at, group, epoch, has=streams.tasks(s0=[0, 1]))
    at = moves(story, what)
    streams.beat(at, group, epoch, has=streams.tasks(s0=[0, 1]))
    for other in (epoch, epoch + 9):
        streams.beat(at, group, other)
    streams.beat(at, group, epoch, "other")
    streams.beat(story.at(3), group, epoch)
    streams.describe(at, group)
    returns(story, what)
    preferred(story)
    streams.beat(at, group, epoch)
    streams.beat(story.at(1), group, epoch)
    streams.beat(story.at(1), group, -1)
    streams.describe(story.at(1), group)
    assert {"NONE", "NOT_COORDINATOR", "UNKNOWN_MEMBER_ID"} <= story.errors("StreamsGroupHeartbeat")


def test_partitions_of_a_topic_that_a_group_reads_move_or_are_added(story: Story) -> None:
    """A leader that moves is nothing to a group; a partition that is added is."""
    ids = story.topic("reader", [2, 3], [3, 2])
    nodes.coordinators_ready(story)
    group, at = group_at(0, "reader"), story.at(1)
    epoch = join(at, group, "reader")
    beat(at, group, epoch, ids)
    story.happens("stop", 3)
    story.knows("reader")
    beat(at, group, epoch)
    groups.describe(at, group)
    r = m.CreatePartitionsRequest
    placed = [r.CreatePartitionsAssignment(broker_ids=[2, 1])]
    grown = r.CreatePartitionsTopic(name="reader", count=3, assignments=placed)
    at.ask("CreatePartitions", 3, r(topics=[grown], timeout_ms=10_000))
    story.knows("reader")
    request = groups.beat_request(1, group, "m1", epoch)
    at.until("ConsumerGroupHeartbeat", 1, request, lambda said: said.member_epoch == epoch + 1)
    groups.describe(at, group)
