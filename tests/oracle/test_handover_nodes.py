"""Three nodes of ottla become three of Apache Kafka, whose replicas stay where they are, and come back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.ask import fetch, produce
from ..support.poll import until
from ..support.ports import free_run
from ..support.wire import Wire
from .cluster import HandedOver

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
PARTITIONS = range(3)


def create(servers: str) -> None:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name="t", num_partitions=len(PARTITIONS), replication_factor=2)
    with Wire(servers) as wire:
        assert not wire.ask("CreateTopics", 7, r(topics=[topic], timeout_ms=30_000)).topics[0].error_code


def settled(servers: str) -> tuple[dict[int, str], Any]:
    """The leaders' addresses by partition, and its partitions, when all replicas are in sync."""

    def found() -> Any:
        with Wire(servers) as wire:
            reply = wire.ask("Metadata", 12, m.MetadataRequest(topics=None))
        nodes = {one.node_id: f"{one.host}:{one.port}" for one in reply.brokers}
        (parts,) = (one.partitions for one in reply.topics if one.name == "t")
        if not all(len(one.isr_nodes) == 2 and one.leader_id in nodes for one in parts):
            return None
        return {one.partition_index: nodes[one.leader_id] for one in parts}, parts

    leaders, parts = until(found, "all replicas are in sync", every=0.1)
    return leaders, parts


def append(servers: str, value: bytes) -> dict[int, list[int]]:
    """Writes to each partition; returns the nodes of their replicas."""
    leaders, parts = settled(servers)
    for index, address in leaders.items():
        with Wire(address) as wire:
            assert produce(wire, "t", value, partition=index).error_code == 0
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


def test_replicas_stay_with_their_nodes_in_kafka_and_back_in_ottla(tmp_path: Path) -> None:
    port = free_run(6)
    servers, settings = f"127.0.0.1:{port}", {"ottla.nodes": 3, "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    with Broker(settings, directory=tmp_path / "before"):
        create(servers)
        replicas = append(servers, b"by ottla")
    file, out = tmp_path / "ottla.properties", tmp_path / "kafka"
    file.write_text("controlled.shutdown.enable=false\n")
    run("handover", tmp_path / "before/data", "--to", out, "-c", file, "--controller-port", port + 3)
    with HandedOver(out) as kafka:
        assert records(servers) == [[b"by ottla"]] * 3
        assert append(servers, b"by Kafka") == replicas
        kafka.stop()
    homes = [out / f"node-{node}" / "data" for node in (1, 2, 3)]
    run("takeover", *homes, "--nodes", 3, "--to", tmp_path / "after/data")
    with Broker(settings, directory=tmp_path / "after"):
        assert records(servers) == [[b"by ottla", b"by Kafka"]] * 3
        assert append(servers, b"again") == replicas
