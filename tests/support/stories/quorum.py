"""A quorum of three controllers, each at a node: what Kafka elects ours follows, and what brokers forward to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from ottla.protocol import messages as m

from .. import node_stories
from ..node_stories import AtNode, Story
from ..node_world import happens
from . import nodes

ADD, REMOVE, QUORUM = m.AddRaftVoterRequest, m.RemoveRaftVoterRequest, m.DescribeQuorumRequest
_UUID = re.compile(r"(?<=directoryId=)[A-Za-z0-9_-]{22}|(?<=cluster id \")[A-Za-z0-9_-]{22}")
_SET = re.compile(r"(?<=set of voters \[).*(?=\])")
_KEY = re.compile(r"ReplicaKey\([^)]*\)")


def of_quorums(story: Story) -> Story:
    """Returns the story, which takes out of replies what two quorums cannot have in common. Kafka's elects whom it
    elects, and all that follows is of other nodes in each run.
    """
    story.transcript.varies = True
    story.trims |= dict.fromkeys(("AddRaftVoter", "RemoveRaftVoter"), without_ids)
    story.trims["DescribeQuorum"] = of_one_moment
    story.trims["Metadata"] = without_racks
    return story


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
    """Leaves whether a replica was heard of; not when, its end, and the number of elections."""
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

    def add(
        self, node: int, directory: bytes | None = None, *, at: int = 1, address: tuple[str, int] = ("127.0.0.1", 1)
    ) -> None:
        """`address`: of the controller, for a Kafka that has no connection to it yet."""
        listener = ADD.Listener(name="CONTROLLER", host=address[0], port=address[1])
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
        self.story.at(at).both("RemoveRaftVoter", 0, partial(self._removal, node, directory))

    def say_remove(self, node: int, at: AtNode) -> None:
        """Sends what `remove` sends; the answer may take long."""
        at.say("RemoveRaftVoter", 0, partial(self._removal, node, None))

    def _removal(self, node: int, directory: bytes | None, side: int) -> Any:
        return REMOVE(cluster_id=None, voter_id=node, voter_directory_id=directory or self.directories[side][node])

    def described(self, *nodes: int) -> None:
        for node in nodes:
            self.story.at(node).agree("DescribeQuorum", 2, asked())


def _part(reply: Any) -> Any:
    return reply.topics[0].partitions[0]


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


def asked_in_vain(active: int) -> Iterator[tuple[str, int, Any]]:
    """What can change nothing, whoever is asked: `active` is the controller that is asked."""
    yield "UnregisterBroker", 0, m.UnregisterBrokerRequest(broker_id=9)
    for controller in (9, active):
        yield "UnregisterController", 0, m.UnregisterControllerRequest(controller_id=controller)
    delete = m.DeleteTopicsRequest
    for named in ([], [delete.DeleteTopicState(name="none")], [delete.DeleteTopicState(None, b"\x07" * 16)]):
        yield "DeleteTopics", 6, delete(topics=named, timeout_ms=5000)
    yield "CreateTopics", 7, m.CreateTopicsRequest(timeout_ms=5000)
    yield "CreatePartitions", 3, m.CreatePartitionsRequest(timeout_ms=5000)
    yield "IncrementalAlterConfigs", 1, m.IncrementalAlterConfigsRequest()
    yield "AlterConfigs", 2, m.AlterConfigsRequest()
    yield "AlterClientQuotas", 1, m.AlterClientQuotasRequest()
    yield "AlterUserScramCredentials", 0, m.AlterUserScramCredentialsRequest()
    yield "ElectLeaders", 2, m.ElectLeadersRequest(topic_partitions=[], timeout_ms=5000)
    yield "AlterPartitionReassignments", 1, m.AlterPartitionReassignmentsRequest(timeout_ms=5000)
    acl = m.CreateAclsRequest.AclCreation(2, "none", 3, "User:x", "*", operation=3, permission_type=3)
    yield "CreateAcls", 3, m.CreateAclsRequest(creations=[acl])
    every = m.DeleteAclsRequest.DeleteAclsFilter(2, "none", 3, None, None, operation=1, permission_type=1)
    yield "DeleteAcls", 3, m.DeleteAclsRequest(filters=[every])


def same(message: Any, side: int) -> Any:
    return message


def impatient(name: str, ids: tuple[bytes, bytes], side: int) -> Any:
    request = nodes.produce(name, ids, 10, "b")(side)
    request.timeout_ms = 1000
    return request
