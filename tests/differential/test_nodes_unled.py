"""Reassignments that end without a leader, with eligible replicas (KIP-966) and without: as in Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from ottla.protocol import messages as m

from ..support.node_stories import Story
from ..support.stories import nodes

pytestmark = pytest.mark.slow
ELR = "eligible.leader.replicas.version"
A, L = m.AlterPartitionReassignmentsRequest, m.ListPartitionReassignmentsRequest


def move(story: Story, name: str, replicas: Sequence[int] | None) -> None:
    part = A.ReassignablePartition(partition_index=0, replicas=None if replicas is None else list(replicas))
    request = A(topics=[A.ReassignableTopic(name=name, partitions=[part])], timeout_ms=10_000)
    at = story.at(min(story.running))
    at.ask("AlterPartitionReassignments", 1, request)
    topic = L.ListPartitionReassignmentsTopics(name=name, partition_indexes=[0])
    at.agree("ListPartitionReassignments", 0, L(topics=[topic], timeout_ms=10_000))


def eligible_replicas(story: Story, level: int) -> None:
    """Switches them on (1) or off (0)."""
    u = m.UpdateFeaturesRequest
    update = u.FeatureUpdateKey(feature=ELR, max_version_level=level, upgrade_type=1 if level else 2)
    story.at(3).ask("UpdateFeatures", 2, u(feature_updates=[update], timeout_ms=10_000))


@pytest.fixture
def without_eligible(story: Story) -> Iterator[Story]:
    eligible_replicas(story, 0)
    yield story
    eligible_replicas(story, 1)


@pytest.fixture
def switched_on(story: Story) -> Iterator[Story]:
    """The test may switch them off."""
    yield story
    eligible_replicas(story, 1)


@pytest.mark.parametrize("unclean", ["true", "false"])
def test_a_move_that_is_cancelled_when_the_old_replica_is_gone(story: Story, unclean: str) -> None:
    """If records may be lost, the old replica is in sync again, and leads as soon as its node is there. If they may
    not, the move goes on.
    """
    name = f"reverted-{unclean}"
    story.topic(name, [1], unclean_leader_election_enable=unclean)
    story.happens("stop", 3)
    story.knows(name)
    move(story, name, [2, 3])
    found = [story.state(name)]
    story.happens("stop", 1)
    found.append(story.state(name))
    move(story, name, None)
    found.append(story.state(name))
    story.at(2).ask("ElectLeaders", 2, nodes.elections(1, (name, 0)))
    story.happens("start", 1)
    found.append(story.state(name))
    story.happens("start", 3)
    story.knows(name)
    move(story, name, None)
    led = [(-1, [1]), (1, [1])] if unclean == "true" else [(2, [2]), (2, [1, 2])]
    assert [(leader, isr) for leader, _, isr, *_ in found] == [(1, [1, 2]), (2, [2]), *led]


@pytest.mark.parametrize("min_isr", ["1", "2"])
def test_no_replica_that_stays_is_alive(story: Story, min_isr: str) -> None:
    """No one is in sync then, and the move waits."""
    name = f"last{min_isr}"
    story.topic(name, [1, 2], min_insync_replicas=min_isr)
    story.happens("stop", 2)
    story.knows(name)
    story.happens("stop", 1)
    story.knows(name)
    for replicas in ([1], [2], [3], [1, 3], [2, 1]):
        move(story, name, replicas)
        story.knows(name)
    story.happens("start", 2)
    story.knows(name)
    move(story, name, [2])
    story.knows(name)
    story.happens("start", 1)
    story.knows(name)


def test_without_eligible_replicas_the_last_one_stays_in_sync(without_eligible: Story) -> None:
    """A move to it ends at once, without a leader."""
    story = without_eligible
    story.topic("only", [1, 2])
    story.topic("leaves", [1, 2])
    story.happens("stop", 2)
    story.knows("only", "leaves")
    story.happens("stop", 1)
    found = [story.state("only")]
    move(story, "only", [1])
    found.append(story.state("only"))
    move(story, "leaves", [2, 3])
    story.knows("leaves")
    story.happens("start", 2)
    story.knows("only", "leaves")
    story.happens("start", 1)
    found.append(story.state("only"))  # who leads the other one depends on who is in sync first
    assert [(leader, isr) for leader, _, isr, *_ in found] == [(-1, [1]), (-1, [1]), (1, [1])]


def test_replicas_that_were_eligible_lead_after_eligible_replicas_were_switched_off(switched_on: Story) -> None:
    """With the next change of the partition none is eligible any more."""
    story = switched_on
    story.topic("unled", [1, 2], min_insync_replicas="2")
    story.topic("led", [1, 2], min_insync_replicas="2")
    story.happens("stop", 2)
    story.knows("unled", "led")
    story.happens("stop", 1)
    found = [story.state("unled")]
    eligible_replicas(story, 0)
    found.append(story.state("unled"))
    story.happens("start", 2)
    found.append(story.state("unled"))
    story.happens("start", 1)
    story.knows("unled", "led")
    assert [(leader, isr, eligible) for leader, _, isr, eligible, *_ in found] == [
        (-1, [], [1, 2]),
        (-1, [], [1, 2]),
        (2, [2], []),
    ]
