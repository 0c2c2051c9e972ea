"""ottla goes on with what three brokers of Apache Kafka had: from all of their directories, or from one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.ask import fetch, produce
from ..support.poll import until
from ..support.wire import Wire
from .cluster import KafkaCluster

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
TOPICS = {"all": [1, 2, 3], "second": [2]}


def create_topics(wire: Wire) -> None:
    r = m.CreateTopicsRequest
    topics = [
        r.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[r.CreatableReplicaAssignment(partition_index=0, broker_ids=nodes)],
            configs=[r.CreatableTopicConfig(name="retention.ms", value="900000000")],
        )
        for name, nodes in TOPICS.items()
    ]
    request = r(topics=topics, timeout_ms=30_000)
    until(lambda: not any(one.error_code for one in wire.ask("CreateTopics", 7, request).topics), "there are topics")


def append(cluster: KafkaCluster, name: str, value: bytes) -> None:
    with Wire(cluster.address(TOPICS[name][0])) as wire:
        until(lambda: produce(wire, name, value).error_code == 0, f"{value!r} is written to {name}")


@pytest.fixture(scope="module")
def directories() -> Iterator[dict[int, Path]]:
    """The log directories of three brokers that stopped one after another, while records came."""
    with KafkaCluster({"auto.leader.rebalance.enable": "false"}, own_processes=()) as cluster:
        with Wire(cluster.address(1)) as wire:
            create_topics(wire)
        for name in TOPICS:
            append(cluster, name, b"by three")
        for node in (3, 2):
            cluster.happens("stop", node)
            append(cluster, "all", b"without %d" % node)
        cluster.happens("stop", 1)
        yield {node: part.data_directory for node, part in cluster.parts.items()}


def taken_over(to: Path, *directories: Path, nodes: int = 1) -> tuple[int, Any]:
    command = [sys.executable, "-m", "ottla", "takeover", *directories, "--to", to / "data", "--nodes", nodes, "--json"]
    made = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, check=False)
    assert made.stderr == ""
    return made.returncode, json.loads(made.stdout)


def partition(broker: Broker, name: str) -> Any:
    with Wire(broker.bootstrap_servers.split(",")[0]) as wire:
        reply = wire.ask("Metadata", 12, m.MetadataRequest(topics=None))
    (found,) = (one.partitions[0] for one in reply.topics if one.name == name)
    return found


def test_all_directories_have_everything(directories: dict[int, Path], tmp_path: Path) -> None:
    code, report = taken_over(tmp_path, *directories.values(), nodes=3)
    assert (code, report["lost"], report["was_clean"], report["placement"]) == (0, [], True, "as they were")
    with Broker({"ottla.nodes": 3}, directory=tmp_path) as broker:
        addresses = broker.bootstrap_servers.split(",")
        for name, values in (("all", [b"by three", b"without 3", b"without 2"]), ("second", [b"by three"])):
            found = partition(broker, name)
            assert (sorted(found.replica_nodes), sorted(found.isr_nodes)) == (TOPICS[name], TOPICS[name])
            with Wire(addresses[found.leader_id - 1]) as wire:
                assert fetch(wire, name) == values
                assert produce(wire, name, b"by ottla").error_code == 0


def test_one_directory_serves_what_it_has_and_says_what_it_has_not(
    directories: dict[int, Path], tmp_path: Path
) -> None:
    code, report = taken_over(tmp_path, directories[3])
    assert code == 1
    assert [one.partition(":")[0] for one in report["lost"]] == ["second-0", "all-0"]
    assert report["lost"][0] == "second-0: its replicas are on nodes 2"
    known = "all-0: what only the replicas in sync have, which are on nodes 1, 2"
    assert report["lost"][1] == known, "as when this node stopped: its copy of the metadata ends there"
    with Broker({"node.id": 3}, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert fetch(wire, "all") == [b"by three"], "the replica that was behind"
        assert partition(broker, "second").leader_id == -1
        assert produce(wire, "all", b"by ottla").error_code == 0


def test_ottla_does_not_serve_a_broker_of_a_cluster_as_it_is(directories: dict[int, Path]) -> None:
    command = [
        sys.executable,
        "-m",
        "ottla",
        "serve",
        f"log.dirs={directories[2]}",
        "listeners=PLAINTEXT://127.0.0.1:0",
    ]
    made = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert made.returncode == 5
    assert "belongs to node 2, but node.id is 1" in made.stderr
