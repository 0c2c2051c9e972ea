"""The active controller at a node: it fails with the node, and metadata waits until there is another one."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.config.config import ConfigError
from ottla.broker.config.nodes import NodeRefused
from ottla.broker.controller.quorum import REACH_MS
from ottla.broker.later import Later, drive
from ottla.coordinator.metadata import brokers
from ottla.protocol import messages as m
from ottla.protocol.errors import ApiError, Errors

from ..support.lab import LabWorld
from ..support.node_world import cluster, happens, produce
from ..support.world import Answer, World

FETCH_MS = 2_000  # controller.quorum.fetch.timeout.ms
SESSION_MS = 9_000  # broker.session.timeout.ms


@pytest.fixture
def w() -> World:
    return cluster(ottla_controller_node="2")


def quorum(w: World) -> tuple[int, int, list[int]]:
    """The leader of the metadata log, its epoch, and the voters."""
    found = w.ask("DescribeQuorum", 2, asked_for_quorum()).topics[0].partitions[0]
    return found.leader_id, found.leader_epoch, [one.replica_id for one in found.current_voters]


def asked_for_quorum() -> Any:
    r = m.DescribeQuorumRequest
    return r(topics=[r.TopicData(topic_name="__cluster_metadata", partitions=[r.PartitionData(partition_index=0)])])


def ids(found: Any) -> tuple[list[int], list[int]]:
    """The voters and the observers of a reply."""
    part = found.topics[0].partitions[0]
    return [one.replica_id for one in part.current_voters], [one.replica_id for one in part.observers]


def described(w: World) -> tuple[list[int], list[int]]:
    return ids(w.ask("DescribeQuorum", 2, asked_for_quorum()))


def directory(w: World, node: int) -> bytes:
    return w.broker.log_directories.all[0].node_ids[node]


def add(w: World, node: int, directory_id: bytes | None = None, port: int = 1) -> tuple[str, str]:
    """Asks for a new voter; returns the error and its text."""
    r = m.AddRaftVoterRequest
    at = r.Listener(name="CONTROLLER", host="127.0.0.1", port=port)
    request = r(cluster_id=None, voter_id=node, voter_directory_id=directory_id or directory(w, node), listeners=[at])
    found = w.ask("AddRaftVoter", 1, request)
    return Errors(found.error_code).name, found.error_message or ""


def remove(w: World, node: int, directory_id: bytes | None = None) -> tuple[str, str]:
    r = m.RemoveRaftVoterRequest
    request = r(cluster_id=None, voter_id=node, voter_directory_id=directory_id or directory(w, node))
    found = w.ask("RemoveRaftVoter", 0, request)
    return Errors(found.error_code).name, found.error_message or ""


OK = ("NONE", "")


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


@pytest.mark.parametrize(("does", "before", "after"), [("stop", "running", "stopped"), ("resume", "paused", "running")])
def test_a_node_changes_to_the_end_when_the_client_of_the_lab_goes(
    w: World, does: str, before: str, after: str
) -> None:
    lab = LabWorld(w)
    if before == "paused":
        happens(w, "pause", 3)
        w.pass_ms(SESSION_MS)
    happens(w, "kill", 2)
    assert lab.ask("GET /v1/nodes/3")["state"] == before
    asked = lab.send("POST /v1/nodes/3", {"do": does})
    assert isinstance(asked, Later)
    assert not asked.done
    asked.cancel()
    happens(w, "begin", 2)
    w.pass_ms(10_000)
    found = lab.ask("GET /v1/nodes/3")
    in_sync = found["replicas"] if after == "running" else 0
    assert (found["state"], found["in_sync"]) == (after, in_sync)


def test_a_controller_whose_node_cannot_register_is_none(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise ApiError(Errors.DUPLICATE_BROKER_REGISTRATION)

    happens(w, "kill", 2)
    with monkeypatch.context() as patch:
        patch.setattr(brokers, "register", refused)
        with pytest.raises(ApiError):
            happens(w, "begin", 2)
    w.pass_ms(FETCH_MS + 1000)
    assert LabWorld(w).ask("GET /v1/nodes")["controller"] == 1
    happens(w, "begin", 2)


def test_a_controller_at_no_node_never_fails() -> None:
    w = cluster()
    leader, epoch, voters = quorum(w)
    assert (leader, voters) == (1, [1])
    happens(w, "kill", 1)
    assert LabWorld(w).ask("GET /v1/nodes")["controller_at_node"] is False
    w.dispatcher = w.dispatchers[3]
    assert code(creates_now(w, "new")) == "NONE"
    assert w.broker.metadata.partition.leader_epoch == epoch


def test_nodes_without_a_controller_only_observe() -> None:
    w = cluster()
    assert described(w) == ([1], [2, 3])
    assert add(w, 2)[0] == "REQUEST_TIMED_OUT"
    happens(w, "control", 1)
    assert described(w) == ([1, 2, 3], [])


def creates_now(w: World, name: str) -> Answer:
    answer = creates(w, name)
    w.pass_ms(2)
    return answer


def test_metadata_waits_for_another_controller(w: World) -> None:
    """A request's own timeout counts when the controller has it, as brokers of Kafka forward it for a minute."""
    _, epoch, _ = quorum(w)
    happens(w, "kill", 2)
    waits, hurries = creates(w, "new"), creates(w, "soon", timeout_ms=500)
    assert produce(w, 1, acks=1).error_code == 0, "records do not wait"
    w.pass_ms(FETCH_MS - 100)
    assert not waits.done
    assert not hurries.done
    assert LabWorld(w).ask("GET /v1/nodes")["controller"] == -1
    describes = w.send("DescribeQuorum", 2, asked_for_quorum())
    assert not describes.done
    w.pass_ms(200)
    assert describes.reply.topics[0].partitions[0].leader_id == 1
    assert (code(waits), code(hurries)) == ("NONE", "NONE")
    assert quorum(w)[:2] == (1, epoch + 1)


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


