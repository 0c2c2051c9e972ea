"""A quorum of three controllers, each at a node: who votes, and who only follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..oracle.quorum import KafkaQuorum
from ..support import node_stories, transcripts
from ..support.differential import Tally, told
from ..support.node_stories import Story
from ..support.node_world import happens
from ..support.stories import nodes
from ..support.transcripts import Transcript
from ..support.wire import Closed

pytestmark = pytest.mark.slow
ADD, REMOVE, QUORUM = m.AddRaftVoterRequest, m.RemoveRaftVoterRequest, m.DescribeQuorumRequest
_UUID = re.compile(r"(?<=directoryId=)[A-Za-z0-9_-]{22}|(?<=cluster id \")[A-Za-z0-9_-]{22}")
_SET = re.compile(r"(?<=set of voters \[).*(?=\])")
_KEY = re.compile(r"ReplicaKey\([^)]*\)")
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
        found.trims |= dict.fromkeys(("AddRaftVoter", "RemoveRaftVoter"), without_ids)
        found.trims["DescribeQuorum"] = of_one_moment
        found.trims["Metadata"] = without_racks
        yield found
        found.close()


def without_ids(reply: Any) -> None:
    """Each has directories of its own, and with them another order of a set."""
    text = _UUID.sub("its own", reply.error_message or "")
    reply.error_message = _SET.sub(lambda found: ", ".join(sorted(_KEY.findall(found[0]))), text)


def without_racks(reply: Any) -> None:
    """Kafka's three have none here."""
    node_stories.of_one_life(reply)
    for broker in reply.brokers:
        broker.rack = None


def of_one_moment(reply: Any) -> None:
    """Whether a replica was heard of; not when, up to where, and how often somebody was elected before."""
    for topic in reply.topics:
        for part in topic.partitions:
            part.leader_epoch = part.high_watermark = 0
            for one in (*part.current_voters, *part.observers):
                one.replica_directory_id = b""
                one.log_end_offset = min(one.log_end_offset, 1)
                one.last_fetch_timestamp = min(one.last_fetch_timestamp, 1)
                one.last_caught_up_timestamp = min(one.last_caught_up_timestamp, 1)
    for node in reply.nodes:
        for listener in node.listeners:
            listener.host = "127.0.0.1"


def asked() -> Any:
    return QUORUM(topics=[QUORUM.TopicData(topic_name="__cluster_metadata", partitions=[QUORUM.PartitionData()])])


class Quorum:
    """The quorum of a story. Kafka elects whom it elects, and ours has its controller there."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.directories = self._directories()
        self.leader = self.follow()

    def _directories(self) -> list[dict[int, bytes]]:
        """The directories' ids by node, here and there."""
        at = self.story.at(1)
        said = [at._one(wire, side, "DescribeQuorum", 2, asked()) for side, wire in enumerate(at.wires)]
        return [{one.replica_id: one.replica_directory_id for one in _part(one_of).current_voters} for one_of in said]

    def follow(self, at: int = 1, after: int = 0) -> int:
        """Waits until Kafka has an active controller, another one than `after`, and moves ours to its node."""

        def is_led(reply: Any) -> bool:
            return bool(reply.topics) and _part(reply).leader_id not in (-1, after)

        self.leader = int(_part(self.story.at(at)._awaited("DescribeQuorum", 2, asked(), is_led)).leader_id)
        happens(self.story.world, "control", self.leader)
        return self.leader

    def add(self, node: int, directory: bytes | None = None, *, at: int = 1) -> None:
        listener = ADD.Listener(name="CONTROLLER", host="127.0.0.1", port=1)
        self.story.at(at).both(
            "AddRaftVoter",
            1,
            lambda side: ADD(
                cluster_id=None,
                voter_id=node,
                voter_directory_id=directory or self.directories[side][node],
                listeners=[listener],
                timeout_ms=5000,
            ),
        )

    def remove(self, node: int, directory: bytes | None = None, *, at: int = 1) -> None:
        self.story.at(at).both(
            "RemoveRaftVoter",
            0,
            lambda side: REMOVE(
                cluster_id=None, voter_id=node, voter_directory_id=directory or self.directories[side][node]
            ),
        )

    def described(self, *nodes: int) -> None:
        for node in nodes:
            self.story.at(node).agree("DescribeQuorum", 2, asked())


