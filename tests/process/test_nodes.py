"""Nodes over sockets: the command `ottla node`, closed and silent connections, restarts."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from ottla.protocol import messages as m

from ottla.cli import main
from ottla.testing import Broker

from ..support.ports import free_ports
from ..support.wire import Closed, Wire

pytestmark = pytest.mark.long

SMALL = {"offsets.topic.num.partitions": 3, "broker.session.timeout.ms": 500, "broker.heartbeat.interval.ms": 100}


@pytest.fixture
def cluster() -> Iterator[Broker]:
    with Broker({"ottla.nodes": 3, **SMALL}) as running:
        yield running


def node(cluster: Broker, *arguments: str) -> list[dict[str, object]]:
    done = CliRunner().invoke(main, ["node", *arguments, "--lab", cluster.lab_url, "--json"])
    assert done.exit_code == 0, done.output
    nodes: list[dict[str, object]] = json.loads(done.stdout)["nodes"]
    return nodes


def names(address: str) -> list[int]:
    with Wire(address) as wire:
        return [one.node_id for one in wire.ask("Metadata", 12, m.MetadataRequest(topics=[])).brokers]


def test_a_stopped_node_closes_its_connections_and_its_port(cluster: Broker) -> None:
    first, second, third = cluster.bootstrap_servers.split(",")
    with Wire(second) as wire:
        assert node(cluster, "stop", "2")[1]["state"] == "stopped"
        with pytest.raises(Closed):
            wire.ask("ApiVersions", 3, m.ApiVersionsRequest())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(second.rpartition(":")[2])))
    assert names(first) == names(third) == [1, 3]
    assert [one["fenced"] for one in node(cluster, "start", "2")] == [False, False, False]
    assert names(second) == [1, 2, 3]


def test_a_paused_node_answers_when_it_goes_on(cluster: Broker) -> None:
    second = cluster.bootstrap_servers.split(",")[1]
    with Wire(second, timeout=0.3) as open_before:
        assert node(cluster, "pause", "2")[1]["state"] == "paused"
        with pytest.raises(TimeoutError):
            open_before.ask("ApiVersions", 3, m.ApiVersionsRequest())
        late = socket.create_connection(("127.0.0.1", int(second.rpartition(":")[2])), timeout=0.3)
        late.sendall(bytes.fromhex("0000000e 0012 0000 00000001 0004") + b"ping")
        with pytest.raises(TimeoutError):
            late.recv(1)
        assert node(cluster, "resume", "2")[1]["state"] == "running"
        late.settimeout(60)
        assert late.recv(8)[4:] == b"\0\0\0\1"
        late.close()


def test_what_is_not_possible_says_so(cluster: Broker) -> None:
    for arguments, words in ((["start", "2"], "node 2 is running"), (["stop", "7"], "there is no node 7")):
        done = CliRunner().invoke(main, ["node", *arguments, "--lab", cluster.lab_url])
        assert (done.exit_code, words in done.stderr) == (1, True), done.output


def test_the_nodes_have_consecutive_ports() -> None:
    (port,) = free_ports(1)
    with Broker({"ottla.nodes": 2, "listeners": f"PLAINTEXT://127.0.0.1:{port}"}) as running:
        assert running.bootstrap_servers == f"127.0.0.1:{port},127.0.0.1:{port + 1}"
        lines = CliRunner().invoke(main, ["node", "list", "--lab", running.lab_url]).stdout.splitlines()
        columns = [
            "node",
            "rack",
            "state",
            "held",
            "cut",
            "side",
            "drained",
            "fenced",
            "leads",
            "in_sync",
            "replicas",
            "listeners",
        ]
        assert lines[0].split() == columns
        assert lines[2].split()[-1] == f"PLAINTEXT://127.0.0.1:{port + 1}"


def test_nodes_are_added_and_removed_while_clients_run(cluster: Broker) -> None:
    first, second, _ = cluster.bootstrap_servers.split(",")
    with Wire(first) as wire:
        added = node(cluster, "add")[3]
        assert (added["node"], added["state"], added["fenced"]) == (4, "running", False)
        r = m.CreateTopicsRequest
        topic = r.CreatableTopic(name="new", num_partitions=-1, replication_factor=-1)
        topic.assignments = [r.CreatableReplicaAssignment(partition_index=0, broker_ids=[4, 2])]
        assert wire.ask("CreateTopics", 7, r(topics=[topic], timeout_ms=30_000)).topics[0].error_code == 0
        known = {one.node_id: one for one in wire.ask("Metadata", 12, m.MetadataRequest(topics=[])).brokers}
        with Wire(f"{known[4].host}:{known[4].port}") as fourth:
            wanted = m.MetadataRequest.MetadataRequestTopic(name="new")
            found = fourth.ask("Metadata", 12, m.MetadataRequest(topics=[wanted])).topics[0].partitions[0]
            assert (found.leader_id, list(found.isr_nodes)) == (4, [4, 2])
            assert [one["node"] for one in node(cluster, "remove", "4")] == [1, 2, 3]
            with pytest.raises(Closed):
                fourth.ask("ApiVersions", 3, m.ApiVersionsRequest())
    assert names(second) == [1, 2, 3]
    shown = run(cluster, "partition", "show", "new:0")
    assert isinstance(shown, dict)
    assert (shown["leader"], shown["isr"]) == (2, [2])
    assert node(cluster, "add")[3]["node"] == 5, "an id is not used twice"
    refused = CliRunner().invoke(main, ["node", "remove", "1", "--lab", cluster.lab_url])
    assert (refused.exit_code, "node 1 is the first one" in refused.stderr) == (1, True)


def test_the_network_is_parted_by_commands(cluster: Broker) -> None:
    parted = node(cluster, "part", "1", "2,3")
    assert [(one["side"], one["cut"]) for one in parted] == [(0, False), (1, True), (1, True)]
    assert [(one["side"], one["cut"]) for one in node(cluster, "join")] == [(0, False)] * 3
    for arguments, code, words in (
        (["part", "1", "2"], 1, "each node must be on one of two or more sides; node 3 is on 0"),
        (["part", "1,2,3"], 1, "sides"),
        (["part", "1", "2,3,4"], 1, "there is no node 4"),
        (["part", "1", "2 3"], 2, "'2 3' is no list of nodes, such as 1,2"),
        (["join"], 1, "all nodes reach each other"),
        (["fail", "1", "/nowhere"], 1, "there is no log directory /nowhere"),
    ):
        done = CliRunner().invoke(main, ["node", *arguments, "--lab", cluster.lab_url])
        assert (done.exit_code, words in done.stderr) == (code, True), done.output


def run(cluster: Broker, *arguments: str) -> object:
    done = CliRunner().invoke(main, [*arguments, "--lab", cluster.lab_url, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_partitions_and_the_cluster_are_shown_and_changed_by_commands(cluster: Broker) -> None:
    with Wire(cluster.bootstrap_servers.split(",")[0]) as wire:
        r = m.CreateTopicsRequest
        topic = r.CreatableTopic(name="orders", num_partitions=-1, replication_factor=-1)
        topic.assignments = [r.CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2, 3])]
        assert wire.ask("CreateTopics", 7, r(topics=[topic], timeout_ms=30_000)).topics[0].error_code == 0
    moved = run(cluster, "partition", "move", "orders:0", "--node", "3")
    assert isinstance(moved, dict)
    assert moved["leader"] == 3
    assert run(cluster, "partition", "show", "orders:0") == moved
    lines = CliRunner().invoke(main, ["partition", "list", "orders", "--lab", cluster.lab_url]).stdout.splitlines()
    assert lines[1].split()[:2] == ["orders:0", "3"]
    shrunken = run(cluster, "partition", "shrink", "orders:0", "--node", "2")
    assert isinstance(shrunken, dict)
    assert shrunken["isr"] == [1, 3]
    assert "2 of 3 replicas are in sync" in shrunken["problems"]
    glance = CliRunner().invoke(main, ["cluster", "--lab", cluster.lab_url]).stdout
    assert "partitions with a problem: 1" in glance
    run(cluster, "release", "orders", "--node", "2")
    run(cluster, "partition", "elect", "orders:0")
    assert run(cluster, "partition", "losses") == {"records": 0, "committed_records": 0, "losses": []}
    refused = CliRunner().invoke(main, ["partition", "elect", "orders:0", "--lab", cluster.lab_url])
    assert refused.exit_code == 1
    wrong = CliRunner().invoke(main, ["partition", "show", "orders", "--lab", cluster.lab_url])
    assert "is not TOPIC:PARTITION" in wrong.output
