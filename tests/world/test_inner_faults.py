"""Faults within the broker: appends that fail, slow syncs, coordinators that take long to load."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.lab.faults.rules import Fault, Faults, Rule
from ottla.broker.lab.shapes import Invalid, parse
from ottla.broker.replica.partition import Partition
from ottla.broker.shards.host import ShardHost
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.lab import LabWorld
from ..support.node_world import cluster, happens, produce, state
from ..support.topic_world import create, produced
from ..support.world import World


def joining(group: str) -> Any:
    r = m.JoinGroupRequest
    protocol = r.JoinGroupRequestProtocol(name="range", metadata=b"")
    return r(group_id=group, session_timeout_ms=30_000, protocol_type="consumer", protocols=[protocol])


class Faulty:
    """A broker with faults."""

    def __init__(self, **settings: str) -> None:
        self.world = World(**settings)
        self.lab = LabWorld(self.world)
        self.faults = self.lab.lab.part(Faults)

    def add(self, **fault: Any) -> Rule:
        return self.faults.add(parse(Fault, fault))

    def produce(self, topic: str, partition: int = 0) -> int:
        """Produces a record; returns the error code."""
        answer = self.world.ask("Produce", 9, produce_message(topic, batch(b"value"), partition))
        code: int = produced(answer).error_code
        return code

    def joins(self, group: str) -> int:
        """Joins a group without a member id; returns the error code."""
        code: int = self.world.ask("JoinGroup", 5, joining(group)).error_code
        return code

    def with_groups(self) -> Faulty:
        self.world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g"]))
        self.world.pass_ms(1000)
        assert self.joins("g") == Errors.MEMBER_ID_REQUIRED
        return self


def test_an_append_fails() -> None:
    faulty = Faulty()
    create(faulty.world, "a", 2)
    rule = faulty.add(topic="a", partition=1, times=2, every=2, action={"kind": "append-fails"})
    codes = [[faulty.produce("a", partition) for _ in range(5)] for partition in (0, 1)]
    assert codes == [[0] * 5, [0, Errors.KAFKA_STORAGE_ERROR, 0, Errors.KAFKA_STORAGE_ERROR, 0]]
    assert faulty.world.broker.partitions.by_name["a", 1].end_offset == 3
    assert (rule.matched, rule.applied, [one.what for one in rule.events]) == (4, 2, ["an append to a-1"] * 2)
    assert faulty.world.broker.appender.append_to_log is Partition.append
    assert not faulty.world.fatal


def test_an_append_that_fails_may_take_the_disk_with_it() -> None:
    faulty = Faulty(log_dirs="/one,/two")
    create(faulty.world, "a", 2)
    faulty.add(topic="a", partition=0, action={"kind": "append-fails", "offline": True})
    assert faulty.produce("a", 0) == Errors.KAFKA_STORAGE_ERROR
    offline = [one.offline for one in faulty.world.broker.partitions.by_name.values()]
    assert any(offline)
    assert not all(offline)


def test_internal_topics_are_disturbed_only_if_they_are_named() -> None:
    faulty = Faulty().with_groups()
    rule = faulty.add(action={"kind": "append-fails"})
    message = m.OffsetCommitRequest(group_id="g", topics=[])
    r = m.OffsetCommitRequest
    create(faulty.world, "a")
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    message.topics = [r.OffsetCommitRequestTopic(name="a", partitions=[part])]

    def commits() -> int:
        code: int = faulty.world.ask("OffsetCommit", 8, message).topics[0].partitions[0].error_code
        return code

    assert (commits(), rule.matched) == (0, 0)
    faulty.add(topic="__consumer_offsets", times=1, action={"kind": "append-fails"})
    assert commits() != 0
    assert commits() == 0


def test_a_sync_takes_long() -> None:
    faulty = Faulty()
    create(faulty.world, "a", flush_messages="1")
    faulty.add(topic="a", times=1, action={"kind": "slow-sync", "ms": "3s"})
    slow = faulty.world.send("Produce", 9, produce_message("a", batch(b"1")))
    faulty.world.pass_ms(2999)
    assert not slow.done
    faulty.world.pass_ms(2)
    assert produced(slow.reply).error_code == 0
    assert faulty.produce("a") == 0
    flusher = faulty.world.broker.replicas.flusher
    assert flusher.run == flusher.run_in_thread


def test_a_coordinator_loads_for_some_time() -> None:
    faulty = Faulty().with_groups()
    rule = faulty.add(action={"kind": "loading", "ms": "10s"})
    assert faulty.joins("g") == Errors.COORDINATOR_LOAD_IN_PROGRESS
    faulty.world.pass_ms(9_990)
    assert faulty.joins("g") == Errors.COORDINATOR_LOAD_IN_PROGRESS
    faulty.world.pass_ms(20)
    assert faulty.joins("g") == Errors.MEMBER_ID_REQUIRED
    assert rule.applied == 1
    assert rule.events[0].what.endswith(" group coordinators")
    assert faulty.world.broker.groups.begin is ShardHost.begin


def test_the_coordinator_of_one_group_loads_and_removing_the_rule_ends_that() -> None:
    faulty = Faulty().with_groups()
    groups = faulty.world.broker.groups
    other = next(name for name in map(str, range(100)) if groups.partition_for(name) != groups.partition_for("g"))
    long = faulty.add(group="g", action={"kind": "loading", "ms": "1h"})
    short = faulty.add(group="g", action={"kind": "loading", "ms": "2h"})
    assert faulty.joins(other) == Errors.MEMBER_ID_REQUIRED
    assert faulty.joins("g") == Errors.COORDINATOR_LOAD_IN_PROGRESS
    faulty.faults.remove(short.number)
    assert faulty.joins("g") == Errors.COORDINATOR_LOAD_IN_PROGRESS
    faulty.faults.remove(long.number)
    assert faulty.joins("g") == Errors.MEMBER_ID_REQUIRED


def test_only_what_a_node_leads_is_disturbed() -> None:
    w = cluster()
    faults = LabWorld(w).lab.part(Faults)
    rule = faults.add(parse(Fault, {"node": 2, "action": {"kind": "append-fails"}}))
    assert [produce(w, node, partition).error_code for node, partition in ((1, 0), (2, 1))] == [
        Errors.NONE,
        Errors.KAFKA_STORAGE_ERROR,
    ]
    happens(w, "stop", 2)
    assert produce(w, state(w, 1)[0], 1).error_code == Errors.NONE, "another node leads it"
    assert [one.what for one in rule.events] == ["an append to t-1"]


def test_the_coordinators_of_a_node_load() -> None:
    w = cluster()
    names = [f"g{number}" for number in range(20)]
    request = m.FindCoordinatorRequest(coordinator_keys=names)
    w.ask("FindCoordinator", 4, request)
    w.pass_ms(1000)
    nodes = {one.key: one.node_id for one in w.ask("FindCoordinator", 4, request).coordinators}
    assert set(nodes.values()) == {1, 2, 3}
    LabWorld(w).lab.part(Faults).add(parse(Fault, {"node": 2, "action": {"kind": "loading", "ms": "10s"}}))

    def found() -> set[tuple[int, int]]:
        return {(node, w.at(node, "JoinGroup", 5, joining(name)).error_code) for name, node in nodes.items()}

    free = Errors.MEMBER_ID_REQUIRED
    assert found() == {(1, free), (2, Errors.COORDINATOR_LOAD_IN_PROGRESS), (3, free)}
    w.pass_ms(10_010)
    assert found() == {(1, free), (2, free), (3, free)}


def test_faults_within_the_broker_are_not_for_requests() -> None:
    with pytest.raises(Invalid, match="client_id: append-fails happens within the broker"):
        Faulty().add(client_id="a", action={"kind": "append-fails"})