def _part(reply: Any) -> Any:
    return reply.topics[0].partitions[0]


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


def asked_of_controllers(name: str) -> Iterator[tuple[str, int, Any]]:
    """What brokers forward, but for what changes nothing. None of it waits for its own timeout."""
    create, delete, grow = m.CreateTopicsRequest, m.DeleteTopicsRequest, m.CreatePartitionsRequest
    yield "CreateTopics", 7, create(topics=[create.CreatableTopic("late", 1, 1)], timeout_ms=5000)
    yield "DeleteTopics", 6, delete(topics=[delete.DeleteTopicState(name=name)], timeout_ms=5000)
    more = grow.CreatePartitionsTopic(name=name, count=5, assignments=None)
    yield "CreatePartitions", 3, grow(topics=[more], timeout_ms=5000)
    alter, quota = m.IncrementalAlterConfigsRequest, m.AlterClientQuotasRequest
    config = alter.AlterableConfig(name="retention.ms", config_operation=0, value="5")
    yield "IncrementalAlterConfigs", 1, alter(resources=[alter.AlterConfigsResource(2, name, [config])])
    entity, rate = quota.EntityData("user", "x"), quota.OpData("producer_byte_rate", 5.0)
    yield "AlterClientQuotas", 1, quota(entries=[quota.EntryData([entity], [rate])])
    yield "ElectLeaders", 2, m.ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=5000)
    yield "ListPartitionReassignments", 0, m.ListPartitionReassignmentsRequest(topics=None, timeout_ms=5000)
    yield "UnregisterBroker", 0, m.UnregisterBrokerRequest(broker_id=9)
    yield from _of_entities(name)
    yield "DescribeQuorum", 2, asked()
    yield "InitProducerId", 4, m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)


def _of_entities(name: str) -> Iterator[tuple[str, int, Any]]:
    """Changes of configurations, ACLs, users, assignments and features."""
    alter, config = m.AlterConfigsRequest, m.AlterConfigsRequest.AlterableConfig(name="retention.ms", value="5")
    yield "AlterConfigs", 2, alter(resources=[alter.AlterConfigsResource(2, name, [config])])
    create, delete = m.CreateAclsRequest, m.DeleteAclsRequest
    allowed = create.AclCreation(2, name, 3, "User:x", "*", operation=3, permission_type=3)
    yield "CreateAcls", 3, create(creations=[allowed])
    every = delete.DeleteAclsFilter(2, name, 3, None, None, operation=1, permission_type=1)
    yield "DeleteAcls", 3, delete(filters=[every])
    users = m.AlterUserScramCredentialsRequest
    yield "AlterUserScramCredentials", 0, users(deletions=[users.ScramCredentialDeletion("x", 1)])
    move = m.AlterPartitionReassignmentsRequest
    topics = [move.ReassignableTopic(name, [move.ReassignablePartition(0, [1, 2])])]
    yield "AlterPartitionReassignments", 1, move(topics=topics, timeout_ms=5000)
    features = m.UpdateFeaturesRequest
    updates = [features.FeatureUpdateKey(feature="group.version", max_version_level=1, upgrade_type=1)]
    for version in (1, 2):
        yield "UpdateFeatures", version, features(feature_updates=updates, timeout_ms=5000)


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


def same(message: Any, side: int) -> Any:
    return message


def impatient(name: str, ids: tuple[bytes, bytes], side: int) -> Any:
    request = nodes.produce(name, ids, 10, "b")(side)
    request.timeout_ms = 1000
    return request


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
