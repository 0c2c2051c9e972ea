"""Kafka's own clients and command-line tools."""

from __future__ import annotations

import json
import subprocess
import uuid
from pathlib import Path

import pytest

from ottla.testing import Broker

from ..oracle.kafka import program
from ..oracle.tools import tool

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def ran(name: str, *arguments: str, stdin: str | None = None) -> str:
    done = tool(name, *arguments, stdin=stdin)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


@pytest.fixture
def at(broker: Broker) -> list[str]:
    return ["--bootstrap-server", broker.bootstrap_servers]


def test_kafkas_own_clients(broker: Broker, tmp_path: Path) -> None:
    """Every codec, with and without idempotence, acks 0, 1 and all; reading from offsets and times; errors."""
    command = program("tools", "PlainClients", tmp_path)
    done = subprocess.run(
        [*command, broker.bootstrap_servers], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]


def test_topics_records_and_offsets(at: list[str], tmp_path: Path) -> None:
    topic = f"java-{uuid.uuid4().hex[:8]}"
    assert f"Created topic {topic}" in ran(
        "TopicCommand", *at, "--create", "--topic", topic, "--partitions", "3", "--config", "retention.ms=600000"
    )
    assert "already exists" in tool("TopicCommand", *at, "--create", "--topic", topic).stdout
    ran("TopicCommand", *at, "--alter", "--topic", topic, "--partitions", "4")
    described = ran("TopicCommand", *at, "--describe", "--topic", topic)
    assert "PartitionCount: 4" in described
    assert "retention.ms=600000" in described
    assert topic in ran("TopicCommand", *at, "--list").split()
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        lines = "".join(f"{codec}-{n}\n" for n in range(100))
        ran(
            "ConsoleProducer",
            *at,
            "--topic",
            topic,
            "--compression-codec",
            codec,
            "--command-property",
            "enable.idempotence=true",
            stdin=lines,
        )
    offsets = dict(line.rsplit(":", 1) for line in ran("GetOffsetShell", *at, "--topic", topic).split())
    assert sum(map(int, offsets.values())) == 500
    seen = []
    for partition in range(4):
        count = int(offsets[f"{topic}:{partition}"])
        if count:
            out = ran(
                "consumer.ConsoleConsumer",
                *at,
                "--topic",
                topic,
                "--partition",
                str(partition),
                "--offset",
                "0",
                "--max-messages",
                str(count),
            )
            seen += out.split()
    assert sorted(seen) == sorted(
        f"{codec}-{n}" for codec in ("none", "gzip", "snappy", "lz4", "zstd") for n in range(100)
    )
    filled = max(offsets, key=lambda tp: int(offsets[tp]))
    request = tmp_path / "delete.json"
    partition = int(filled.rpartition(":")[2])
    request.write_text(
        f'{{"partitions": [{{"topic": "{topic}", "partition": {partition}, "offset": 5}}], "version": 1}}'
    )
    assert "low_watermark: 5" in ran("DeleteRecordsCommand", *at, "--offset-json-file", str(request))
    assert f"{topic}:{partition}:5" in ran("GetOffsetShell", *at, "--topic", topic, "--time", "earliest").split()
    ran("TopicCommand", *at, "--delete", "--topic", topic)
    assert topic not in ran("TopicCommand", *at, "--list").split()


def test_configs(at: list[str]) -> None:
    topic = f"java-{uuid.uuid4().hex[:8]}"
    ran("TopicCommand", *at, "--create", "--topic", topic)
    entity = ["--entity-type", "topics", "--entity-name", topic]
    ran(
        "kafka.admin.ConfigCommand",
        *at,
        "--alter",
        *entity,
        "--add-config",
        "segment.bytes=2000000,cleanup.policy=[compact,delete]",
    )
    described = ran("kafka.admin.ConfigCommand", *at, "--describe", *entity)
    assert "segment.bytes=2000000" in described
    assert "cleanup.policy=compact,delete" in described
    ran("kafka.admin.ConfigCommand", *at, "--alter", *entity, "--delete-config", "segment.bytes")
    assert "segment.bytes=2000000" not in ran("kafka.admin.ConfigCommand", *at, "--describe", *entity)
    refused = tool("kafka.admin.ConfigCommand", *at, "--alter", *entity, "--add-config", "retention.ms=soon")
    assert "Not a number of type LONG" in refused.stdout + refused.stderr
    assert "log.segment.bytes" in ran(
        "kafka.admin.ConfigCommand", *at, "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all"
    )


