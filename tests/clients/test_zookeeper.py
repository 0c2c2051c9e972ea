"""A broker that is registered in a real ZooKeeper, as the tools and consumers of its years find it there."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from ottla.broker.zookeeper.writing import Conflict, Put, PutTopic, Remove, write_all
from ottla.protocol import messages as m
from ottla.protocol.trees import tree

from ottla.testing import BrokerFailed

from ..oracle.zookeeper import ZooKeeperServer, together, tool
from ..support.poll import until
from ..support.sources import ROOT
from ..support.wire import Wire
from .zookeeper_brokers import registered

pytestmark = pytest.mark.slow
RECORDED: dict[str, Any] = json.loads((ROOT / "tests/oracle/recorded/zookeeper.json").read_text())
RELEASES = {"0.8.2": "0.8.2.2", "0.9": "0.9.0.1", "0.10.0": "0.10.0.1", "0.10.2": "0.10.2.2", "1.1": "1.1.1"}
RELEASES |= {"2.4": "2.4.1", "2.8": "2.8.2", "3.9": "3.9.1"}
VARIES = re.compile(r'("timestamp":"\d+")|(?<=:)(\d{4,5})\b|("id":"[\w-]{22}")')


def masked(text: str) -> str:
    """Returns a value without times, ports and ids."""
    return VARIES.sub("*", text)


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_looks_like_one_of_its_release(zookeeper: ZooKeeperServer, release: str) -> None:
    """All paths, and their values byte by byte but for times, ports and ids."""
    recorded, chroot = RECORDED[RELEASES[release]], f"/{release}"
    with registered(zookeeper, chroot, release) as broker:
        found = zookeeper.tree(chroot)
        assert sorted(found) == sorted(recorded["start"])
        written = {path: value for path, value in found.items() if value}
        expected = {path: recorded["nodes"][path] for path in recorded["start"] if path in recorded["nodes"]}
        assert {path: masked(one) for path, one in written.items()} == {p: masked(v) for p, v in expected.items()}
        assert f":{broker.bootstrap_servers.rpartition(':')[2]}" in written["/brokers/ids/7"]
        assert zookeeper.owner(f"{chroot}/brokers/ids/7") == zookeeper.owner(f"{chroot}/controller") != 0

        topic = recorded["nodes"].get("/brokers/topics/two")
        if topic is not None:  # as that release's tool wrote it
            client = zookeeper.client
            client.create(f"{chroot}/config/topics/two", recorded["nodes"]["/config/topics/two"].encode())
            client.create(f"{chroot}/brokers/topics/two", topic.encode())
            state = f"{chroot}/brokers/topics/two/partitions/1/state"
            until(lambda: zookeeper.value(state), "the topic has leaders", within=20)
            assert zookeeper.value(state) == RECORDED["2.8.2"]["nodes"]["/brokers/topics/orders/partitions/1/state"]
            assert json.loads(zookeeper.value(f"{chroot}/brokers/topics/two") or "")["partitions"] == {
                "0": [7],
                "1": [7],
            }
            assert zookeeper.value(f"{chroot}/config/topics/two") == recorded["nodes"]["/config/topics/two"]
    assert zookeeper.client.get_children(f"{chroot}/brokers/ids") == []
    assert zookeeper.value(f"{chroot}/controller") is None


def described(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.strip().splitlines()]


def test_tools_and_consumers_of_0_8_2(zookeeper: ZooKeeperServer) -> None:
    at, topics, version = ("--zookeeper", f"{zookeeper.address}/tools"), "admin.TopicCommand", "0.8.2.2"
    with registered(zookeeper, "/tools", "0.8.2", delete_topic_enable=True) as broker:
        create = (*at, "--create", "--topic", "orders", "--partitions", "2", "--replication-factor", "1")
        assert tool(version, topics, *create, "--config", "retention.ms=1000000").strip() == 'Created topic "orders".'
        until(lambda: zookeeper.value("/tools/brokers/topics/orders/partitions/1/state"), "it is created", within=20)
        for more in (("--config", "segment.ms=2000000"), ("--partitions", "3")):  # each writes the configuration
            tool(version, topics, *at, "--alter", "--topic", "orders", *more)
        until(lambda: zookeeper.value("/tools/brokers/topics/orders/partitions/2/state"), "it has grown", within=20)
        assert described(tool(version, topics, *at, "--describe", "--topic", "orders")) == [
            [
                *("Topic:orders", "PartitionCount:3", "ReplicationFactor:1"),
                "Configs:retention.ms=1000000,segment.ms=2000000",
            ],
            *[["", "Topic: orders", f"Partition: {index}", "Leader: 7", "Replicas: 7", "Isr: 7"] for index in range(3)],
        ]
        lines = [f"value {number}" for number in range(20)]
        produced = ("--broker-list", broker.bootstrap_servers, "--topic", "orders", "--sync")
        tool(version, "tools.ConsoleProducer", *produced, given="\n".join(lines) + "\n")
        (zookeeper.directory / "g").write_text("group.id=g\n")
        consumed = (*at, "--topic", "orders", "--from-beginning", "--max-messages", "20")
        shown = tool(version, "tools.ConsoleConsumer", *consumed, "--consumer.config", str(zookeeper.directory / "g"))
        assert sorted(shown.split("\n")[:20]) == sorted(lines)
        checked = tool(version, "tools.ConsumerOffsetChecker", *at, "--group", "g").splitlines()
        rows = [row.split() for row in checked[1:]]
        assert [row[:3] for row in rows] == [["g", "orders", str(index)] for index in range(3)]
        assert sum(int(row[3]) for row in rows) == sum(int(row[4]) for row in rows) == 20
        assert {row[5] for row in rows} == {"0"}
        deleted = tool(version, topics, *at, "--delete", "--topic", "orders")
        assert deleted.startswith("Topic orders is marked for deletion.")
        gone = [f"/tools/{one}/orders" for one in ("brokers/topics", "config/topics", "admin/delete_topics")]
        until(lambda: not any(map(zookeeper.client.exists, gone)), "it is gone", within=20)
        with Wire(broker.bootstrap_servers) as wire:
            left = wire.ask("Metadata", 0, m.MetadataRequest(topics=[]))
        assert "orders" not in [topic.name for topic in left.topics]


def test_configurations_in_zookeeper_are_those_that_the_release_knows(zookeeper: ZooKeeperServer) -> None:
    """What it does not know stays there without effect, and keeps no topic from being created."""
    at = "/known"
    with registered(zookeeper, at, "0.8.2") as broker:
        config = {"segment.bytes": "100000", "compression.type": "gzip", "max.compaction.lag.ms": "1"}
        written = json.dumps({"version": 1, "config": config}).encode()
        zookeeper.client.create(f"{at}/config/topics/old", written, makepath=True)
        assignment = json.dumps({"version": 1, "partitions": {"0": [7]}}).encode()
        zookeeper.client.create(f"{at}/brokers/topics/old", assignment, makepath=True)
        until(lambda: zookeeper.value(f"{at}/brokers/topics/old/partitions/0/state"), "it is created", within=20)
        with Wire(broker.bootstrap_servers) as wire:
            found = wire.ask("Metadata", 0, m.MetadataRequest(topics=[]))
        assert [(topic.name, topic.error_code) for topic in found.topics] == [("old", 0)]
        assert json.loads(zookeeper.value(f"{at}/config/topics/old") or "")["config"] == config


def test_tools_of_0_10_2_and_1_1(zookeeper: ZooKeeperServer) -> None:
    at, topics = ("--zookeeper", f"{zookeeper.address}/newer"), "admin.TopicCommand"
    with registered(zookeeper, "/newer", "0.10.2") as broker:
        create = (*at, "--create", "--topic", "orders", "--partitions", "1", "--replication-factor", "1")
        assert tool("1.1.1", topics, *create).strip() == 'Created topic "orders".'
        until(lambda: zookeeper.value("/newer/brokers/topics/orders/partitions/0/state"), "it is created", within=20)
        alter = ("admin.ConfigCommand", *at, "--alter", "--entity-type")
        together(
            "0.10.2.2",
            (*alter, "topics", "--entity-name", "orders", "--add-config", "retention.ms=777,segment.index.bytes=5000"),
            (*alter, "users", "--entity-name", "u 1", "--add-config", "producer_byte_rate=1000"),
        )
        with Wire(broker.bootstrap_servers) as wire:
            r = m.MetadataRequest
            assert wire.ask("Metadata", 0, r(topics=[r.MetadataRequestTopic(name="new")])).topics[0].error_code == 5
        until(lambda: zookeeper.value("/newer/brokers/topics/new/partitions/0/state"), "one is made here", within=20)
        first, second, lines = together(
            "0.10.2.2",
            (topics, *at, "--describe"),
            ("admin.ConfigCommand", *at, "--describe", "--entity-type", "users", "--entity-name", "u 1"),
            (topics, *at, "--list"),
        )
        assert "Configs:retention.ms=777,segment.index.bytes=5000" in first
        assert "Topic: new\tPartition: 0\tLeader: 7\tReplicas: 7\tIsr: 7" in first
        assert second.strip() == "Configs for user-principal 'u 1' are producer_byte_rate=1000"
        assert lines.split() == ["new", "orders"]
        tool(
            "0.10.2.2",
            "tools.ConsoleProducer",
            *("--broker-list", broker.bootstrap_servers),
            "--topic",
            "orders",
            given="a\nb\n",
        )
        (zookeeper.directory / "h").write_text("group.id=h\n")
        consumed = (*at, "--topic", "orders", "--from-beginning", "--max-messages", "2")
        shown = tool(
            "0.10.2.2", "tools.ConsoleConsumer", *consumed, "--consumer.config", str(zookeeper.directory / "h")
        )
        assert shown.split("\n")[:2] == ["a", "b"]
        listed, one = together(
            "0.10.2.2",
            ("admin.ConsumerGroupCommand", *at, "--list"),
            ("admin.ConsumerGroupCommand", *at, "--describe", "--group", "h"),
        )
        assert listed.split() == ["h"]
        assert [row.split()[:5] for row in one.splitlines() if row.startswith("orders")] == [
            ["orders", "0", "2", "2", "0"]
        ]


def test_a_broker_that_may_not_register(zookeeper: ZooKeeperServer) -> None:
    with registered(zookeeper, "/twice", "0.10.2"):
        with pytest.raises(BrokerFailed, match=r"exit code 7(.|\n)*already registered on the path /brokers/ids/7\."):
            registered(zookeeper, "/twice", "0.10.2").start()
        with pytest.raises(BrokerFailed, match=r"exit code 7(.|\n)*broker 7 of another cluster is the controller"):
            registered(zookeeper, "/twice", "0.10.2", node_id=8).start()
        assert zookeeper.client.get_children("/twice/brokers/ids") == ["7"]
    zookeeper.client.set("/twice/cluster/id", b'{"version":"1","id":"other"}')
    with registered(zookeeper, "/twice", "0.10.2") as broker:  # a new directory takes over the id
        assert "cluster.id=other" in (broker.data_directory / "meta.properties").read_text()
        broker.stop()
        zookeeper.client.set("/twice/cluster/id", b'{"version":"1","id":"another"}')
        with pytest.raises(BrokerFailed, match="exit code 5"):
            broker.start()
    absent = registered(zookeeper, "", "0.10.2", zookeeper_connection_timeout_ms=300)
    absent.settings["zookeeper.connect"] = "127.0.0.1:1"
    with pytest.raises(BrokerFailed, match=r"exit code 7(.|\n)*Unable to connect to zookeeper server within timeout"):
        absent.start()


def test_partitions_that_a_tool_adds_meanwhile_are_not_written_over(zookeeper: ZooKeeperServer) -> None:
    """The tool is faster than the broker, which has read one partition and is about to write the topic."""
    client, path = zookeeper.client, "/brokers/topics/conflict"
    client.create(path, b'{"version":1,"partitions":{"0":[7],"1":[7]}}', makepath=True)
    ours = b'{"version":1,"partitions":{"0":[8]}}'
    with pytest.raises(Conflict):
        write_all(client, [PutTopic("conflict", ours, frozenset({0}))])
    assert client.get(path)[0] == b'{"version":1,"partitions":{"0":[7],"1":[7]}}'
    write_all(client, [PutTopic("conflict", ours, frozenset({0, 1}))])  # it was read, and cannot be had
    assert client.get(path)[0] == ours


def test_a_topic_that_was_removed_and_made_again_is_there(zookeeper: ZooKeeperServer) -> None:
    client, path = zookeeper.client, "/again/brokers/topics/t"
    client.create(path, b"old", makepath=True)
    write_all(client, [Remove(path), Put(path, b"new"), Put(f"{path}/partitions", None)])
    assert (client.get(path)[0], client.get_children(path)) == (b"new", ["partitions"])


def test_every_node_registers(zookeeper: ZooKeeperServer) -> None:
    with registered(zookeeper, "/nodes", "0.10.2", lab=True, ottla_nodes=3, ottla_nodes_racks="a,b,c") as broker:
        found = {name: json.loads(zookeeper.value(f"/nodes/brokers/ids/{name}") or "") for name in ("7", "8", "9")}
        assert [one["rack"] for one in found.values()] == ["a", "b", "c"]
        ports = [int(address.rpartition(":")[2]) for address in broker.bootstrap_servers.split(",")]
        assert [one["port"] for one in found.values()] == ports

        topic, state = "/nodes/brokers/topics/t", "/nodes/brokers/topics/t/partitions/0/state"
        zookeeper.client.create(topic, b'{"version":1,"partitions":{"0":[8,7]}}')
        until(lambda: zookeeper.value(state), "it is created", within=20)
        assert json.loads(zookeeper.value(state) or "")["leader"] == 8
        other, moved = (b'{"topic":"%b","partition":0,"replicas":[9,7]}' % name for name in (b"none", b"t"))
        broker.lab.post("hold", topic="t", node=9)
        asked_for = "/nodes/admin/reassign_partitions"
        zookeeper.client.create(asked_for, b'{"version":1,"partitions":[%b,%b]}' % (other, moved))
        under_way = (b'{"version":1,"partitions":[%b]}' % moved).decode()
        until(
            lambda: zookeeper.value(asked_for) == under_way, "what moves is there, what cannot move is not", within=20
        )
        broker.lab.post("release", topic="t", node=9)
        until(lambda: '"0":[9,7]' in (zookeeper.value(topic) or ""), "it is moved", within=20)
        until(lambda: json.loads(zookeeper.value(state) or "")["leader"] == 9, "and led there", within=20)
        back = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[7,9]}]}'
        until(lambda: not zookeeper.client.exists(asked_for), "the request is removed", within=20)
        zookeeper.client.create(asked_for, back)
        until(lambda: '"0":[7,9]' in (zookeeper.value(topic) or ""), "its order is changed", within=20)
        zookeeper.client.create(
            "/nodes/admin/preferred_replica_election", b'{"version":1,"partitions":[{"topic":"t","partition":0}]}'
        )
        until(lambda: json.loads(zookeeper.value(state) or "")["leader"] == 7, "it is led by the first", within=20)
        asked = [asked_for, "/nodes/admin/preferred_replica_election"]
        until(lambda: not any(map(zookeeper.client.exists, asked)), "the requests are removed", within=20)


def test_offsets_of_version_0_are_in_zookeeper(zookeeper: ZooKeeperServer) -> None:
    """The answers are those that 0.8.2.2 and 0.10.2.2 gave to the same requests."""
    commit_class = tree("OffsetCommitRequest", 0).at("topics.partitions").cls
    c, f, r = m.OffsetCommitRequest, m.OffsetFetchRequest, m.MetadataRequest
    with registered(zookeeper, "/offsets", "0.8.2", num_partitions=2) as broker, Wire(broker.bootstrap_servers) as wire:
        named = r(topics=[r.MetadataRequestTopic(name="t")])
        until(lambda: not wire.ask("Metadata", 0, named).topics[0].error_code, "the topic is there", within=20)

        def commit(group: str, topic: str, *parts: tuple[int, int, str | None]) -> list[int]:
            made = [
                commit_class(partition_index=i, committed_offset=o, committed_metadata=d, commit_timestamp=-1)
                for i, o, d in parts
            ]
            asked = c(group_id=group, topics=[c.OffsetCommitRequestTopic(name=topic, partitions=made)])
            return [one.error_code for one in wire.ask("OffsetCommit", 0, asked).topics[0].partitions]

        def fetch(group: str, topic: str, *parts: int) -> list[tuple[int, int]]:
            asked = f(group_id=group, topics=[f.OffsetFetchRequestTopic(name=topic, partition_indexes=list(parts))])
            found = wire.ask("OffsetFetch", 0, asked).topics[0].partitions
            assert {one.metadata for one in found} == {""}
            return [(one.committed_offset, one.error_code) for one in found]

        assert fetch("g", "t", 0, 1, 9) == [(-1, 3)] * 3
        assert fetch("g", "absent", 0) == [(-1, 3)]
        assert commit("g", "t", (0, 5, "m"), (1, 7, "")) == [0, 0]
        assert zookeeper.value("/offsets/consumers/g/offsets/t/1") == "7"
        assert fetch("g", "t", 1, 0, 9) == [(7, 0), (5, 0), (-1, 3)]
        assert commit("g", "t", (0, -1, "")) == [0]
        assert commit("g", "t", (0, 8, "x" * 5000), (1, 9, None)) == [12, 0]
        assert fetch("g", "t", 0, 1) == [(-1, 0), (9, 0)]
        assert commit("g", "t", (9, 3, "")) == [0]
        assert fetch("g", "t", 9) == [(3, 0)]
        assert commit("g", "absent", (0, 3, "")) == [3]
        for group in ("", "..", "n\0n"):
            assert commit(group, "t", (0, 1, "")) == [-1]
            assert fetch(group, "t", 0) == [(-1, -1)]
        for group in ("a/b", "gé x"):
            assert commit(group, "t", (0, 1, "")) == [0]
            assert fetch(group, "t", 0) == [(1, 0)]
        zookeeper.client.set("/offsets/consumers/g/offsets/t/0", b"junk")
        assert fetch("g", "t", 0, 1) == [(-1, -1), (9, 0)]
