"""`ottla handover` and `ottla takeover`: what they make, say and refuse. What Kafka does with it is in tests/oracle."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import javaproperties
import pytest
from ottla.protocol import messages as m
from ottla.storage.checkpoints import decode_offsets, decode_properties

from ottla.handover.source import opened
from ottla.lab_cluster import Cluster
from ottla.testing import Broker

from ..support.ask import create, fetch, produce
from ..support.poll import until
from ..support.wire import Wire

pytestmark = pytest.mark.long

PARTITIONS = 6
AUTHORIZER = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ottla", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )


def contents(directory: Path) -> dict[str, str]:
    """A digest of each file, by its path."""
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in directory.rglob("*") if p.is_file()}


def records(broker: Broker, partitions: range = range(PARTITIONS)) -> list[list[bytes | None]]:
    found = []
    for index in partitions:
        for address in broker.bootstrap_servers.split(","):
            with Wire(address) as wire:
                if leads(wire, index, address):
                    found.append(fetch(wire, "orders", partition=index))
    return found


def leads(wire: Wire, index: int, address: str) -> bool:
    """Whether the node at this address leads a partition."""
    r = m.MetadataRequest
    reply = wire.ask("Metadata", 12, r(topics=[r.MetadataRequestTopic(name="orders")]))
    (part,) = (one for one in reply.topics[0].partitions if one.partition_index == index)
    ports = {one.node_id: one.port for one in reply.brokers}
    return ports.get(part.leader_id) == int(address.rpartition(":")[2])


def commit(wire: Wire, offset: int) -> int:
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = r.OffsetCommitRequestTopic(name="orders", partitions=[part])
    request = r(group_id="g", generation_id_or_member_epoch=-1, topics=[topic])
    code: int = wire.ask("OffsetCommit", 8, request).topics[0].partitions[0].error_code
    return code


def committed(wire: Wire) -> int:
    r = m.OffsetFetchRequest
    asked = r.OffsetFetchRequestGroup(
        group_id="g", topics=[r.OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
    )
    found = wire.ask("OffsetFetch", 8, r(groups=[asked])).groups[0]
    return int(found.topics[0].partitions[0].committed_offset) if found.error_code == 0 else -1


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of an ottla with one node, that has stopped."""
    directory = tmp_path_factory.mktemp("filled")
    broker = Broker({"offsets.topic.num.partitions": 3}, directory=directory)
    with broker, Wire(broker.bootstrap_servers) as wire:
        create(wire, "orders", PARTITIONS, retention_ms="900000000")
        for n in range(30):
            assert produce(wire, "orders", b"%d" % n, partition=n % PARTITIONS).error_code == 0
        find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        until(lambda: not wire.ask("FindCoordinator", 4, find).coordinators[0].error_code, "there is a coordinator")
        until(lambda: commit(wire, 4) == 0, "the offset is committed")
    return directory / "data"


def test_one_node_becomes_three_and_comes_back(filled: Path, tmp_path: Path) -> None:
    before = contents(filled)
    made = run("handover", filled, "--to", tmp_path / "kafka", "--nodes", 3, "--replication-factor", 2)
    assert (made.returncode, made.stderr) == (0, "")
    assert contents(filled) == before, "the source stays as it was"
    assert "orders" not in made.stdout, "nothing is lost"
    homes = [tmp_path / "kafka" / f"node-{n}" / "data" for n in (1, 2, 3)]
    assert [decode_properties((one / "meta.properties").read_bytes())["node.id"] for one in homes] == ["1", "2", "3"]
    held = [{p.name for p in one.glob("orders-*")} for one in homes]
    assert sum(map(len, held)) == 2 * PARTITIONS
    for one in homes:
        ends = decode_offsets((one / "recovery-point-offset-checkpoint").read_bytes())
        assert {topic for topic, _ in ends} == {"orders", "__consumer_offsets"}
        assert all(end == 5 for (topic, _), end in ends.items() if topic == "orders")
        assert not list(one.rglob("ottla.json")) + list(one.rglob("flushed-offset"))
    back = run("takeover", *homes, "--to", tmp_path / "data", "--nodes", 3)
    assert (back.returncode, back.stderr) == (0, "")
    with Broker({"ottla.nodes": 3}, directory=tmp_path) as broker, Wire(broker.bootstrap_servers.split(",")[0]) as wire:
        topic = wire.ask("Metadata", 12, m.MetadataRequest(topics=None)).topics
        parts = next(one.partitions for one in topic if one.name == "orders")
        assert all(len(one.replica_nodes) == len(one.isr_nodes) == 2 for one in parts)
        assert records(broker) == [[b"%d" % n for n in range(i, 30, PARTITIONS)] for i in range(PARTITIONS)]


