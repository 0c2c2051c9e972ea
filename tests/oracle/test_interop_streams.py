"""Streams groups go both ways: Kafka goes on with a group that ottla wrote, and ottla with what Kafka made of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.ask import create
from ..support.poll import until
from ..support.stories.streams import R, info, joining, part, tasks
from ..support.wire import Wire
from .kafka import FEW_PARTITIONS, Kafka, program

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
SETTINGS: dict[str, object] = {
    **FEW_PARTITIONS,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.assignment.interval.ms": 0,
}
PARTS = part("0", "in", sinks=["mid"]), part("1", repartitions=[info("mid", 2)], changelogs=[info("log")])


def joins(wire: Wire, member: str, instance: str | None = None) -> Any:
    request = joining("app", *PARTS, member=member)
    request.instance_id = instance
    return wire.ask("StreamsGroupHeartbeat", 1, request)


def beat(wire: Wire, member: str, epoch: int, **of: list[int]) -> Any:
    request = R(group_id="app", member_id=member, member_epoch=epoch)
    request.active_tasks, request.standby_tasks, request.warmup_tasks = tasks(**of), [], []
    return wire.ask("StreamsGroupHeartbeat", 1, request)


def described(wire: Wire) -> Any:
    return wire.ask("StreamsGroupDescribe", 1, m.StreamsGroupDescribeRequest(group_ids=["app"])).groups[0]


def members(group: Any) -> list[Any]:
    return sorted(group.members, key=lambda one: str(one.member_id))


def test_a_streams_group_goes_from_ottla_to_kafka_and_back(tmp_path: Path) -> None:
    with Broker(SETTINGS, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        create(wire, "in", 2)
        find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["app"])
        until(lambda: wire.ask("FindCoordinator", 4, find).coordinators[0].error_code == 0, "there is a coordinator")
        until(lambda: joins(wire, "m1").error_code == 0, "the coordinator answers")
        until(lambda: not joins(wire, "m1").status, "the internal topics are there")
        joins(wire, "m2", "static")
        epoch = beat(wire, "m1", described(wire).members[0].member_epoch, s0=[0, 1], s1=[0, 1]).member_epoch
        by_ottla = described(wire)
        assert (by_ottla.group_state, len(by_ottla.members)) == ("Reconciling", 2)
    with Kafka(SETTINGS, directory=tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        until(lambda: described(wire).error_code == 0, "Kafka has loaded the group")
        by_kafka = described(wire)
        assert members(by_kafka) == members(by_ottla)
        assert (by_kafka.group_state, by_kafka.group_epoch) == (by_ottla.group_state, by_ottla.group_epoch)
        released = {one.subtopology_id: one.partitions for one in members(by_kafka)[0].assignment.active_tasks}
        beat(wire, "m1", epoch, **{f"s{name}": of for name, of in released.items()})
        by_kafka = described(wire)
    with Broker(SETTINGS, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        until(lambda: described(wire).error_code == 0, "ottla has loaded the group")
        again = described(wire)
        assert members(again) == members(by_kafka)
        assert (again.group_state, again.assignment_epoch) == (by_kafka.group_state, by_kafka.assignment_epoch)
        found = [one for one in members(again) if one.member_id == "m1"]
        assert beat(wire, "m1", found[0].member_epoch).error_code == 0


PLUGIN = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
DESCRIBED: dict[str, object] = {**SETTINGS, "group.streams.topology.description.plugin.class": PLUGIN}


def push(wire: Wire) -> int:
    """What the topology looks like, with a node of each type and a global store."""
    u = m.StreamsGroupTopologyDescriptionUpdateRequest

    def node(name: str, kind: int, **more: Any) -> Any:
        return u.TopologyDescriptionNode(name=name, node_type=kind, **more)

    nodes = [
        node("in", 1, source_topics=["in"], successors=["count"]),
        node("count", 2, stores=["log"], successors=["mid"]),
        node("mid", 3, sink_topic="mid"),
    ]
    description = u.TopologyDescription(
        subtopologies=[u.TopologyDescriptionSubtopology(subtopology_id="0", nodes=nodes)],
        global_stores=[u.TopologyDescriptionGlobalStore(source=node("all", 1), processor=node("keep", 2))],
    )
    request = u(group_id="app", member_id="m1", topology_description=description)
    return int(wire.ask("StreamsGroupTopologyDescriptionUpdate", 0, request).error_code)


def asked(wire: Wire) -> bool:
    """Whether a heartbeat asks for a description."""
    reply = beat(wire, "m1", described(wire).members[0].member_epoch)
    assert reply.error_code == 0, reply
    return bool(reply.topology_description_required)


def status(wire: Wire) -> int:
    request = m.StreamsGroupDescribeRequest(group_ids=["app"], include_topology_description=True)
    return int(wire.ask("StreamsGroupDescribe", 1, request).groups[0].topology_description_status)


def test_descriptions_are_forgotten_with_the_process_by_both(tmp_path: Path) -> None:
    """The group's record still says that one is stored, whoever wrote it, so no member is asked for another one. Java's
    Admin reads the same description of both.
    """
    admin = program("broker", "DescribedTopologies", tmp_path / "classes")
    said = []

    def seen(servers: str) -> None:
        done = subprocess.run([*admin, servers, "app"], capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        said.append(done.stdout.splitlines())

    with Broker(DESCRIBED, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        create(wire, "in", 2)
        find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["app"])
        until(lambda: wire.ask("FindCoordinator", 4, find).coordinators[0].error_code == 0, "there is a coordinator")
        until(lambda: joins(wire, "m1").error_code == 0, "the coordinator answers")
        assert push(wire) == 0
        assert not asked(wire)
        assert status(wire) == 3
        seen(broker.bootstrap_servers)
    (tmp_path / "data" / "ottla.json").unlink()
    with Kafka(DESCRIBED, directory=tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        until(lambda: described(wire).error_code == 0, "Kafka has loaded the group")
        assert status(wire) == 1
        assert not asked(wire)
        assert push(wire) == 0
        assert status(wire) == 3
        seen(kafka.bootstrap_servers)
    with Broker(DESCRIBED, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        until(lambda: described(wire).error_code == 0, "ottla has loaded the group")
        assert status(wire) == 1
        assert not asked(wire)
        assert push(wire) == 0
        assert status(wire) == 3
    assert said[0] == said[1]
    assert [line.split()[:2] for line in said[0]] == [["app", "AVAILABLE"], ["app", "NOT_REQUESTED"]]
    assert "keep" in said[0][0]
