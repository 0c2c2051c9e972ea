"""Share-partitions whose leader moves to another node: as Apache Kafka's (KIP-932)."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.coordinator.share.acknowledge_types import ACCEPT, REJECT, RELEASE
from ottla.protocol import messages as m

from ..support.node_stories import AtNode, Story, group_at
from ..support.stories import nodes, share
from ..support.stories.leases import acknowledged, fetched, offsets

pytestmark = pytest.mark.slow
Ids = tuple[bytes, bytes]


def consuming(story: Story, name: str, *placed: list[int]) -> tuple[str, Ids]:
    """A share group, coordinated by node 3, whose share-partitions are initialised, from the beginning on."""
    story.trims["ShareFetch"] = nodes.values_only
    ids = story.topic(name, *placed)
    nodes.coordinators_ready(story)
    group, at = group_at(2, name), story.at(3)
    share.configure(at, group, share_auto_offset_reset="earliest", share_record_lock_duration_ms="60000")
    first = m.ShareGroupHeartbeatRequest(group_id=group, member_id="m1", member_epoch=0, subscribed_topic_names=[name])
    at.until("ShareGroupHeartbeat", 1, first, lambda said: bool(said.assignment and said.assignment.topic_partitions))
    share.initialized(at, group, ids, len(placed))
    return group, ids


def ready(story: Story, name: str) -> None:
    story.knows(name, "__consumer_offsets", "__share_group_state")
    nodes.coordinators_ready(story)


def fetch(at: AtNode, group: str, ids: Ids, epoch: int, member: str = "m1", **more: Any) -> Any:
    return fetched(at, group, ids, epoch, member=member, max_wait_ms=5000, **more)


def preferred(story: Story, name: str) -> None:
    """The first replica leads again, while the node that led goes on."""
    story.at(3).ask("ElectLeaders", 2, nodes.elections(0, (name, 0)))
    ready(story, name)


@pytest.mark.parametrize("what", ["stop", "kill", "pause"])
def test_delivery_counts_are_kept_when_the_leader_moves(story: Story, what: str) -> None:
    """What was accepted and rejected stays so; what was released or only acquired comes again, and is counted."""
    name = f"counts-{what}"
    group, ids = consuming(story, name, [1, 3], [3, 1])
    at = story.at(1)
    nodes.written(at, name, ids, *"abcdefgh")
    fetch(at, group, ids, 0)
    acknowledged(at, group, ids, 1, [(0, 1, [ACCEPT]), (2, 3, [RELEASE]), (5, 5, [REJECT])])
    fetch(at, group, ids, 2)
    acknowledged(at, group, ids, 3, [(2, 2, [RELEASE])])
    offsets(story.at(3), group)
    story.happens(what, 1)
    ready(story, name)
    at = story.at(3)
    fetch(at, group, ids, 2)
    acknowledged(at, group, ids, 3, [(4, 4, [ACCEPT])])
    fetch(at, group, ids, 0)
    acknowledged(at, group, ids, 1, [(4, 4, [ACCEPT])])
    acknowledged(at, group, ids, 2, [(6, 7, [RELEASE])])
    fetch(at, group, ids, 3)
    offsets(at, group)
    story.happens("resume" if what == "pause" else "start", 1)
    ready(story, name)
    preferred(story, name)
    acknowledged(at, group, ids, 4, [(6, 7, [ACCEPT])])
    fetch(at, group, ids, 5)
    fetch(story.at(1), group, ids, 0, member="m2")
    acknowledged(story.at(1), group, ids, 1, [(6, 7, [ACCEPT])], member="m2")
    offsets(at, group)
    assert "NOT_LEADER_OR_FOLLOWER" in story.errors("ShareFetch")


def test_the_coordinator_of_the_states_moves(story: Story) -> None:
    """The leader of the share-partition writes at the next one, and members see nothing of it."""
    name = "persisted"
    group, ids = consuming(story, name, [1, 3], [3, 1])
    at = story.at(1)
    nodes.written(at, name, ids, *"abcd")
    fetch(at, group, ids, 0)
    acknowledged(at, group, ids, 1, [(0, 0, [ACCEPT])])
    story.happens("stop", 2)
    ready(story, name)
    acknowledged(at, group, ids, 2, [(1, 1, [ACCEPT]), (2, 3, [RELEASE])])
    fetch(at, group, ids, 3)
    offsets(story.at(3), group)
    story.happens("start", 2)
    ready(story, name)
    acknowledged(at, group, ids, 4, [(2, 2, [REJECT])])
    offsets(story.at(3), group)
    assert story.errors("ShareAcknowledge") == {"NONE"}


def test_states_that_cannot_be_written(story: Story) -> None:
    """Two of three replicas of `__share_group_state` are gone, and min.insync.replicas is 2: the leader is told that
    its write took too long. What the coordinator has appended counts when a replica follows again.
    """
    name = "unpersisted"
    group, ids = consuming(story, name, [3, 1], [1, 3])
    at = story.at(3)
    nodes.written(at, name, ids, *"abcd")
    fetch(at, group, ids, 0)
    story.happens("stop", 2, 1000)
    ready(story, name)
    acknowledged(at, group, ids, 1, [(0, 0, [ACCEPT])])
    story.happens("stop", 1, 1000)
    ready(story, name)
    acknowledged(at, group, ids, 2, [(1, 1, [ACCEPT])])
    story.happens("start", 2, 1000)
    ready(story, name)
    offsets(at, group)
    assert story.errors("ShareAcknowledge") == {"NONE", "COORDINATOR_NOT_AVAILABLE"}