def test_one_directory_alone_is_served_and_the_rest_is_told(filled: Path, tmp_path: Path) -> None:
    assert run("handover", filled, "--to", tmp_path / "kafka", "--nodes", 3).returncode == 0
    alone = tmp_path / "kafka" / "node-2" / "data"
    held = sorted(int(p.name.rpartition("-")[2]) for p in alone.glob("orders-*"))
    assert 0 < len(held) < PARTITIONS
    made = run("takeover", alone, "--to", tmp_path / "data", "--json")
    report = json.loads(made.stdout)
    absent = [f"orders-{n}" for n in range(PARTITIONS) if n not in held]
    assert made.returncode == 1
    assert [one.partition(":")[0] for one in report["lost"]] == absent
    with Broker({"node.id": 2}, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        parts = next(
            one.partitions
            for one in wire.ask("Metadata", 12, m.MetadataRequest(topics=None)).topics
            if one.name == "orders"
        )
        assert {one.partition_index: one.leader_id for one in parts} == {
            n: 2 if n in held else -1 for n in range(PARTITIONS)
        }
        assert fetch(wire, "orders", partition=held[0]) == [b"%d" % n for n in range(held[0], 30, PARTITIONS)]
        until(lambda: committed(wire) == 4, "every node had the group's offsets")


def test_the_configuration_goes_into_the_nodes_properties(filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "ottla.properties"
    lines = ["log.retention.hours=7", "ottla.lab.port=0", "log.dirs=/elsewhere", "super.users=User:admin", AUTHORIZER]
    file.write_text("\n".join(lines))
    out = tmp_path / "kafka"
    made = run("handover", filled, "--to", out, "-c", file, "--nodes", 2, "--host", "a", "--host", "b", "--json")
    report = json.loads(made.stdout)
    assert "ottla.lab.port, which Kafka does not know" in report["left_out"]
    assert any("no node starts without User:ANONYMOUS in super.users" in one for one in report["notes"])
    first, second = (decode_properties((out / f"node-{n}" / "server.properties").read_bytes()) for n in (1, 2))
    assert (first["log.retention.hours"], first["super.users"]) == ("7", "User:admin")
    assert "ottla.lab.port" not in first
    assert first["log.dirs"] == str(out / "node-1" / "data")
    port = first["advertised.listeners"].rpartition(":")[2]
    assert first["advertised.listeners"] == f"PLAINTEXT://a:{port}"
    assert second["advertised.listeners"] == f"PLAINTEXT://b:{port}", "another host, the same port"
    assert first["controller.quorum.bootstrap.servers"] == "a:9093,b:9093"


def test_java_reads_the_nodes_properties_as_they_are_meant(filled: Path, tmp_path: Path) -> None:
    """It takes their bytes for Latin-1, and blanks before a value for none of it."""
    given, out = tmp_path / "ottla.properties", tmp_path / "größe 😀"
    given.write_text(r"super.users=\ User:J\u00fcrgen\\,O=x")
    assert run("handover", filled, "--to", out, "-c", given, "--host", "a").returncode == 0
    with (out / "node-1" / "server.properties").open("rb") as file:
        read = javaproperties.load(file)
    assert read["log.dirs"] == str(out / "node-1" / "data")
    assert read["super.users"] == " User:Jürgen\\,O=x"


def test_addresses_of_ipv6_are_in_brackets(filled: Path, tmp_path: Path) -> None:
    made = run("handover", filled, "--to", tmp_path / "kafka", "--host", "::1", "--json")
    (node,) = json.loads(made.stdout)["nodes"]
    written = decode_properties((tmp_path / "kafka" / "node-1" / "server.properties").read_bytes())
    assert ",".join(node["listeners"]) == written["advertised.listeners"]
    assert node["controller"] == written["controller.quorum.bootstrap.servers"] == "[::1]:9093"


def test_each_replica_has_the_log_up_to_its_own_end(tmp_path: Path) -> None:
    """Node 3 stopped after the first record."""
    cluster = Cluster(nodes=3, directory=tmp_path)
    with cluster, Wire(cluster.node(1).address) as wire:
        r = m.CreateTopicsRequest
        placed = r.CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2, 3])
        topic = r.CreatableTopic(name="orders", num_partitions=-1, replication_factor=-1, assignments=[placed])
        assert wire.ask("CreateTopics", 7, r(topics=[topic], timeout_ms=30_000)).topics[0].error_code == 0
        assert produce(wire, "orders", b"0").error_code == 0
        cluster.node(3).stop()
        assert produce(wire, "orders", b"1").error_code == 0
    made = run("handover", tmp_path / "data", "--to", tmp_path / "kafka", "--json")
    report = json.loads(made.stdout)
    assert (made.returncode, report["placement"]) == (0, "as they were")
    assert report["notes"][-1] == "1 replicas are out of sync or behind, and stay where they were: they catch up"
    ends = []
    for node in (1, 2, 3):
        home = tmp_path / "kafka" / f"node-{node}" / "data"
        names = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")
        ends.append(tuple(decode_offsets((home / name).read_bytes())["orders", 0] for name in names))
        with opened((str(home),)) as target:
            (state,) = target.image.partitions.values()
            assert (state.isr, state.leader) == ((1, 2), -1)
    assert ends == [(2, 2), (2, 2), (1, 1)]


