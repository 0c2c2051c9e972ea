"""Clients read from followers, of their own rack or of any: as from Apache Kafka's (KIP-392)."""

from __future__ import annotations

from functools import partial

import pytest

from ..support.node_stories import NODES, Story, ends
from ..support.stories import nodes
from ..support.stories.quorum import same

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("version", [11, 12, 16])
def test_the_leader_sends_a_client_to_the_replica_of_its_rack(story: Story, version: int) -> None:
    story.trims["Fetch"] = nodes.values_only
    name = f"near{version}"
    ids = story.topic(name, [1, 2, 3], [2, 1, 3])
    nodes.written(story.at(1), name, ids, "a", "b", "c")
    for node in NODES:
        nodes.read(story.at(node), name, ids)
    for rack in ("", "a", "b", "c", "elsewhere"):
        for offset in (0, 3, 4):
            story.at(1).agree("Fetch", version, nodes.fetch(name, ids, version, offset, rack_id=rack))
    for node in (2, 3):
        for rack in ("a", "b", "c"):
            story.at(node).both("Fetch", version, nodes.fetch(name, ids, version, rack_id=rack))
    story.happens("stop", 2)
    story.knows(name)
    for rack in ("a", "b", "c"):
        story.at(1).agree("Fetch", version, nodes.fetch(name, ids, version, rack_id=rack))
    story.happens("start", 2)
    story.knows(name)
    story.at(1).agree("Fetch", version, nodes.fetch(name, ids, version, rack_id="b"))
    assert "NONE" in story.errors("Fetch")


def test_followers_know_epochs_and_ends(story: Story) -> None:
    """A client of a follower is fenced by it, hears where the logs diverge, and cannot read past the high watermark."""
    story.trims["Fetch"] = nodes.values_only
    ids = story.topic("follower", [1, 2, 3], [3, 2, 1], min_insync_replicas="2")
    nodes.written(story.at(1), "follower", ids, "a", "b")
    story.happens("stop", 1)
    story.knows("follower")
    nodes.written(story.at(2), "follower", ids, "c")
    story.happens("start", 1)
    story.knows("follower")
    for node in NODES:
        nodes.read(story.at(node), "follower", ids)
    for node in NODES:
        at = story.at(node)
        for epoch in (-1, 0, 1, 2):
            at.both("Fetch", 12, nodes.fetch("follower", ids, 12, current_leader_epoch=epoch))
            for offset in (0, 2, 3, 9):
                at.both("Fetch", 12, nodes.fetch("follower", ids, 12, offset, last_fetched_epoch=epoch))
        for replica in (-2, 7):
            at.both("Fetch", 12, nodes.fetch("follower", ids, 12, replica_id=replica))
    assert {"NONE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_OUT_OF_RANGE"} <= story.errors("Fetch")


def test_a_follower_deletes_with_its_leader(story: Story) -> None:
    story.trims["Fetch"] = nodes.values_only
    ids = story.topic("deleted", [1, 2], [2, 3])
    nodes.written(story.at(1), "deleted", ids, "a", "b", "c")
    nodes.read(story.at(2), "deleted", ids)
    story.at(1).ask("DeleteRecords", 2, nodes.deletion("deleted", 2))
    for node in (1, 2):
        for offset in (0, 1, 2, 3):
            nodes.read(story.at(node), "deleted", ids, offset)
    story.happens("kill", 1)
    story.knows("deleted")
    for offset in (0, 1, 2, 3):
        nodes.read(story.at(2), "deleted", ids, offset)
    assert "OFFSET_OUT_OF_RANGE" in story.errors("Fetch")


def test_a_deletion_waits_for_the_replicas_that_are_alive(story: Story) -> None:
    """It has happened on the leader. A replica that has the start already is not waited for, nor one that is fenced."""
    ids = story.topic("awaited", [1, 3])
    at = story.at(1)

    def delete(offset: int) -> None:
        request = nodes.deletion("awaited", offset)
        request.timeout_ms = 1000
        at.ask("DeleteRecords", 2, request)

    nodes.written(at, "awaited", ids, "a", "b", "c", "d", "e")
    delete(1)
    story.happens("pause", 3, 0)
    for offset in (2, 1, 2, 0, 3, 9):
        delete(offset)
    at.ask("ListOffsets", 7, ends("awaited", 0, timestamp=-2, replica_id=-1))
    late = story.beside(1)
    late.say("DeleteRecords", 2, partial(same, nodes.deletion("awaited", 4)))
    story.happens("resume", 3)
    late.hear("DeleteRecords", 2)
    late.close()
    delete(0)
    story.happens("pause", 3)
    story.knows("awaited")
    delete(5)
    story.happens("resume", 3)
    story.knows("awaited")
    assert story.errors("DeleteRecords") == {"NONE", "REQUEST_TIMED_OUT", "OFFSET_OUT_OF_RANGE"}