def test_the_cluster_and_its_versions(at: list[str]) -> None:
    assert "Cluster ID:" in ran("ClusterTool", "cluster-id", *at)
    versions = ran("BrokerApiVersionsCommand", *at)
    assert "Produce(0): 0 to 13" in versions
    assert "UNSUPPORTED" not in versions.partition("Fetch(1)")[0]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_performance_tools(at: list[str], acks: str) -> None:
    topic = f"perf-{uuid.uuid4().hex[:8]}"
    ran("TopicCommand", *at, "--create", "--topic", topic)
    out = ran(
        "ProducerPerformance", *at, "--topic", topic, "--num-records", "20000", "--record-size", "300", "--throughput",
        "-1",
        "--command-property", f"acks={acks}", f"enable.idempotence={str(acks == 'all').lower()}",
        "compression.type=lz4",
    )  # fmt: skip
    assert "20000 records sent" in out
    assert f"{topic}:0:20000" in ran("GetOffsetShell", *at, "--topic", topic).split()
    out = ran("ConsumerPerformance", *at, "--topic", topic, "--num-records", "20000", "--timeout", "20000")
    columns, figures = (line.split(", ") for line in out.splitlines()[-2:])
    assert dict(zip(columns, figures, strict=True))["data.consumed.in.nMsg"] == "20000"


def test_what_administers_one_node(at: list[str], tmp_path: Path) -> None:
    topic = f"java-{uuid.uuid4().hex[:8]}"
    ran("TopicCommand", *at, "--create", "--topic", topic, "--partitions", "2")
    ran("ConsoleProducer", *at, "--topic", topic, stdin="one\ntwo\n")
    sizes = json.loads(ran("LogDirsCommand", *at, "--describe", "--topic-list", topic).splitlines()[-1])
    (directory,) = sizes["brokers"][0]["logDirs"]
    assert {p["partition"]: p["size"] > 0 for p in directory["partitions"]} in (
        {f"{topic}-0": a, f"{topic}-1": not a} for a in (True, False)
    )
    assert "LeaderId:" in ran("MetadataQuorumCommand", *at, "describe", "--status")
    assert ran("MetadataQuorumCommand", *at, "describe", "--replication").splitlines()[-1].split()[-1] == "Leader"
    elected = tool("LeaderElectionCommand", *at, "--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert f"Valid replica already elected for partitions {topic}-0" in elected.stdout + elected.stderr
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [1]}]}))
    assert "Successfully started" in ran(
        "reassign.ReassignPartitionsCommand", *at, "--reassignment-json-file", str(plan), "--execute"
    )
    assert f"Reassignment of partition {topic}-0 is completed" in ran(
        "reassign.ReassignPartitionsCommand", *at, "--reassignment-json-file", str(plan), "--verify"
    )
    assert "No partition reassignments found" in ran("reassign.ReassignPartitionsCommand", *at, "--list")
    refused = tool("AclCommand", *at, "--list")
    assert "No Authorizer is configured on the broker" in refused.stdout + refused.stderr
    users = (*at, "--entity-type", "users", "--entity-name", "alice", "--alter")
    assert "Completed updating config for user alice" in ran(
        "kafka.admin.ConfigCommand", *users, "--add-config", "SCRAM-SHA-256=[password=secret]"
    )
    assert "Completed updating config for user alice" in ran(
        "kafka.admin.ConfigCommand", *users, "--delete-config", "SCRAM-SHA-256"
    )
    again = tool("kafka.admin.ConfigCommand", *users, "--delete-config", "SCRAM-SHA-256")
    assert "Attempt to delete a user credential that does not exist" in again.stdout + again.stderr
    token = tool("DelegationTokenCommand", *at, "--describe", "--command-config", str(empty(tmp_path)))
    assert "Delegation Token requests are not allowed" in token.stdout + token.stderr


def empty(directory: Path) -> Path:
    """A file of properties with none."""
    (directory / "none.properties").touch()
    return directory / "none.properties"
