"""Partitions in the lab: who leads and why, leaders that move, replicas that are taken out of sync, policies of single
followers, replicas in sync by hand, and what elections lose.
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.config.config import ConfigError
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.lab import LabWorld
from ..support.node_world import cluster, create, happens, produce, records, state
from ..support.topic_world import create as create_topic
from ..support.world import Answer, World

LAG_MS = 30_000


@pytest.fixture
def w() -> World:
    return cluster()


@pytest.fixture
def lab(w: World) -> LabWorld:
    return LabWorld(w)


def waiting(w: World, topic: str = "t", timeout_ms: int = 120_000) -> Answer:
    w.dispatcher = w.dispatchers.get(1, w.dispatcher)
    return w.send("Produce", 10, produce_message(topic, batch(b"v"), 0, -1, timeout_ms))


def code(answer: Answer) -> str:
    return Errors(answer.reply.responses[0].partition_responses[0].error_code).name


def shown(lab: LabWorld, topic: str = "t", index: int = 0) -> Any:
    return lab.ask(f"GET /v1/partitions/{topic}/{index}")


# drain


def test_a_drained_node_goes_on_without_leaders_until_it_is_let_in(w: World, lab: LabWorld) -> None:
    epoch = w.broker.image.brokers[1].epoch
    found = lab.ask("POST /v1/nodes/1", do="drain")["nodes"][0]
    assert (found["state"], found["drained"], found["fenced"], found["leads"]) == ("running", True, False, 0)
    assert state(w) == (2, 1, [2, 3], [], [])
    assert Errors(produce(w, 1).error_code).name == "NOT_LEADER_OR_FOLLOWER", "it answers"
    w.pass_ms(10 * LAG_MS)
    assert state(w)[2] == [2, 3], "it does not come into sync, and no election gives it a leader"
    assert lab.ask("POST /v1/nodes/1", do="unfence")["nodes"][0]["drained"] is False
    assert state(w)[2] == [1, 2, 3]
    assert w.broker.image.brokers[1].epoch > epoch, "only a registration ends a controlled shutdown"


def test_a_drained_node_stops(w: World) -> None:
    happens(w, "drain", 1)
    happens(w, "stop", 1)
    assert w.broker.image.brokers[1].fenced
    happens(w, "begin", 1)
    assert state(w)[2] == [1, 2, 3]


# what is shown


def test_a_partition_says_who_leads_and_why(w: World, lab: LabWorld) -> None:
    assert shown(lab)["why"] == "it is the preferred replica"
    assert shown(lab)["problems"] == []
    happens(w, "hold", 2)
    produce(w, 1, acks=1)
    assert [(one["node"], one["end_offset"], one["lag"], one["follows"]) for one in shown(lab)["replicas"]] == [
        (1, 1, 0, True),
        (2, 0, 1, False),
        (3, 1, 0, True),
    ]
    happens(w, "release", 2)
    happens(w, "stop", 1)
    assert shown(lab)["why"] == "the preferred replica 1 is not alive"
    assert shown(lab)["problems"] == ["2 of 3 replicas are in sync", "not led by the preferred replica"]
    happens(w, "begin", 1)
    assert shown(lab)["why"] == "the preferred replica 1 has not been elected again"


def test_a_partition_without_a_leader_says_whom_it_waits_for(w: World, lab: LabWorld) -> None:
    happens(w, "stop", 2)
    happens(w, "stop", 3)
    found = shown(lab, "two")
    assert (found["leader"], found["isr"], found["elr"]) == (-1, [], [3])
    assert found["why"] == "no leader: of the replicas that have all committed records (3) none is alive"


def test_partitions_with_problems_are_listed(w: World, lab: LabWorld) -> None:
    def listed(**query: str) -> list[tuple[str, int]]:
        text = "&".join(f"{key}={value}" for key, value in query.items())
        _, found = lab.reply("GET /v1/partitions", query=text)
        return [(one["topic"], one["partition"]) for one in found["partitions"]]

    assert listed(problems="true") == []
    assert listed(topic="t") == [("t", 0), ("t", 1)]
    happens(w, "stop", 3)
    assert listed(problems="true") == [("one", 0), ("t", 0), ("t", 1), ("two", 0)]


# leaders


def test_a_leader_moves_to_any_replica_in_sync(w: World, lab: LabWorld) -> None:
    assert lab.ask("POST /v1/partitions/t/0/move", node=3)["leader"] == 3
    assert produce(w, 3).error_code == 0
    assert lab.ask("POST /v1/partitions/t/0/move")["leader"] == 1, "the next one in the order of the replicas"
    assert state(w)[:2] == (1, 2)
    assert records(w, 1) == [b"v"]
    status, words = lab.refused("POST /v1/partitions/t/0/move", {"node": 1})
    assert (status, "t-0 is led by node 1" in words) == (409, True)
    happens(w, "stop", 2)
    status, words = lab.refused("POST /v1/partitions/t/0/move", {"node": 2})
    assert (status, words) == (409, "t-0: node 2 is not alive and in sync (in sync: 1, 3)")
    happens(w, "stop", 3)
    status, words = lab.refused("POST /v1/partitions/t/0/move")
    assert (status, words) == (409, "t-0: no other replica is alive and in sync (in sync: 1)")


def test_a_node_is_shown_by_its_id(w: World, lab: LabWorld) -> None:
    happens(w, "stop", 2)
    assert lab.ask("GET /v1/nodes/2") == lab.ask("GET /v1/nodes")["nodes"][1]
    assert (lab.ask("GET /v1/nodes/2")["state"], lab.ask("GET /v1/nodes/3")["state"]) == ("stopped", "running")
    assert lab.refused("GET /v1/nodes/4") == (404, "there is no node 4")


def test_elections_are_those_of_kafka(w: World, lab: LabWorld) -> None:
    lab.ask("POST /v1/partitions/t/0/move", node=2)
    assert lab.ask("POST /v1/partitions/t/0/elect")["leader"] == 1
    assert lab.refused("POST /v1/partitions/t/0/elect")[0] == 409
    assert lab.refused("POST /v1/partitions/t/9/elect")[0] == 404


# replicas in sync


def test_a_shrunken_partition_has_its_replica_held_until_it_is_released(w: World, lab: LabWorld) -> None:
    assert lab.ask("POST /v1/partitions/t/0/shrink", node=2)["isr"] == [1, 3]
    assert produce(w, 1).error_code == 0
    w.pass_ms(2 * LAG_MS)
    assert shown(lab)["isr"] == [1, 3]
    assert [one["policy"] for one in shown(lab)["replicas"]] == [None, "held", None]
    assert state(w, 1)[2] == [2, 3, 1], "the other partition is as before"
    lab.ask("POST /v1/release", topic="t", partition=0, node=2)
    w.pass_ms(1)
    assert shown(lab)["isr"] == [1, 2, 3]


def test_a_release_of_the_topic_is_of_each_partition_of_it(w: World, lab: LabWorld) -> None:
    assert lab.ask("POST /v1/partitions/t/0/shrink", node=2)["isr"] == [1, 3]
    lab.ask("POST /v1/hold", topic="t", partition=1, node=2)
    lab.ask("POST /v1/release", topic="t", node=3)
    assert [one["policy"] for one in shown(lab)["replicas"]] == [None, "held", None], "another node's are as before"
    lab.ask("POST /v1/release", topic="t", node=2)
    w.pass_ms(1)
    assert shown(lab)["isr"] == [1, 2, 3]
    assert [one["policy"] for one in shown(lab, index=1)["replicas"]] == [None, None, None]


def test_a_node_that_leads_or_has_no_replica_cannot_leave_those_in_sync(w: World, lab: LabWorld) -> None:
    assert lab.refused("POST /v1/partitions/t/0/shrink", {"node": 1}) == (409, "t-0: node 1 leads it")
    assert lab.refused("POST /v1/partitions/t/0/shrink", {"node": 9}) == (409, "t-0: node 9 has no replica of it")
    assert shown(lab)["isr"] == [1, 2, 3]


def test_only_the_leader_stays_in_sync(w: World, lab: LabWorld) -> None:
    create(w, "safe", [1, 2, 3], min_insync_replicas="2")
    found = lab.ask("POST /v1/partitions/safe/0/shrink")
    assert (found["isr"], found["elr"]) == ([1], [2, 3])
    assert "fewer in sync than min.insync.replicas=2: acks=all is refused" in found["problems"]
    assert Errors(produce(w, 1, topic="safe").error_code).name == "NOT_ENOUGH_REPLICAS"
    lab.ask("POST /v1/reset")
    w.pass_ms(1)
    assert produce(w, 1, topic="safe").error_code == 0


def test_one_follower_has_a_policy_of_its_own(w: World, lab: LabWorld) -> None:
    lab.ask("POST /v1/policy", topic="t", partition=0, node=3, policy="lag=200ms")
    late = waiting(w)
    assert [one["end_offset"] for one in shown(lab)["replicas"]] == [1, 1, 0]
    w.pass_ms(199)
    assert not late.done
    w.pass_ms(1)
    assert code(late) == "NONE"


def test_a_follower_some_bytes_behind_holds_the_high_watermark(w: World, lab: LabWorld) -> None:
    size = len(batch(b"v"))
    lab.ask("POST /v1/policy", topic="t", node=2, policy=f"bytes={size}")
    produce(w, 1, acks=1)
    produce(w, 1, acks=1)
    assert records(w, 1) == [b"v"]
    assert [one["end_offset"] for one in shown(lab)["replicas"]] == [2, 1, 2]


def test_a_held_follower_leaves_and_leads_with_what_it_has(w: World, lab: LabWorld) -> None:
    produce(w, 1)
    lab.ask("POST /v1/hold", topic="t", partition=0, node=2)
    late = waiting(w)
    w.pass_ms(2 * LAG_MS)
    assert (code(late), state(w)[2]) == ("NONE", [1, 3])
    lab.ask("POST /v1/hold", topic="t", partition=0, node=3)
    produce(w, 1, acks=1)
    happens(w, "fence", 1)
    assert state(w)[0] == 3
    w.pass_ms(10)
    assert w.broker.partitions.get("t", 0).end_offset == 2, "what only the leader had is lost"


def test_a_node_that_stops_and_starts_keeps_its_policy(w: World, lab: LabWorld) -> None:
    lab.ask("POST /v1/policy", topic="t", partition=0, node=3, policy="lag=50ms")
    happens(w, "stop", 3)
    produce(w, 1)
    happens(w, "begin", 3)
    assert shown(lab)["replicas"][2]["end_offset"] == 0
    w.pass_ms(60)
    assert shown(lab)["replicas"][2]["end_offset"] == 1
    w.pass_ms(1)
    assert shown(lab)["isr"] == [1, 2, 3]


# by hand


def one_broker(**settings: str) -> tuple[World, LabWorld]:
    w = World(None, 0, **settings)
    create_topic(w, "orders", min_insync_replicas="2")
    return w, LabWorld(w)


def test_one_broker_alone_answers_not_enough_replicas() -> None:
    w, lab = one_broker()
    assert produce(w, 1, topic="orders").error_code == 0, "with one replica, one is enough"
    assert lab.ask("POST /v1/isr-size", topic="orders", size=1)["partitions"][0]["isr_size"] == 1
    assert Errors(produce(w, 1, topic="orders").error_code).name == "NOT_ENOUGH_REPLICAS"
    assert produce(w, 1, topic="orders", acks=1).error_code == 0
    assert records(w, 1, topic="orders") == [b"v"], "nothing is committed with too few replicas"
    lab.ask("POST /v1/isr-size", topic="orders", size=None)
    w.pass_ms(1)
    assert records(w, 1, topic="orders") == [b"v", b"v"]
    assert produce(w, 1, topic="orders").error_code == 0


def test_replicas_that_leave_while_a_producer_waits_are_told_after_the_append() -> None:
    """In Kafka they must leave in the moment in which the high watermark passes the records."""
    w, lab = one_broker()
    lab.ask("POST /v1/isr-size", topic="orders", size=2)
    lab.ask("POST /v1/hold", topic="orders")
    late = waiting(w, "orders")
    lab.ask("POST /v1/isr-size", topic="orders", size=1)
    assert not late.done
    lab.ask("POST /v1/step", topic="orders", batches=1)
    assert code(late) == "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    assert records(w, 1, topic="orders") == [b"v"], "it is written all the same"


def test_as_many_as_are_in_sync_of_a_topic_are_so_in_each_partition() -> None:
    _, lab = one_broker()
    lab.ask("POST /v1/isr-size", topic="orders", partition=0, size=1)
    assert lab.ask("POST /v1/isr-size", topic="orders", size=None)["partitions"][0]["isr_size"] is None


def test_replicas_in_sync_are_configured() -> None:
    w, lab = one_broker(ottla_isr_size="orders:1")
    assert Errors(produce(w, 1, topic="orders").error_code).name == "NOT_ENOUGH_REPLICAS"
    lab.ask("POST /v1/isr-size", topic="orders", size=2)
    assert produce(w, 1, topic="orders").error_code == 0
    lab.ask("POST /v1/reset")
    assert Errors(produce(w, 1, topic="orders").error_code).name == "NOT_ENOUGH_REPLICAS"
    with pytest.raises(ConfigError, match=r"ottla\.isr\.size: 'orders:few' is not a number of replicas"):
        World(None, 0, ottla_isr_size="orders:few")


# losses


def test_the_lab_says_which_records_an_unclean_election_lost(w: World, lab: LabWorld) -> None:
    create(w, "loose", [1, 2], unclean_leader_election_enable="true")
    produce(w, 1, topic="loose")
    happens(w, "hold", 2)
    for sequence in range(2):
        data = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=sequence)
        assert w.at(1, "Produce", 10, produce_message("loose", data, 0, 1)).responses[0].partition_responses
    w.pass_ms(2 * LAG_MS)
    lab.ask("POST /v1/partitions/loose/0/shrink", node=2)
    produce(w, 1, topic="loose", acks=1)
    happens(w, "stop", 1)
    (lost,) = lab.ask("GET /v1/losses")["losses"]
    assert (lost["topic"], lost["first_offset"], lost["end_offset"], lost["committed"]) == ("loose", 1, 4, 3)
    assert lost["records"] == {"7": 2, "-1": 1}
    assert (lost["leader_before"], lost["leader"], lost["leader_epoch"], lost["is_whole"]) == (1, 2, 1, True)
    assert lab.ask("GET /v1/losses")["committed_records"] == 3


def test_what_was_not_committed_is_no_loss_of_committed_records(w: World, lab: LabWorld) -> None:
    happens(w, "hold", 2)
    produce(w, 1, acks=1)
    happens(w, "fence", 1)
    (lost,) = lab.ask("GET /v1/losses")["losses"]
    assert (lost["first_offset"], lost["end_offset"], lost["committed"]) == (0, 1, 0)


def test_a_request_for_a_partition_that_does_not_exist(lab: LabWorld) -> None:
    assert lab.refused("GET /v1/partitions", query="topic=absent") == (404, "topic absent does not exist")
    assert lab.refused("GET /v1/partitions/t/7") == (404, "partition t-7 does not exist")
    assert lab.refused("POST /v1/isr-size", {"topic": "absent", "size": 1})[0] == 404
    assert lab.refused("POST /v1/hold", {"topic": "t", "node": 9}) == (404, "there is no node 9")


def test_each_node_has_its_metrics(w: World, lab: LabWorld) -> None:
    def figures() -> dict[str, float]:
        body = lab.send("GET /metrics").body  # type: ignore[union-attr]
        text = (body if isinstance(body, bytes) else b"".join(body)).decode()
        lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    assert figures()['kafka_server_ReplicaManager_UnderReplicatedPartitions{node="1"}'] == 0
    before = figures()['kafka_server_ReplicaManager_PartitionCount{node="3"}']
    happens(w, "hold", 2)
    produce(w, 1, acks=1)
    happens(w, "fence", 1)
    found = figures()
    assert found['ottla_node_fenced{node="1"}'] == 1
    assert found['kafka_server_ReplicaManager_LeaderCount{node="1"}'] == 0
    assert found['kafka_server_ReplicaManager_UnderReplicatedPartitions{node="2"}'] == 2
    assert found['kafka_server_ReplicaManager_PartitionCount{node="3"}'] == before
    assert (found["ottla_records_cut_total"], found["ottla_committed_records_cut_total"]) == (1, 0)
