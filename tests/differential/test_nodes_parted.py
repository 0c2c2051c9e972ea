"""A network that is parted between three nodes, each of which is a broker and a controller: what each side says, and
what is left when they join, as in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..oracle.quorum import PartedQuorum
from ..support import node_stories, transcripts
from ..support.differential import Tally, told
from ..support.node_stories import NODES, AtNode, Story, group_at
from ..support.parted_stories import Parted
from ..support.stories import nodes, offsets
from ..support.stories.coordinators import KINDS
from ..support.stories.groups import commit_request
from ..support.stories.nodes import Ids
from ..support.stories.quorum import Quorum, asked, asked_in_vain, same
from ..support.stories.topics import batch, produce_request
from ..support.transcripts import Transcript

pytestmark = pytest.mark.slow
IMPATIENT_MS = 1000
ELSEWHERE = b"\x07" * 16
FIRST, SECOND, THIRD = 71, 72, 73  # ids of producers


@pytest.fixture(scope="module")
def kafka_parted() -> Iterator[PartedQuorum | None]:
    if transcripts.mode() == "recorded":
        yield None
        return
    with PartedQuorum(node_stories.SETTINGS) as kafka:
        node_stories.prepare(kafka)
        yield kafka


@pytest.fixture
def story(kafka_parted: PartedQuorum | None, tally: Tally, request: pytest.FixtureRequest) -> Iterator[Parted]:
    if kafka_parted is not None:
        kafka_parted.join()
        node_stories.lead_again(kafka_parted)
    playing = kafka_parted is None
    with told(tally, Transcript(request.node.nodeid, playing=playing), transcripts.mode()) as transcript:
        found = Parted(kafka_parted, tally, transcript)
        yield found
        found.close()


def impatient(name: str, ids: Ids, side: int) -> Any:
    """A Produce with acks=all that waits a second for the other replicas."""
    request = nodes.produce(name, ids, 10, "waits")(side)
    request.timeout_ms = IMPATIENT_MS
    return request


def waits_in_vain(at: AtNode, name: str, ids: Ids) -> None:
    at.both("Produce", 10, partial(impatient, name, ids))


def commits(at: AtNode, group: str, name: str, offset: int) -> None:
    at.ask("OffsetCommit", 9, commit_request(9, group, [(name, b"", [(0, offset, "")])]))


def offset_of(at: AtNode, group: str, name: str) -> None:
    at.ask("OffsetFetch", 7, offsets.fetch_request(7, group, [(name, b"", [0])]))


def coordinator_of(at: AtNode, *groups: str) -> None:
    at.ask("FindCoordinator", 6, m.FindCoordinatorRequest(key_type=0, coordinator_keys=list(groups)))


def said(story: Story, node: int, name: str, version: int, message: Any) -> Callable[[], None]:
    """Sends a request on a connection of its own. Returns what waits for its answer."""
    at = story.beside(node)
    at.say(name, version, partial(same, message))

    def heard() -> None:
        at.hear(name, version)
        at.close()

    return heard


def latest(name: str, current_leader_epoch: int) -> Any:
    r = m.ListOffsetsRequest
    part = r.ListOffsetsPartition(partition_index=0, current_leader_epoch=current_leader_epoch, timestamp=-1)
    return r(replica_id=-1, topics=[r.ListOffsetsTopic(name=name, partitions=[part])])


def has_producer_ids(story: Story) -> None:
    """Each node has ids of its own, which it gives away also where it reaches no controller."""
    asked = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    for node in NODES:
        story.at(node).until("InitProducerId", 4, asked, lambda reply: reply.error_code == 0)


def of_controller(story: Story, node: int) -> list[Callable[[], None]]:
    """Asks a node what it forwards to the controller. Returns what waits for the answers."""
    move, create = m.ListPartitionReassignmentsRequest, m.CreateTopicsRequest
    named = create.CreatableTopic(f"created-late-at-{node}", 1, 1)
    return [
        said(story, node, "DescribeQuorum", 2, asked()),
        said(story, node, "ListPartitionReassignments", 0, move(topics=None, timeout_ms=5000)),
        said(story, node, "CreateTopics", 7, create(topics=[named], timeout_ms=5000)),
        said(story, node, "InitProducerId", 4, m.InitProducerIdRequest(None, 1000)),
    ]


def test_a_leader_is_alone_on_its_side(story: Parted) -> None:
    """It goes on in its old epoch, and what it took is lost when the sides join. The controller is not there."""
    quorum = Quorum(story)
    far, near = (node for node in NODES if node != quorum.leader)
    here, there = story.at(near), story.at(far)
    has_producer_ids(story)
    led = story.topic("led", [far, near, quorum.leader])
    safe = story.topic("safe", [far, near, quorum.leader], min_insync_replicas="2")
    lone = story.topic("lone", [far])
    other = story.topic("other", [near, far, quorum.leader])
    for at, name, ids in ((there, "led", led), (there, "safe", safe), (there, "lone", lone), (here, "other", other)):
        nodes.written(at, name, ids, "whole")
    nodes.read(there, "other", other)
    story.part([near, quorum.leader], [far])

    nodes.written(there, "led", led, "lost", acks=1)
    waits_in_vain(there, "led", led)
    waits_in_vain(there, "safe", safe)
    nodes.written(there, "lone", lone, "kept")
    waits_in_vain(here, "other", other)
    nodes.read(there, "led", led)
    nodes.read(there, "lone", lone)
    waiting = of_controller(story, far)

    story.sessions_expire()
    story.knows("led", "safe", "lone", "other")
    assert (story.state_at(near, "led"), story.state_at(far, "led")) == ((near, 1), (far, 0))
    quorum.described(near, quorum.leader)
    for at in (here, there):
        nodes.written(at, "led", led, "acks=1", acks=1)
        nodes.read(at, "led", led)
        at.agree("OffsetForLeaderEpoch", 4, nodes.end_of_epoch("led", 0))
        at.ask("Fetch", 12, nodes.fetch("led", led, 12, current_leader_epoch=1)(1))
    nodes.written(here, "led", led, "acks=all")
    waits_in_vain(there, "safe", safe)
    for acks in (1, -1):
        nodes.written(there, "lone", lone, f"kept with acks={acks}", acks=acks)
        nodes.read(there, "lone", lone)
    here.ask("ListOffsets", 7, latest("lone", 1))
    nodes.written(here, "safe", safe, "acks=all")
    nodes.written(here, "other", other, "acks=all")
    nodes.read(there, "other", other)
    for heard in waiting:
        heard()

    story.join()
    story.knows("led", "safe", "lone", "other")
    quorum.described(1, 2, 3)
    for node in NODES:
        for name, ids in (("led", led), ("safe", safe), ("lone", lone), ("other", other)):
            nodes.read(story.at(node), name, ids)
            story.at(node).agree("OffsetForLeaderEpoch", 4, nodes.end_of_epoch(name, 0))
    assert story.errors("Produce") == {"NONE", "REQUEST_TIMED_OUT"}


def test_a_leader_that_is_alone_knows_a_batch_again(story: Parted) -> None:
    """Also after another one was elected, and those of before: of each producer as much as a leader knows."""
    quorum = Quorum(story)
    far, near = (node for node in NODES if node != quorum.leader)
    here, there = story.at(near), story.at(far)
    ids = story.topic("again", [far, near, quorum.leader])

    def sends(at: AtNode, producer_id: int, sequence: int, *values: str, epoch: int = 0) -> None:
        sent = batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        at.both("Produce", 10, lambda side: produce_request(10, "again", ids[side], sent, 0, 1))

    sends(there, FIRST, 0, "a", "b")
    sends(there, FIRST, 2, "c")
    sends(there, SECOND, 0, "d")
    nodes.read(here, "again", ids)
    story.part([near, quorum.leader], [far])
    sends(there, FIRST, 3, "alone", "too", "three")
    story.sessions_expire()
    story.knows("again")
    sends(here, THIRD, 0, "kept")
    sends(here, FIRST, 3, "kept")
    sent = (0, ("a", "b")), (3, ("alone", "too", "three")), (6, ("e", "f")), (6, ("e", "f")), (9, ("gap",))
    for sequence, values in sent:
        sends(there, FIRST, sequence, *values)
    for epoch, sequence in ((0, 0), (0, 1), (0, 1), (1, 1), (1, 0), (0, 2)):
        sends(there, SECOND, sequence, "g", epoch=epoch)
    for sequence in (5, 5, 6, 8):
        sends(there, THIRD, sequence, "h")
    story.join()
    story.knows("again")
    nodes.read(there, "again", ids)
    sends(here, FIRST, 4, "i")
    assert story.errors("Produce") == {"NONE", "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH"}


def test_a_coordinator_is_alone_on_its_side(story: Parted) -> None:
    quorum = Quorum(story)
    nodes.coordinators_ready(story)
    far, near = (node for node in NODES if node != quorum.leader)
    groups = [group_at(node - 1, "parted") for node in NODES]
    own = groups[far - 1]
    here, there = story.at(near), story.at(far)
    story.topic("offsets", [near, far, quorum.leader])
    commits(there, own, "offsets", 5)
    story.part([near, quorum.leader], [far])

    for at in (here, there):
        coordinator_of(at, *groups)
    offset_of(there, own, "offsets")
    commits(there, own, "offsets", 6)
    offset_of(there, own, "offsets")

    story.sessions_expire()
    story.knows("__consumer_offsets")
    for at in (here, there):
        coordinator_of(at, *groups)
    offset_of(there, own, "offsets")
    taker, _ = story.state_at(near, "__consumer_offsets", far - 1)
    nodes.coordinator_ready(story.at(taker), own)
    commits(story.at(taker), own, "offsets", 7)
    commits(there, own, "offsets", 8)
    for at in (story.at(taker), there):
        offset_of(at, own, "offsets")

    story.join()
    story.knows("__consumer_offsets")
    nodes.coordinators_ready(story)
    for node in NODES:
        coordinator_of(story.at(node), *groups)
        offset_of(story.at(node), own, "offsets")


@pytest.mark.parametrize("kind", KINDS)
def test_a_coordinator_that_is_alone_answers(story: Parted, kind: str) -> None:
    """What it has in memory, also when another one was elected; it writes nothing."""
    quorum = Quorum(story)
    nodes.coordinators_ready(story)
    far, near = (node for node in NODES if node != quorum.leader)
    key = group_at(far - 1, kind.replace(" ", "-"))
    story.topic(key, [near])
    story.part([near, quorum.leader], [far])
    story.sessions_expire()
    story.knows("__consumer_offsets", "__transaction_state", "__share_group_state")
    for name, version, message in KINDS[kind](key):
        story.at(far).ask(name, version, message)
    story.join()
    story.knows("__consumer_offsets", "__transaction_state", "__share_group_state")


def test_the_controller_is_alone_on_its_side(story: Parted) -> None:
    """The others elect one, and it does not know."""
    quorum = Quorum(story)
    far = quorum.leader
    near, third = (node for node in NODES if node != far)
    here, there = story.at(near), story.at(far)
    has_producer_ids(story)
    led = story.topic("ruled", [far, near, third])
    nodes.written(there, "ruled", led, "whole")
    story.part([far], [near, third])
    story.has_resigned(far)
    waiting = of_controller(story, far)
    quorum.follow(near, after=far)
    story.sessions_expire()
    story.knows("ruled")
    assert (story.state_at(near, "ruled"), story.state_at(far, "ruled")) == ((near, 1), (far, 0))
    quorum.described(near, third)
    nodes.written(there, "ruled", led, "lost", acks=1)
    nodes.written(here, "ruled", led, "kept")
    for heard in waiting:
        heard()
    story.join()
    story.knows("ruled")
    quorum.described(1, 2, 3)
    for node in NODES:
        nodes.read(story.at(node), "ruled", led)


@pytest.mark.parametrize("then", ["a topic is created", "a voter is removed", "no side has the majority"])
def test_a_controller_that_is_alone_answers_until_it_resigns(story: Parted, then: str) -> None:
    """What only reads it answers, and what it refuses. A change waits, and so does what its node asks after that: a
    broker forwards one request at a time.
    """
    quorum = Quorum(story)
    far = quorum.leader
    near, third = (node for node in NODES if node != far)
    at, moves = story.at(far), m.ListPartitionReassignmentsRequest(topics=None, timeout_ms=5000)
    has_producer_ids(story)
    story.part([far], *([[near], [third]] if then == "no side has the majority" else [[near, third]]))
    quorum.described(far)
    at.ask("ListPartitionReassignments", 0, moves)
    quorum.remove(9, ELSEWHERE, at=far)
    quorum.add(9, ELSEWHERE, at=far)
    waiting = []
    if then == "a voter is removed":
        quorum.remove(near, at=far)
    elif then == "a topic is created":
        create = m.CreateTopicsRequest
        named = create.CreatableTopic("asked-alone", 1, 1)
        waiting.append(said(story, far, "CreateTopics", 7, create(topics=[named], timeout_ms=5000)))
        waiting.append(said(story, far, "ListPartitionReassignments", 0, moves))
    story.has_resigned(far)
    if then != "no side has the majority":
        quorum.follow(near, after=far)
    story.join()
    quorum.follow()
    for heard in waiting:
        heard()
    quorum.described(*NODES)


@pytest.mark.parametrize("others", ["elect another one", "do not reach each other"])
def test_a_controller_that_is_alone_answers_what_changes_nothing(story: Parted, others: str) -> None:
    """What names what does not exist, and what names nothing. Where there is no controller, that waits, too."""
    quorum = Quorum(story)
    far = quorum.leader
    near, third = (node for node in NODES if node != far)
    at = story.at(far)
    story.part([far], *([[near, third]] if others == "elect another one" else [[near], [third]]))
    for name, version, message in asked_in_vain(far):
        at.ask(name, version, message)
    quorum.described(far)
    story.has_resigned(far)
    waiting = [said(story, far, *one) for one in asked_in_vain(far) if "AlterConfigs" not in one[0]]
    for empty in (m.IncrementalAlterConfigsRequest(), m.AlterConfigsRequest()):  # no controller hears of these
        at.ask(type(empty).__name__.removesuffix("Request"), 1, empty)
    if others == "elect another one":
        quorum.follow(near, after=far)
    story.join()
    quorum.follow()
    for heard in waiting:
        heard()


def test_no_node_reaches_another(story: Parted) -> None:
    """There is no controller, and nothing changes but what leaders take alone."""
    quorum = Quorum(story)
    has_producer_ids(story)
    topics = {node: story.topic(f"led-{node}", [node, *(one for one in NODES if one != node)]) for node in NODES}
    for node, ids in topics.items():
        nodes.written(story.at(node), f"led-{node}", ids, "whole")
    story.part(*([node] for node in NODES))
    story.has_resigned(quorum.leader)
    waiting = [heard for node in NODES for heard in of_controller(story, node)]
    for node, ids in topics.items():
        nodes.written(story.at(node), f"led-{node}", ids, "alone", acks=1)
        waits_in_vain(story.at(node), f"led-{node}", ids)
    story.sessions_expire()
    for name in (f"led-{node}" for node in NODES):
        story.knows(name)
    for heard in waiting:
        heard()
    story.join()
    quorum.follow()
    for node, ids in topics.items():
        story.knows(f"led-{node}")
        assert story.state(f"led-{node}")[:2] == (node, 0)
        for at in NODES:
            nodes.read(story.at(at), f"led-{node}", ids)


@pytest.mark.parametrize("removed", ["a voter on the other side", "a voter on its own side"])
def test_a_voter_is_removed_by_a_side(story: Parted, removed: str) -> None:
    """The voters that are left have to agree. So no other side gets the majority; the controller's may lose it, and the
    removal is done when the sides join. The last stories of Kafka's three.
    """
    quorum = Quorum(story)
    far, near = (node for node in NODES if node != quorum.leader)
    story.part([near, quorum.leader], [far])
    gone = far if removed == "a voter on the other side" else near
    removal = story.beside(near)
    quorum.say_remove(gone, removal)
    removal.hear("RemoveRaftVoter", 0)
    removal.close()
    if gone == far:
        quorum.described(near, quorum.leader)
    else:
        story.has_resigned(quorum.leader)
        for heard in of_controller(story, near):
            heard()
    story.join()
    quorum.follow()
    quorum.described(*NODES)
    story.topic(f"after-{gone == far}", [near, far])
    quorum.add(gone, address=story.controller_address(gone))
    quorum.described(*NODES)
