"""Replicas in sync, those eligible, elections and lost records: asked of ottla and of Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.node_stories import SESSION_MS, Story, ends
from ..support.stories import nodes
from ..support.stories.topics import versions

pytestmark = pytest.mark.slow
SAFE = {"min_insync_replicas": "2"}
ALL = -1


def told(story: Story, kind: int, *named: tuple[str, int], at: int = 1) -> None:
    for version in versions("ElectLeaders")[1 if kind else 0 :]:  # the first one elects preferred leaders
        story.at(at).ask("ElectLeaders", version, nodes.elections(kind, *named))


@pytest.mark.parametrize("acks", [ALL, 1])
@pytest.mark.parametrize("what", ["stop", "kill"])
def test_too_few_replicas_are_in_sync(story: Story, what: str, acks: int) -> None:
    """A write with acks=all is refused, and one with acks=1 is read when enough are in sync again (KIP-966)."""
    story.trims["Fetch"] = nodes.values_only
    name = f"few-{what}{acks}"
    ids = story.topic(name, [1, 2], [2, 1], **SAFE)
    at = story.at(1)
    nodes.written(at, name, ids, "a", acks=acks)
    nodes.read(at, name, ids)
    story.happens(what, 2)
    assert story.state(name) == (1, 0, [1], [2], [])
    nodes.written(at, name, ids, "b", acks=acks)
    nodes.written(at, name, ids, "c", partition=1, acks=acks)
    nodes.read(at, name, ids)
    story.happens("start", 2)
    assert story.state(name) == (1, 0, [1, 2], [], [])
    nodes.written(at, name, ids, "d", acks=acks)
    for node in (1, 2):
        nodes.read(story.at(node), name, ids)
    assert story.errors("Produce") == ({"NONE", "NOT_ENOUGH_REPLICAS"} if acks == ALL else {"NONE"})


def test_a_producer_waits_in_vain_for_a_replica_that_pauses(story: Story) -> None:
    """With too few replicas in sync the high watermark stands still: the producer is told that its time is over, also
    when the replica has left. Consumers do not see its record; to a replica the log ends after it.
    """
    story.trims["Fetch"] = nodes.values_only
    name = "appended"
    ids = story.topic(name, [1, 2], [2, 1], **SAFE)
    at, waiting = story.at(1), story.beside(1)

    def patient(side: int) -> Any:
        request = nodes.produce(name, ids, 10, "b")(side)
        request.timeout_ms = SESSION_MS + 8000
        return request

    def seen(*, to_consumers: int, to_replicas: int) -> None:
        for replica_id, end in ((-1, to_consumers), (0, to_replicas)):
            (found,) = at.agreed("ListOffsets", 7, ends(name, 0, replica_id=replica_id))[0].topics[0].partitions
            assert found.offset == end
        nodes.read(at, name, ids)

    nodes.written(at, name, ids, "a")
    seen(to_consumers=1, to_replicas=1)
    story.happens("pause", 2, 0)
    waiting.say("Produce", 10, patient)
    waiting.hear("Produce", 10)
    waiting.close()
    assert story.state(name)[:4] == (1, 0, [1], [2])
    nodes.written(at, name, ids, "c")
    seen(to_consumers=1, to_replicas=2)
    story.happens("resume", 2)
    assert story.state(name)[:4] == (1, 0, [1, 2], [])
    seen(to_consumers=2, to_replicas=2)
    assert story.errors("Produce") == {"NONE", "REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS"}


def test_a_producer_that_waits_for_a_node_that_pauses_has_its_answer_from_the_next_leader(story: Story) -> None:
    ids = story.topic("short", [1, 2], [2, 1])
    at = story.at(1)

    def impatient(side: int) -> Any:
        request = nodes.produce("short", ids, 10)(side)
        request.timeout_ms = 200
        return request

    story.happens("pause", 2, 0)
    at.both("Produce", 10, impatient)
    story.world.pass_ms(3 * SESSION_MS)
    story.knows("short")
    at.both("Produce", 10, impatient)
    story.happens("resume", 2)
    story.knows("short")
    assert story.errors("Produce") == {"REQUEST_TIMED_OUT", "NONE"}


def test_preferred_leaders_come_back_when_they_are_elected(story: Story) -> None:
    story.topic("preferred", [1, 2, 3], [2, 3, 1], [3, 1, 2])
    told(story, 0, ("preferred", 0), ("preferred", 1), ("preferred", 7), ("nope", 0))
    story.happens("stop", 2)
    story.knows("preferred")
    told(story, 0, ("preferred", 0), ("preferred", 1), ("preferred", 2))
    story.happens("start", 2)
    assert story.state("preferred", 1)[:2] == (3, 1)
    told(story, 0, ("preferred", 1))
    assert story.state("preferred", 1)[:2] == (2, 2)
    assert story.errors("ElectLeaders") == {
        "NONE",
        "ELECTION_NOT_NEEDED",
        "PREFERRED_LEADER_NOT_AVAILABLE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_elections_that_are_not_needed_or_cannot_be_held(story: Story) -> None:
    story.topic("unled", [2, 3], [3, 2], [1, 2])
    told(story, 1, ("unled", 0), ("unled", 7), ("nope", 0))
    story.happens("stop", 3)
    story.knows("unled")
    story.happens("stop", 2)
    story.knows("unled")
    for kind in (0, 1, 2, 5):
        told(story, kind, ("unled", 0), ("unled", 1), ("unled", 2))
    story.happens("start", 3)
    story.knows("unled")
    for kind in (0, 1):
        told(story, kind, ("unled", 0), ("unled", 1), ("unled", 2))
    story.knows("unled")
    story.happens("start", 2)
    story.knows("unled")
    told(story, 0, ("unled", 0), ("unled", 1), ("unled", 2))
    story.knows("unled")
    assert {"ELIGIBLE_LEADERS_NOT_AVAILABLE", "ELECTION_NOT_NEEDED"} <= story.errors("ElectLeaders")


@pytest.mark.parametrize("how", ["asked", "configured"])
def test_an_unclean_election_loses_what_the_new_leader_has_not(story: Story, how: str) -> None:
    """A consumer that was further hears where the logs diverge, and the node that comes back gives its end up."""
    story.trims["Fetch"] = nodes.values_only
    name = f"unclean-{how}"
    configs = {"unclean_leader_election_enable": "true"} if how == "configured" else {}
    ids = story.topic(name, [1, 2], [3, 2], **configs)
    nodes.written(story.at(1), name, ids, "a", "b")
    nodes.read(story.at(2), name, ids)
    story.happens("stop", 2)
    story.knows(name)
    nodes.written(story.at(1), name, ids, "c", "d", "e")
    nodes.read(story.at(1), name, ids)
    story.happens("stop", 1)
    story.knows(name)
    story.happens("start", 2)
    story.knows(name)
    told(story, 1, (name, 0), at=2)
    assert story.state(name)[::2] == (2, [2], [])
    at = story.at(2)
    nodes.read(at, name, ids)
    for offset, last in ((5, 0), (3, 0), (2, 0), (5, 1), (1, 0), (5, -1)):
        at.both("Fetch", 12, nodes.fetch(name, ids, 12, offset, last_fetched_epoch=last))
    nodes.written(at, name, ids, "x")
    story.happens("start", 1)
    story.knows(name)
    for node in (1, 2):
        nodes.read(story.at(node), name, ids)
        for offset, last in ((5, 0), (3, 0), (2, 0), (3, 3)):
            story.at(node).both("Fetch", 12, nodes.fetch(name, ids, 12, offset, last_fetched_epoch=last))
    for epoch in range(5):
        at.ask("OffsetForLeaderEpoch", 4, nodes.end_of_epoch(name, epoch))
    at.ask("ListOffsets", 7, ends(name, 0))


def test_a_clean_election_loses_nothing(story: Story) -> None:
    """The last one in sync stops and comes back; the other one, which is behind, waits for it."""
    story.trims["Fetch"] = nodes.values_only
    ids = story.topic("clean", [1, 2], [2, 1])
    nodes.written(story.at(1), "clean", ids, "a")
    nodes.read(story.at(2), "clean", ids)
    story.happens("stop", 2)
    story.knows("clean")
    nodes.written(story.at(1), "clean", ids, "b", "c")
    story.happens("stop", 1)
    story.knows("clean")
    story.happens("start", 2)
    story.knows("clean")
    for version in (10, 12):
        story.at(2).both("Fetch", version, nodes.fetch("clean", ids, version))
        story.at(2).both("Produce", version, nodes.produce("clean", ids, version))
    story.happens("start", 1)
    assert story.state("clean")[::2] == (1, [1, 2], [])
    for node in (1, 2):
        nodes.read(story.at(node), "clean", ids)
    for epoch in range(4):
        story.at(1).ask("OffsetForLeaderEpoch", 4, nodes.end_of_epoch("clean", epoch))


@pytest.mark.parametrize("min_isr", ["1", "2", "3"])
def test_eligible_replicas_one_by_one(story: Story, min_isr: str) -> None:
    """All replicas go, one after the other, and come back in another order (KIP-966)."""
    name = f"elr{min_isr}"
    story.topic(name, [2, 3, 1], [3, 1, 2], min_insync_replicas=min_isr)
    story.topic(f"{name}-two", [2, 3], [3, 2], min_insync_replicas=min_isr)
    for what, node in (("stop", 2), ("kill", 3), ("start", 2), ("start", 3), ("kill", 2), ("stop", 3), ("start", 3)):
        story.happens(what, node)
        story.knows(name, f"{name}-two")
    story.happens("start", 2)
    story.knows(name, f"{name}-two")
    found = story.at(1).ours.ask("DescribeCluster", 2, m.DescribeClusterRequest())
    assert len(found.brokers) == 3
