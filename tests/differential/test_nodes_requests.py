"""Requests of brokers and controllers, from a client that pretends to be one of them, where nothing is authorized."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from ottla.broker.net.dispatch import Refused
from ottla.protocol import messages as m
from ottla.protocol import schema

from ..support.node_stories import NODES, Story
from ..support.stories import nodes
from ..support.wire import Closed

pytestmark = pytest.mark.slow
STRANGER = 7
REPLICA_STATE_SINCE = 15
OF_CONTROLLERS = [
    "Vote",
    "BeginQuorumEpoch",
    "EndQuorumEpoch",
    "AlterPartition",
    "Envelope",
    "FetchSnapshot",
    "BrokerRegistration",
    "BrokerHeartbeat",
    "AllocateProducerIds",
    "ControllerRegistration",
    "AssignReplicasToDirs",
    "UpdateRaftVoter",
]


def fetch(name: str, ids: nodes.Ids, version: int, replica: int, offset: int = 0, epoch: int = -1, **more: Any) -> Any:
    """A Fetch of a replica. `epoch`: of its broker, from version 15 on (KIP-903)."""

    def made(side: int) -> Any:
        request = nodes.fetch(name, ids, version, offset, **more)(side)
        if version >= REPLICA_STATE_SINCE:
            request.replica_state = m.FetchRequest.ReplicaState(replica_id=replica, replica_epoch=epoch)
        else:
            request.replica_id = replica
        return request

    return made


@pytest.mark.parametrize("version", [4, 11, 12, 14, 15, 17])
def test_a_fetch_of_a_follower(story: Story, version: int) -> None:
    """The leader gives records to its replicas, up to the end of its log; others give none."""
    story.trims["Fetch"] = nodes.values_only
    for leader, *others in ([1, 2, 3], [2, 1]):
        name = f"fetched{version}.{leader}"
        ids = story.topic(name, [leader, *others])
        nodes.written(story.at(leader), name, ids, "a", "b")
        for node in (leader, *others):
            nodes.read(story.at(node), name, ids)
        for node in NODES:
            for replica in (1, 2, 3, STRANGER):
                story.at(node).both("Fetch", version, fetch(name, ids, version, replica))
        for offset in (1, 2, 9):
            story.at(leader).both("Fetch", version, fetch(name, ids, version, others[0], offset))
    assert {"NONE", "NOT_LEADER_OR_FOLLOWER", "OFFSET_OUT_OF_RANGE"} <= story.errors("Fetch")


@pytest.mark.parametrize("version", [12, 17])
def test_a_follower_with_the_epoch_of_another_time(story: Story, version: int) -> None:
    """The leader's epoch, that of the last record, and, from version 15 on, that of the broker."""
    story.trims["Fetch"] = nodes.values_only
    name = f"epochs{version}"
    ids = story.topic(name, [1, 2, 3])
    nodes.written(story.at(1), name, ids, "a")
    story.happens("stop", 1)
    story.knows(name)
    nodes.written(story.at(2), name, ids, "b")
    nodes.read(story.at(3), name, ids)
    for node in (2, 3):
        for replica in (1, 3, STRANGER):
            for epoch in (-1, 0, 1, 2):
                for last in (-1, 0, 1, 2):
                    more = {"current_leader_epoch": epoch, "last_fetched_epoch": last}
                    story.at(node).both("Fetch", version, fetch(name, ids, version, replica, 1, **more))
    for offset in (0, 2, 9):
        for last in (0, 1):
            story.at(2).both("Fetch", version, fetch(name, ids, version, 3, offset, last_fetched_epoch=last))
    for epoch in (0, 1 << 40):
        story.at(2).both("Fetch", version, fetch(name, ids, version, 3, 2, epoch))
        story.at(2).both("Fetch", version, fetch(name, ids, version, STRANGER, 2, epoch))
    assert {"NONE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_OUT_OF_RANGE"} <= story.errors("Fetch")


