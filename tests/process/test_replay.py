"""`ottla replay`: a trace of librdkafka's clients on a fresh broker, on one that differs, and on Kafka."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from ottla.protocol import messages as m

from ottla.cli import main
from ottla.testing import Broker

from ..oracle.kafka import Kafka
from ..support.ask import create
from ..support.trace_story import tell
from ..support.wire import Wire

pytestmark = pytest.mark.slow
APIS = {
    *("CreateTopics", "Metadata", "InitProducerId", "Produce", "Fetch", "FindCoordinator", "JoinGroup", "SyncGroup"),
    *("OffsetFetch", "OffsetCommit", "LeaveGroup", "ConsumerGroupHeartbeat", "AddPartitionsToTxn", "AddOffsetsToTxn"),
    *("TxnOffsetCommit", "EndTxn", "ListOffsets"),
}


def replay(trace: Path | str, to: str, *options: str) -> Result:
    return CliRunner().invoke(main, ["replay", "--to", to, *options, str(trace)])


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of a classic group, a group of KIP-848, transactions and an idempotent producer."""
    path = tmp_path_factory.mktemp("replay") / "trace.jsonl"
    with Broker({"ottla.trace": path, "ottla.trace.raw": "frames"}) as broker:
        tell(broker.bootstrap_servers)
    asked = {json.loads(line).get("api") for line in path.read_text().splitlines()}
    assert asked >= APIS, APIS - asked
    return path


def assert_same(trace: Path, to: str) -> None:
    done = replay(trace, to, "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    wrong = [one for one in found["differences"] if one["allowed"] is None]
    assert (wrong, found["problems"], found["left_out"]) == ([], [], [])
    assert (done.exit_code, found["same"]) == (0, True)
    assert found["replies"] > 60


def test_a_fresh_broker_answers_the_same(trace: Path) -> None:
    with Broker() as broker, Wire(broker.bootstrap_servers) as wire:
        for _ in range(5):  # ids are not the same by accident
            wire.ask(
                "InitProducerId", 4, m.InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1)
            )
        assert_same(trace, broker.bootstrap_servers)


@pytest.mark.oracle
def test_kafka_answers_the_same(trace: Path) -> None:
    with Kafka() as kafka:
        assert_same(trace, kafka.bootstrap_servers)


def test_what_a_broker_answers_differently_is_told(trace: Path) -> None:
    with Broker() as broker, Wire(broker.bootstrap_servers) as wire:
        create(wire, "orders", 3)
        done = replay(trace, broker.bootstrap_servers, "--timeout", "5")
    assert done.exit_code == 1
    assert any("CreateTopics" in line and "topics[orders].error_code: 0 in the trace, 36 now" in line
               for line in done.stdout.splitlines()), done.stdout  # fmt: skip


def test_the_last_events_of_a_running_broker_are_replayed() -> None:
    with Broker({"ottla.lab.port": 0}) as broker, Broker() as fresh:
        url = f"{broker.lab.url}/v1/traces/1"
        assert "there is no trace 1" in replay(url, fresh.bootstrap_servers).stderr
        broker.lab.post("traces", {"raw": "frames"})
        with Wire(broker.bootstrap_servers) as wire:
            create(wire, "orders", 3)
        done = replay(url, fresh.bootstrap_servers, "--json")
    assert (done.exit_code, json.loads(done.stdout)["replies"]) == (0, 1)
    assert replay("http://127.0.0.1:1", fresh.bootstrap_servers).exit_code == 3


def test_what_cannot_be_replayed_is_said(trace: Path, tmp_path: Path) -> None:
    assert replay(trace, "127.0.0.1:1").exit_code == 3
    assert replay(tmp_path / "absent", "127.0.0.1:1").exit_code == 2
    assert replay(trace, "nonsense").exit_code == 2
    (tmp_path / "x").write_text("[]\n")
    assert replay(tmp_path / "x", "127.0.0.1:1").exit_code == 2
    (tmp_path / "y").touch()
    (tmp_path / "y.1").mkdir()  # in place of the file before it
    unread = replay(tmp_path / "y", "127.0.0.1:1")
    assert (unread.exit_code, "y.1: Is a directory" in unread.stderr) == (2, True)
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    without = tmp_path / "without.jsonl"
    without.write_text("".join(json.dumps({k: v for k, v in one.items() if k != "raw"}) + "\n" for one in lines))
    with Broker() as broker:
        found = json.loads(replay(without, broker.bootstrap_servers, "--json", "--timeout", "5").stdout)
        filtered = tmp_path / "filtered.jsonl"
        filtered.write_text(json.dumps(lines[0] | {"filters": {"api": "Produce"}}) + "\n")
        warned = replay(filtered, broker.bootstrap_servers)
    with Broker({"ottla.nodes": 2}) as nodes:
        address = nodes.bootstrap_servers.split(",")[0]
        opened = tmp_path / "opened.jsonl"
        opened.write_text("".join(json.dumps(one) + "\n" for one in lines[:2]))
        words = "it gets the requests of a trace of one node"
        assert f"ottla: {address} is one of 2 nodes: {words}" in replay(opened, address).stderr
    assert (warned.exit_code, warned.stderr.count("the trace was filtered (api=Produce): ")) == (0, 1)
    assert {(one["api"], one["why"]) for one in found["left_out"]} == {("Produce", "the trace has no records")}