def test_a_plan_makes_nothing(filled: Path, tmp_path: Path) -> None:
    made = run("handover", filled, "--to", tmp_path / "kafka", "--nodes", 3, "--dry-run", "--json")
    report: dict[str, Any] = json.loads(made.stdout)
    assert (made.returncode, report["made"], report["was_clean"], report["lost"]) == (0, False, True, [])
    assert report["found"]["topics"] == 2
    assert [one["node"] for one in report["nodes"]] == [1, 2, 3]
    assert report["placement"].startswith("placed again")
    assert not (tmp_path / "kafka").exists()
    kept = json.loads(run("handover", filled, "--to", tmp_path / "kafka", "--dry-run", "--json").stdout)
    assert (len(kept["nodes"]), kept["placement"]) == (1, "as they were")


def test_what_a_crash_left_is_cut_off_in_the_copy(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker:
        with Wire(broker.bootstrap_servers) as wire:
            create(wire, "orders")
            for n in range(5):
                produce(wire, "orders", b"%d" % n)
        broker.kill()
    log = tmp_path / "data" / "orders-0" / "00000000000000000000.log"
    log.write_bytes(log.read_bytes()[:-1] + b"?")  # only the CRC of the last batch shows that
    before = contents(tmp_path / "data")
    made = run("handover", tmp_path / "data", "--to", tmp_path / "kafka", "--json")
    report = json.loads(made.stdout)
    assert (made.returncode, report["was_clean"]) == (1, False)
    assert report["lost"] == [f"orders-0: {log.stat().st_size // 5} bytes from offset 4 on"]
    assert contents(tmp_path / "data") == before
    assert run("takeover", tmp_path / "kafka/node-1/data", "--to", tmp_path / "again/data").returncode == 0
    with Broker(directory=tmp_path / "again") as broker, Wire(broker.bootstrap_servers) as wire:
        assert fetch(wire, "orders") == [b"%d" % n for n in range(4)]


def test_refusals_name_what_is_wrong(filled: Path, tmp_path: Path) -> None:
    full, out = tmp_path / "full", tmp_path / "out"
    full.mkdir()
    (full / "file").touch()
    copy = tmp_path / "copy"
    shutil.copytree(filled, copy)

    def refused(*arguments: object) -> tuple[int, str]:
        made = run(*arguments)
        assert not out.exists()
        return made.returncode, made.stderr

    assert refused("handover", filled, "--to", full) == (2, f"ottla: {full} is not an empty directory\n")
    inside = filled / "out"
    assert refused("handover", filled, "--to", inside) == (2, f"ottla: {inside} is in {filled}\n")
    assert refused("handover", full, "--to", out)[0] == 5
    node = tmp_path / "node-1"
    shutil.copytree(filled, node / "data")  # as in the directories that a handover makes
    code, words = refused("takeover", node, "--to", out)
    assert (code, words.strip().endswith(f"is missing; name {node / 'data'}")) == (5, True)
    code, words = refused("handover", filled, copy, "--to", out)
    assert (code, "the same directory.id" in words) == (2, True)
    code, words = refused("handover", filled, "--to", out, "--nodes", 2, "--replication-factor", 3)
    assert (code, words) == (2, "ottla: 3 replicas need as many nodes; there are 2\n")
    assert refused("handover", filled, "--to", out, "--nodes", 2, "--host", "a")[0] == 2
    log = copy / "orders-5/00000000000000000000.log"
    log.write_bytes(log.read_bytes()[:-5])
    code, words = refused("handover", copy, "--to", out)
    assert (code, "orders-5" in words, "offset 5 was committed" in words) == (5, True, True)
    shutil.rmtree(copy / "orders-3")
    code, words = refused("handover", copy, "--to", out)
    assert (code, "orders-3" in words) == (5, True)
    snapshot = next((copy / "__cluster_metadata-0").glob("*.log"))
    snapshot.write_bytes(snapshot.read_bytes()[:-30])
    code, words = refused("handover", copy, "--to", out)
    assert (code, "__cluster_metadata-0" in words) == (5, True)


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker:
        made = run("handover", broker.data_directory, "--to", tmp_path / "out")
    assert made.returncode == 4
    assert made.stderr == f"ottla: {tmp_path / 'data'} is in use by another process; stop it first\n"


def test_all_log_directories_have_to_be_named(tmp_path: Path) -> None:
    both = tmp_path / "first", tmp_path / "second"
    with Broker({"log.dirs": ",".join(map(str, both))}) as broker, Wire(broker.bootstrap_servers) as wire:
        create(wire, "orders", PARTITIONS)
        for index in range(PARTITIONS):
            produce(wire, "orders", b"%d" % index, partition=index)
    assert all(list(one.glob("orders-*")) for one in both)
    made = run("handover", both[0], "--to", tmp_path / "out")
    assert (made.returncode, "name all of log.dirs" in made.stderr) == (5, True)
    assert run("handover", *both, "--to", tmp_path / "out").returncode == 0
    assert len(list((tmp_path / "out/node-1/data").glob("orders-*"))) == PARTITIONS