def test_a_follower_has_a_session(story: Story) -> None:
    story.trims["Fetch"] = nodes.values_only
    ids = story.topic("session", [1, 2, 3], [2, 1, 3])
    at = story.at(1)
    nodes.written(at, "session", ids, "a")
    nodes.read(story.at(3), "session", ids)
    opened = at.both("Fetch", 17, fetch("session", ids, 17, 3, session_epoch=0))
    sessions = [one.session_id for one in opened]

    def again(epoch: int, replica: int = 3, offset: int = 1, **more: Any) -> None:
        def made(side: int) -> Any:
            more["session_id"] = sessions[side]
            return fetch("session", ids, 17, replica, offset, session_epoch=epoch, **more)(side)

        at.both("Fetch", 17, made)

    again(1)
    again(1)
    again(2, replica=2)
    again(3, replica=-1)
    again(4, partition=1)
    nodes.written(at, "session", ids, "b")
    again(5)
    again(-1)
    again(6)
    assert story.errors("Fetch") == {
        "NONE",
        "INVALID_FETCH_SESSION_EPOCH",
        "FETCH_SESSION_ID_NOT_FOUND",
        "NOT_LEADER_OR_FOLLOWER",
    }


def test_a_follower_reads_what_is_not_committed(story: Story) -> None:
    """One of two replicas stands still, so what is written stays above the high watermark until it leaves."""
    story.trims["Fetch"] = nodes.values_only
    ids = story.topic("uncommitted", [1, 2])
    at = story.at(1)
    nodes.written(at, "uncommitted", ids, "a")
    nodes.read(story.at(2), "uncommitted", ids)
    story.happens("pause", 2, 0)
    nodes.written(at, "uncommitted", ids, "b", acks=1)
    for version in (12, 17):
        at.both("Fetch", version, nodes.fetch("uncommitted", ids, version))
        for offset in (0, 1):
            at.both("Fetch", version, fetch("uncommitted", ids, version, 2, offset))
        at.both("Fetch", version, nodes.fetch("uncommitted", ids, version, 1))
    story.happens("resume", 2)
    story.knows("uncommitted")
    nodes.read(at, "uncommitted", ids)
    assert story.errors("Fetch") == {"NONE"}


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_follower_asks_for_the_end_of_an_epoch(story: Story, version: int) -> None:
    name = f"ends{version}"
    ids = story.topic(name, [1, 2, 3])
    nodes.written(story.at(1), name, ids, "a")
    story.happens("stop", 1)
    story.knows(name)
    nodes.written(story.at(2), name, ids, "b", "c")
    story.happens("start", 1)
    story.knows(name)
    for node in NODES:
        for replica in (1, 3, STRANGER, -1, -2) if version > 2 else (-1,):
            for current in (-1, 0, 1, 2):
                for epoch in (0, 1, 2):
                    request = nodes.end_of_epoch(name, epoch, current)
                    request.replica_id = replica
                    story.at(node).ask("OffsetForLeaderEpoch", version, request)
    expected = {"NONE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "NOT_LEADER_OR_FOLLOWER"}
    assert story.errors("OffsetForLeaderEpoch") == expected


def test_requests_of_controllers_close_the_connection(story: Story) -> None:
    for node in NODES:
        for name in OF_CONTROLLERS:
            valid = schema.load(f"{name}Request").valid
            for version in range(valid.low, valid.high + 1):
                request = getattr(m, f"{name}Request")()
                assert story.at(node).ask(name, version, request) == ("closed", "closed")
        story.at(node).agree("DescribeCluster", 2, m.DescribeClusterRequest())


def test_requests_that_kafka_4_has_dropped_close_the_connection(story: Story) -> None:
    """LeaderAndIsr, StopReplica, UpdateMetadata and ControlledShutdown came from controllers with ZooKeeper."""
    for node in NODES:
        for key in (4, 5, 6, 7):
            frame = struct.pack(">hhih", key, 1, 7, -1) + bytes(8)
            voice = story.transcript.dial(story.kafka.address(node) if story.kafka else "", "wire")
            with pytest.raises(Closed):
                voice.raw(struct.pack(">i", len(frame)) + frame)
            voice.close()
            with pytest.raises(Refused):
                story.world.dispatchers[node].handle(story.world.peer, memoryview(frame), lambda reply, end: None)
