"""`ottla adopt` with a live ZooKeeper, and Apache Kafka 4.4 on what it made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kazoo.client import KazooClient
from ottla.broker.config.checks import STANDARD_AUTHORIZER
from ottla.protocol import legacy
from ottla.protocol import messages as m
from ottla.protocol.legacy import Message

from ottla.adopt_command import adopt
from ottla.adoption.catalog import from_zookeeper
from ottla.adoption.plan import Given
from ottla.adoption.work import Order, prepared
from ottla.testing import Broker

from ..support.ask import fetch_message, produce_message
from ..support.entities import acls_of, credentials_of, quotas_of
from ..support.old_directories import DumpedNodes, OldDirectories, committed, read
from ..support.poll import until
from ..support.ports import free_port
from ..support.sources import ROOT
from ..support.wire import Wire
from .kafka import Kafka
from .old_kafka import OldKafka

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
RECORDED: dict[str, Any] = json.loads((ROOT / "tests/oracle/recorded/zookeeper_entities.json").read_text())
AUTHORIZER = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"  # of a Kafka that has none: 0.8.2


def run(*arguments: object) -> Result:
    return CliRunner().invoke(adopt, [str(one) for one in arguments])


def written_while_served(release: str, directory: Path) -> list[str]:
    """What a client of its time writes to a new topic while ottla serves the directory and emulates a release."""
    settings: dict[str, object] = {"ottla.emulate": release, "offsets.topic.num.partitions": 4, **AUTHORIZER}
    r, message = m.MetadataRequest, produce_message("made", legacy.encode([Message(0, b"k", b"by ottla", 0)]), acks=1)
    with Broker(settings, directory=directory, lab=False) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.ask("Metadata", 0, r(topics=[r.MetadataRequestTopic(name="made")]))

        def is_written() -> bool:
            reply = wire.ask("Produce", 0, message)
            return not reply.responses[0].partition_responses[0].error_code

        until(is_written, "the topic is there, and takes the message")
    return ["by ottla"]


@pytest.mark.parametrize(("version", "served_as"), [("0.8.2.2", "0.8.2"), ("3.9.1", None)])
def test_kafka_goes_on_with_what_was_adopted(version: str, served_as: str | None, tmp_path: Path) -> None:
    """It returns old formats as they are stored, and knows the committed offsets, rights, quotas and credentials; also
    where ottla has served the directory since, as an earlier release.
    """
    old = OldDirectories(version, tmp_path / "old")
    told = RECORDED[version]
    nodes = {**old.zookeeper, **{path: value.encode() for path, value in told["nodes"].items()}}
    nodes.pop("/admin/delete_topics/defaults", None)
    given = Given(from_zookeeper(DumpedNodes(nodes)), new_cluster_id=CLUSTER_ID)
    with prepared(Order((str(old.data("killed")),), str(tmp_path / "data"), given)) as adoption:
        adoption.carry_out()
    written = written_while_served(served_as, tmp_path) if served_as else []
    settings: dict[str, object] = {"offsets.topic.num.partitions": 4, **AUTHORIZER}
    with Kafka(settings, tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        for name, rows in old.records("killed").items():
            topic, _, partition = name.rpartition("-")
            assert read(wire, topic, int(partition)) == rows, name
        assert [value for _, _, value, _ in (read(wire, "made", 0) if written else [])] == written
        (part,) = wire.ask("Fetch", 11, fetch_message("packed", 0)).responses[0].partitions
        logs = sorted((tmp_path / "data" / "packed-0").glob("*.log"))
        assert bytes(part.records) == b"".join(one.read_bytes() for one in logs)
        if "acls" in told:
            assert acls_of(wire, 1) == told["acls"]
            assert quotas_of(wire) == told["quotas"]
            assert credentials_of(wire) == told["credentials"]
        for group, known in old.offsets("killed").items():
            in_zookeeper = int(told["nodes"].get(f"/consumers/{group}/offsets/plain/0", -1))
            offsets = {**known, **({"plain-0": max(in_zookeeper, known["plain-0"])} if "plain-0" in known else {})}
            topics = [name.rpartition("-")[0] for name in offsets]
            found = until(lambda g=group, t=topics: committed(wire, g, t), f"{group} is loaded")  # type: ignore[misc]
            assert found == offsets, group


def test_topics_and_configurations_come_from_a_live_zookeeper(tmp_path: Path) -> None:
    with OldKafka("0.8.2.2") as kafka:
        client = KazooClient(kafka.zookeeper)
        client.start()
        try:
            client.ensure_path("/config/topics")
            client.create("/config/topics/orders", b'{"version":1,"config":{"retention.ms":"123456789"}}')
            client.create("/brokers/topics/orders", b'{"version":1,"partitions":{"0":[1],"1":[1]}}')
            until((kafka.data_directory / "orders-1").exists, "the topic is there", every=0.05)
        finally:
            client.stop()
            client.close()
        kafka.stop_broker()
        made = run(kafka.data_directory, "--zookeeper", kafka.zookeeper)
        assert made.exit_code == 0, made.output
        assert f"(topics and configurations from ZooKeeper at {kafka.zookeeper})" in made.output
        assert "  orders  partitions 2  formats none  retention.ms=123456789" in made.output.splitlines()
        refused = run(kafka.data_directory, "--zookeeper", f"{kafka.zookeeper}/elsewhere")
        assert (refused.exit_code, "knows no topic; is a chroot missing?" in refused.output) == (5, True)


def test_a_zookeeper_that_does_not_answer_is_named(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    address = f"127.0.0.1:{free_port()}"
    refused = run(tmp_path, "--zookeeper", address)
    assert (refused.exit_code, f"ottla: ZooKeeper at {address}: " in refused.output) == (5, True)