def test_the_time_until_an_election_begins_with_the_last_loss(w: World) -> None:
    for what in ("pause", "resume", "pause"):
        happens(w, what, 2)
        w.pass_ms(FETCH_MS // 3)
    w.pass_ms(FETCH_MS // 2)
    assert LabWorld(w).ask("GET /v1/nodes")["controller"] == -1
    w.pass_ms(FETCH_MS // 3)
    assert LabWorld(w).ask("GET /v1/nodes")["controller"] == 1


def test_no_leader_is_elected_without_a_controller(w: World) -> None:
    w = cluster(ottla_controller_node="1", controller_quorum_fetch_timeout_ms="20000")
    happens(w, "kill", 1)
    w.pass_ms(15_000)
    assert state_in(w) == 1, "the session has expired, and no one says so"
    w.pass_ms(5_100)
    assert state_in(w) == 1, "the next controller begins the session again"
    w.pass_ms(9_000)
    assert state_in(w) == 2


def test_a_new_controller_begins_all_sessions_again() -> None:
    """It has heard of no heartbeat, and fences no node earlier."""
    w = cluster(ottla_controller_node="4", ottla_nodes="5")
    happens(w, "kill", 1)
    w.pass_ms(8_000)
    happens(w, "kill", 4)
    w.pass_ms(FETCH_MS + SESSION_MS - 100)
    assert [fenced(w, node) for node in (1, 4)] == [False, False]
    w.pass_ms(200)
    assert [fenced(w, node) for node in (1, 4)] == [True, True]


def test_sessions_go_on_with_a_controller_that_was_away_for_a_short_time(w: World) -> None:
    happens(w, "kill", 3)
    w.pass_ms(SESSION_MS - 1_000)
    happens(w, "pause", 2)
    w.pass_ms(FETCH_MS - 100)
    assert not fenced(w, 3), "there is no controller"
    happens(w, "resume", 2)
    w.pass_ms(1_000)
    assert (quorum(w)[0], fenced(w, 3)) == (2, True)


def fenced(w: World, node: int) -> bool:
    return w.broker.image.brokers[node].fenced


def state_in(w: World) -> int:
    return w.broker.image.partitions[w.broker.image.topics["t"].id, 0].leader


def test_the_last_node_stops_and_the_next_one_is_the_controller(w: World) -> None:
    """As soon as there is another one: one of three is no majority."""
    for node in (1, 3, 2):
        happens(w, "stop", node)
    assert LabWorld(w).ask("GET /v1/nodes")["controller"] == -1
    begun = [drive(w.broker.node_lives.begin(w.broker.node_lives.find(3)))]
    w.pass_ms(FETCH_MS + 100)
    assert not begun[0].done
    begun.append(drive(w.broker.node_lives.begin(w.broker.node_lives.find(1))))
    w.pass_ms(FETCH_MS + 100)
    assert all(one.done for one in begun)
    assert quorum(w)[0] == 1


def test_a_minority_has_no_controller(w: World) -> None:
    _, epoch, _ = quorum(w)
    happens(w, "kill", 1)
    assert quorum(w)[:2] == (2, epoch)
    happens(w, "kill", 3)
    w.dispatcher = w.dispatchers[2]
    w.pass_ms(2 * FETCH_MS)  # it resigns
    waits, describes = creates(w, "new"), w.send("DescribeQuorum", 2, asked_for_quorum())
    w.pass_ms(60_100)
    assert not w.broker.image.topics.get("new")
    assert (describes.reply.error_code, describes.reply.topics) == (Errors.REQUEST_TIMED_OUT, [])
    assert code(waits) == "REQUEST_TIMED_OUT"
    drive(w.broker.node_lives.begin(w.broker.node_lives.find(3)))
    w.pass_ms(FETCH_MS + 100)
    assert quorum(w)[:2] == (2, epoch + 1), "who led without a majority has resigned"


def test_what_clients_ask_of_the_controller_times_out_after_a_minute(w: World) -> None:
    happens(w, "kill", 3)
    happens(w, "kill", 2)
    i, d, u = m.IncrementalAlterConfigsRequest, m.DeleteTopicsRequest, m.UnregisterBrokerRequest
    config = i.AlterableConfig(name="retention.ms", config_operation=0, value="5")
    asked = [
        ("IncrementalAlterConfigs", 1, i(resources=[i.AlterConfigsResource(2, "t", [config])])),
        ("DeleteTopics", 6, d(topics=[d.DeleteTopicState(name="t")], timeout_ms=100)),
        ("UnregisterBroker", 0, u(broker_id=3)),
        ("ListPartitionReassignments", 0, m.ListPartitionReassignmentsRequest(topics=None, timeout_ms=100)),
    ]
    waiting = [w.send(*one) for one in asked]
    w.pass_ms(59_900)
    assert not any(one.done for one in waiting)
    w.pass_ms(200)
    configs, deleted, unregistered, listed = (one.reply for one in waiting)
    codes = configs.responses[0].error_code, deleted.responses[0].error_code, unregistered.error_code, listed.error_code
    assert set(codes) == {Errors.REQUEST_TIMED_OUT}
    assert "t" in w.broker.image.topics


def test_coordinators_wait_for_no_controller(w: World) -> None:
    """Brokers have no ids for producers, and the topic of groups is not there yet."""
    happens(w, "kill", 3)
    happens(w, "kill", 2)
    ids = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    codes = (
        w.at(1, "InitProducerId", 4, ids).error_code,
        w.at(1, "FindCoordinator", 4, find).coordinators[0].error_code,
    )
    assert codes == (Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.COORDINATOR_NOT_AVAILABLE)


def test_a_voter_that_died_is_not_heard_of_by_the_next_controller(w: World) -> None:
    happens(w, "kill", 2)
    w.pass_ms(FETCH_MS + 100)
    found = w.ask("DescribeQuorum", 2, asked_for_quorum())
    told = {
        one.replica_id: (one.log_end_offset, one.last_fetch_timestamp)
        for one in found.topics[0].partitions[0].current_voters
    }
    assert told[2] == (-1, -1)
    assert told[1] == told[3] == (w.broker.metadata.partition.end_offset, w.schedule.now_ms())
    assert [one.node_id for one in found.nodes] == [1, 2, 3]


# voters that come and go


def test_a_voter_becomes_an_observer_and_a_voter_again(w: World) -> None:
    assert described(w) == ([1, 2, 3], [])
    assert remove(w, 3) == OK
    assert described(w) == ([1, 2], [3])
    assert remove(w, 3)[0] == "VOTER_NOT_FOUND"
    assert add(w, 3, b"\1" * 16)[1].endswith("since it is lagging behind")
    assert add(w, 3) == OK
    assert described(w) == ([1, 2, 3], [])
    assert add(w, 3)[0] == "DUPLICATE_VOTER"
    assert add(w, 9, b"\1" * 16) == (
        "REQUEST_TIMED_OUT",
        "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE",
    )
    assert remove(w, 1, b"\1" * 16)[0] == "VOTER_NOT_FOUND", "a voter is a controller with a directory"


def test_an_active_controller_that_is_removed_resigns(w: World) -> None:
    _, epoch, _ = quorum(w)
    assert remove(w, 2) == OK
    assert quorum(w) == (1, epoch + 1, [1, 3])
    assert code(creates_now(w, "new")) == "NONE"
    with pytest.raises(NodeRefused, match="node 2 is no voter"):
        happens(w, "control", 2)
    assert remove(w, 3) == OK
    assert remove(w, 1)[0] == "VOTER_NOT_FOUND", "the last one stays"
    assert described(w) == ([1], [2, 3])
    happens(w, "kill", 2), happens(w, "kill", 3)
    assert code(creates_now(w, "alone")) == "NONE", "observers do not count"


@pytest.mark.parametrize("joins", [True, False])
def test_a_new_node_is_an_observer_unless_controllers_join_by_themselves(joins: bool) -> None:
    w = cluster(ottla_controller_node="1", controller_quorum_auto_join_enable=str(joins).lower())
    added = drive(w.broker.node_lives.add())
    w.broker.turn.settle()
    w.pass_ms(10)
    assert added.done
    assert described(w) == (([1, 2, 3, 4], []) if joins else ([1, 2, 3], [4]))
    happens(w, "kill", 4)
    w.pass_ms(300_000)
    assert described(w) == (([1, 2, 3, 4], []) if joins else ([1, 2, 3], [])), "an observer is forgotten after a while"


@pytest.mark.parametrize(("node", "code"), [(1, "NONE"), (2, "INVALID_REQUEST"), (9, "CONTROLLER_ID_NOT_REGISTERED")])
def test_controllers_are_unregistered(w: World, node: int, code: str) -> None:
    """Those that run register again."""
    for _ in range(2):
        found = w.ask("UnregisterController", 0, m.UnregisterControllerRequest(controller_id=node))
        assert Errors(found.error_code).name == code


def test_a_controller_must_be_a_node_that_runs(w: World) -> None:
    happens(w, "stop", 3)
    with pytest.raises(NodeRefused, match="node 3 is stopped"):
        happens(w, "control", 3)
    with pytest.raises(ConfigError, match="there is no node 7, only 1 to 3"):
        cluster(ottla_controller_node="7")


def test_what_waits_for_a_controller_is_forgotten_when_it_ends(w: World) -> None:
    """Clients may ask, give up and ask again for days, while most voters are gone."""
    happens(w, "kill", 1)
    happens(w, "kill", 3)
    w.pass_ms(2 * FETCH_MS)
    waits = w.broker.metadata.quorum
    left, too_late = waits.reached(), waits.reached()
    assert waits.waiting == 2
    left.cancel()
    assert waits.waiting == 1
    w.pass_ms(REACH_MS)
    assert (too_late.done, waits.waiting) == (True, 0)
    found = waits.reached()
    happens(w, "begin", 1)
    w.pass_ms(2 * FETCH_MS)
    assert (found.done, found.error, waits.waiting) == (True, None, 0)


def test_a_leader_asks_once_for_replicas_that_left_while_there_is_no_controller(w: World) -> None:
    happens(w, "kill", 2)
    happens(w, "kill", 3)
    w.pass_ms(10_000)
    assert produce(w, 1, acks=1).error_code == 0
    w.pass_ms(60_000)
    waiting = len(w.broker.metadata.events._waiting)
    w.pass_ms(600_000)
    assert len(w.broker.metadata.events._waiting) == waiting
