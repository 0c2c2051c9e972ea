"""The active controller at a node: it fails with the node, and metadata waits until there is another one."""

from __future__ import annotations

import pytest
from ottla.broker.config.config import ConfigError
from ottla.broker.config.nodes import NodeRefused
from ottla.broker.later import drive
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.lab import LabWorld
from ..support.node_world import cluster, happens, produce
from ..support.world import Answer, World

FETCH_MS = 2_000  # controller.quorum.fetch.timeout.ms


@pytest.fixture
def w() -> World:
    return cluster(ottla_controller_node="2")


def quorum(w: World) -> tuple[int, int, list[int]]:
    """The leader of the metadata log, its epoch, and the voters."""
    r = m.DescribeQuorumRequest
    topic = r.TopicData(topic_name="__cluster_metadata", partitions=[r.PartitionData(partition_index=0)])
    found = w.ask("DescribeQuorum", 2, r(topics=[topic])).topics[0].partitions[0]
    return found.leader_id, found.leader_epoch, [one.replica_id for one in found.current_voters]


def creates(w: World, name: str, timeout_ms: int = 60_000) -> Answer:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return w.send("CreateTopics", 7, r(topics=[topic], timeout_ms=timeout_ms))


def code(answer: Answer) -> str:
    return Errors(answer.reply.topics[0].error_code).name


def test_the_controller_is_where_the_configuration_says(w: World) -> None:
    leader, epoch, voters = quorum(w)
    assert (leader, voters) == (2, [1, 2, 3])
    happens(w, "control", 3)
    assert quorum(w) == (3, epoch + 1, [1, 2, 3])
    assert LabWorld(w).ask("GET /v1/nodes")["controller"] == 3


def test_a_controller_at_no_node_never_fails() -> None:
    w = cluster()
    leader, epoch, voters = quorum(w)
    assert (leader, voters) == (1, [1])
    happens(w, "kill", 1)
    assert LabWorld(w).ask("GET /v1/nodes")["controller_at_node"] is False
    w.dispatcher = w.dispatchers[3]
    assert code(creates_now(w, "new")) == "NONE"
    assert w.broker.metadata.partition.leader_epoch == epoch


def creates_now(w: World, name: str) -> Answer:
    answer = creates(w, name)
    w.pass_ms(2)
    return answer


def test_metadata_waits_for_another_controller(w: World) -> None:
    _, epoch, _ = quorum(w)
    happens(w, "kill", 2)
    waits, gives_up = creates(w, "new"), creates(w, "late", timeout_ms=500)
    assert produce(w, 1, acks=1).error_code == 0, "records do not wait"
    w.pass_ms(FETCH_MS - 100)
    assert not waits.done
    assert code(gives_up) == "REQUEST_TIMED_OUT"
    assert quorum(w)[0] == -1
    w.pass_ms(200)
    assert code(waits) == "NONE"
    assert quorum(w)[:2] == (1, epoch + 1)
    assert "late" not in w.broker.image.topics


def test_a_controller_that_stops_resigns(w: World) -> None:
    happens(w, "stop", 2)
    assert quorum(w)[0] == 1
    assert code(creates_now(w, "new")) == "NONE"
    assert w.broker.image.brokers[2].fenced


@pytest.mark.parametrize(("before", "after"), [("pause", "resume"), ("cut", "heal")])
def test_a_controller_that_is_away_for_a_short_time_goes_on(w: World, before: str, after: str) -> None:
    _, epoch, _ = quorum(w)
    happens(w, before, 2)
    waits = creates(w, "new")
    w.pass_ms(FETCH_MS // 2)
    assert not waits.done
    happens(w, after, 2)
    w.pass_ms(2)
    assert code(waits) == "NONE"
    w.pass_ms(2 * FETCH_MS)
    assert quorum(w)[:2] == (2, epoch)


def test_no_leader_is_elected_without_a_controller(w: World) -> None:
    w = cluster(ottla_controller_node="1", controller_quorum_fetch_timeout_ms="20000")
    happens(w, "kill", 1)
    w.pass_ms(15_000)
    assert state_in(w) == 1, "the session has expired, and no one says so"
    w.pass_ms(5_100)
    assert state_in(w) == 2


def state_in(w: World) -> int:
    return w.broker.image.partitions[w.broker.image.topics["t"].id, 0].leader


def test_the_last_node_stops_and_the_next_one_is_the_controller(w: World) -> None:
    for node in (1, 3, 2):
        happens(w, "stop", node)
    assert LabWorld(w).ask("GET /v1/nodes")["controller"] == -1
    begun = drive(w.broker.node_lives.begin(w.broker.node_lives.find(3)))
    w.pass_ms(FETCH_MS + 100)
    assert begun.done
    assert quorum(w)[0] == 3


def test_a_controller_must_be_a_node_that_runs(w: World) -> None:
    happens(w, "stop", 3)
    with pytest.raises(NodeRefused, match="node 3 is stopped"):
        happens(w, "control", 3)
    with pytest.raises(ConfigError, match="there is no node 7, only 1 to 3"):
        cluster(ottla_controller_node="7")
