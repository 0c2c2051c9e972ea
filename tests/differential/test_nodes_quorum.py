"""A quorum of three controllers, each at a node: who votes, and who only follows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from ottla.protocol import messages as m

from ..oracle.quorum import KafkaQuorum
from ..support import node_stories, transcripts
from ..support.differential import Tally, told
from ..support.node_stories import Story
from ..support.stories import nodes
from ..support.stories.quorum import Quorum, asked_of_controllers, impatient, of_quorums, same
from ..support.transcripts import Transcript
from ..support.wire import Closed

pytestmark = pytest.mark.slow
SETTINGS = ("broker.session.timeout.ms", "log.retention.ms")
ELSEWHERE = b"\x07" * 16


@pytest.fixture(scope="module")
def kafka_quorum() -> Iterator[KafkaQuorum | None]:
    if transcripts.mode() == "recorded":
        yield None
        return
    with KafkaQuorum({key: node_stories.SETTINGS[key] for key in SETTINGS}) as kafka:
        yield kafka


@pytest.fixture
def story(kafka_quorum: KafkaQuorum | None, tally: Tally, request: pytest.FixtureRequest) -> Iterator[Story]:
    playing = kafka_quorum is None
    with told(tally, Transcript(request.node.nodeid, playing=playing), transcripts.mode()) as transcript:
        found = Story(kafka_quorum, tally, transcript, **{"ottla.controller.node": "1"})
        yield of_quorums(found)
        found.close()


def test_voters_leave_and_join(story: Story) -> None:
    quorum = Quorum(story)
    first, second = (node for node in node_stories.NODES if node != quorum.leader)
    quorum.described(1, 2, 3)
    quorum.remove(second, ELSEWHERE)
    quorum.remove(9, ELSEWHERE)
    quorum.add(second)
    quorum.add(second, ELSEWHERE)
    quorum.remove(second)
    quorum.described(1, 2, 3)
    quorum.remove(second)
    quorum.add(second, ELSEWHERE)
    quorum.add(second)
    quorum.described(1, 2, 3)
    for node in (quorum.leader, first, second, 9):
        story.at(first).ask("UnregisterController", 0, m.UnregisterControllerRequest(controller_id=node))
    assert story.errors("AddRaftVoter") == {"NONE", "DUPLICATE_VOTER", "REQUEST_TIMED_OUT"}


def test_the_active_controller_is_removed(story: Story) -> None:
    """It resigns; the last voter stays."""
    quorum = Quorum(story)
    before = quorum.leader
    quorum.remove(before)
    quorum.follow(after=before)
    quorum.described(1, 2, 3)
    other = next(node for node in node_stories.NODES if node not in (before, quorum.leader))
    quorum.remove(other)
    quorum.described(1, 2, 3)
    quorum.remove(quorum.leader)
    for node in (before, other):
        quorum.add(node)
    quorum.described(1, 2, 3)


def test_without_a_majority_there_is_no_controller(story: Story) -> None:
    """What is asked of it times out after a minute. No replica leaves or joins those in sync, and no broker is fenced;
    records are written as before.
    """
    quorum, name = Quorum(story), "led"
    gone = quorum.leader
    alive, back = (node for node in node_stories.NODES if node != gone)
    ids = story.topic(name, [alive, back], [back, alive])
    for node in (back, gone):
        story.happens("kill", node, 0)
    at = story.at(alive)
    waiting = [(one, story.beside(alive)) for one in asked_of_controllers(name)]
    for (api, version, message), connection in waiting:
        connection.say(api, version, partial(same, message))
    nodes.written(at, name, ids, "a", acks=1)
    for (api, version, _), connection in waiting:
        connection.hear(api, version)
        connection.close()
    at.both("Produce", 10, partial(impatient, name, ids))
    story.knows(name)
    story.happens("start", back)
    quorum.follow(alive)
    assert story.state(name)[0] == story.state(name, 1)[0] == alive
    story.happens("start", gone)
    story.knows(name)
    quorum.described(1, 2, 3)
    assert story.errors("CreateTopics") == {"NONE", "REQUEST_TIMED_OUT"}
    assert story.errors("Produce") == {"NONE", "REQUEST_TIMED_OUT"}


def test_brokers_take_no_updates_of_voters(story: Story) -> None:
    """UpdateRaftVoter is spoken between controllers: a broker closes the connection."""
    for node in node_stories.NODES:
        at = story.beside(node)
        for wire in at.wires:
            with pytest.raises(Closed):
                wire.ask("UpdateRaftVoter", 0, m.UpdateRaftVoterRequest())
        at.close()


def test_the_active_controller_is_killed(story: Story) -> None:
    """Another one is elected, which has not heard of it, and removes it. The last story of Kafka's three."""
    quorum = Quorum(story)
    killed = quorum.leader
    alive = [node for node in node_stories.NODES if node != killed]
    story.happens("kill", killed)
    quorum.follow(alive[0], after=killed)
    quorum.described(*alive)
    quorum.remove(killed, at=alive[0])
    quorum.described(*alive)
