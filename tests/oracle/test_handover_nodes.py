"""Three nodes of ottla become three of Apache Kafka, whose replicas stay where they are, and come back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.storage.checkpoints import decode_offsets

from ottla.lab_cluster import Cluster

from ..support.ask import fetch, fetch_message, produce, values
from ..support.poll import until
from ..support.ports import free_run
from ..support.wire import Wire
from .cluster import HandedOver

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
PLACED = [1, 2], [2, 3], [3, 1]
KAFKAS = """controlled.shutdown.enable=false
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
offsets.topic.num.partitions=1
"""


def create(servers: str) -> None:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name="t", num_partitions=-1, replication_factor=-1)
    topic.assignments = [
        r.CreatableReplicaAssignment(partition_index=index, broker_ids=nodes) for index, nodes in enumerate(PLACED)
    ]
    with Wire(servers) as wire:
        assert not wire.ask("CreateTopics", 7, r(topics=[topic], timeout_ms=30_000)).topics[0].error_code


def settled(servers: str, gone: tuple[int, ...] = ()) -> tuple[dict[int, str], Any]:
    """The leaders' addresses by partition, and its partitions, when all replicas are in sync but those of nodes that
    are gone.
    """

    def found() -> Any:
        with Wire(servers) as wire:
            reply = wire.ask("Metadata", 12, m.MetadataRequest(topics=None))
        nodes = {one.node_id: f"{one.host}:{one.port}" for one in reply.brokers}
        (parts,) = (one.partitions for one in reply.topics if one.name == "t")
        for one in parts:
            there = [node for node in one.replica_nodes if node not in gone]
            if sorted(one.isr_nodes) != sorted(there) or one.leader_id not in nodes:
                return None
        return {one.partition_index: nodes[one.leader_id] for one in parts}, parts

    leaders, parts = until(found, "all replicas are in sync", every=0.1)
    return leaders, parts


def append(servers: str, value: bytes, gone: tuple[int, ...] = ()) -> dict[int, list[int]]:
    """Writes to each partition; returns the nodes of their replicas."""
    leaders, parts = settled(servers, gone)
    for index, address in leaders.items():

        def is_written(index: int = index, address: str = address) -> bool:
            """A leader that one node tells of may not have heard yet that it is."""
            with Wire(address) as wire:
                code: int = produce(wire, "t", value, partition=index).error_code
            assert code in (0, Errors.NOT_LEADER_OR_FOLLOWER)
            return code == 0

        until(is_written, "the leader takes the record", every=0.1)
    return {one.partition_index: list(one.replica_nodes) for one in parts}


def records(servers: str) -> list[list[bytes | None]]:
    found = []
    for index, address in sorted(settled(servers)[0].items()):
        with Wire(address) as wire:
            found.append(fetch(wire, "t", partition=index))
    return found


def run(*arguments: object) -> None:
    command = [sys.executable, "-m", "ottla", *map(str, arguments)]
    made = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert (made.returncode, made.stderr) == (0, b"")


def own_records(address: str, partition: int) -> list[bytes | None]:
    """The records of a replica, as far as the node at this address knows that they are committed."""
    with Wire(address) as wire:
        reply = wire.ask("Fetch", 11, fetch_message("t", 0, partition))
        found = reply.responses[0].partitions[0]
        return values(found.records) if found.error_code == 0 else []


def commit(servers: str, offset: int) -> None:
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = r(group_id="g", generation_id_or_member_epoch=-1)
    request.topics = [r.OffsetCommitRequestTopic(name="t", partitions=[part])]

    def is_committed() -> bool:
        with Wire(coordinator(servers)) as wire:
            code: int = wire.ask("OffsetCommit", 8, request).topics[0].partitions[0].error_code
            return code == 0

    until(is_committed, "the offset is committed", every=0.1)


def committed(servers: str) -> int:
    r = m.OffsetFetchRequest
    group = r.OffsetFetchRequestGroup(group_id="g")
    group.topics = [r.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]

    def found() -> int:
        with Wire(coordinator(servers)) as wire:
            reply = wire.ask("OffsetFetch", 8, r(groups=[group])).groups[0]
            return 0 if reply.error_code else int(reply.topics[0].partitions[0].committed_offset)

    return int(until(found, "the group is loaded", every=0.1))


def coordinator(servers: str) -> str:
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])

    def found() -> str:
        with Wire(servers) as wire:
            (one,) = wire.ask("FindCoordinator", 4, find).coordinators
            return "" if one.error_code else f"{one.host}:{one.port}"

    return str(until(found, "there is a coordinator", every=0.1))


def high_watermarks(home: Path) -> dict[int, int]:
    """Of the partitions of `t` that a node has."""
    found = decode_offsets((home / "replication-offset-checkpoint").read_bytes())
    return {index: offset for (topic, index), offset in found.items() if topic == "t"}


def test_replicas_stay_with_their_nodes_in_kafka_and_back_in_ottla(tmp_path: Path) -> None:
    """Node 3 of ottla has stopped before the last record, and Kafka brings it up to date. Then Kafka's node 1 is
    killed, and misses some, before the others stop.
    """
    port = free_run(6)
    servers = f"127.0.0.1:{port}"
    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{port}", "offsets.topic.num.partitions": 1}
    with Cluster(3, settings, directory=tmp_path / "before") as cluster:
        create(servers)
        append(servers, b"0")
        commit(servers, 1)
        cluster.node(3).stop()
        append(servers, b"1", gone=(3,))
    file, out = tmp_path / "ottla.properties", tmp_path / "kafka"
    file.write_text(KAFKAS)
    run("handover", tmp_path / "before/data", "--to", out, "-c", file, "--controller-port", port + 3)
    homes = {node: out / f"node-{node}" / "data" for node in (1, 2, 3)}
    found = {node: high_watermarks(home) for node, home in homes.items()}
    assert found == {1: {0: 2, 2: 2}, 2: {0: 2, 1: 2}, 3: {1: 1, 2: 1}}
    with HandedOver(out) as kafka:
        assert records(servers) == [[b"0", b"1"]] * 3
        for index in (1, 2):
            until(lambda i=index: own_records(kafka.address(3), i) == [b"0", b"1"], "node 3 has all")  # type: ignore[misc]
        assert committed(servers) == 1
        kafka.kill(1)
        others = kafka.address(2)
        assert append(others, b"2", gone=(1,)) == dict(enumerate(PLACED))
        commit(others, 3)
        kafka.stop()
    run("takeover", *homes.values(), "--nodes", 3, "--to", tmp_path / "after/data")
    with Cluster(3, settings, directory=tmp_path / "after"):
        assert records(servers) == [[b"0", b"1", b"2"]] * 3
        assert append(servers, b"3") == dict(enumerate(PLACED))
        for index in (0, 2):
            assert own_records(servers, index) == [b"0", b"1", b"2", b"3"], "node 1 had missed some"
        assert committed(servers) == 3
