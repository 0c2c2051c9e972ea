"""`ottla groups` and `ottla group` on a real broker with a real client, and on its data directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer
from ottla.protocol import messages as m

from ottla.cli import main
from ottla.testing import Broker

from ..support.ask import create, produce
from ..support.poll import until
from ..support.share_session import ShareSession
from ..support.ui_scene import commit
from ..support.wire import Wire

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker, Wire(broker.bootstrap_servers) as wire:
        create(wire, "orders", 2)
        produce(wire, "orders", b"first", b"second")
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "workers",
                "group.protocol": "consumer",
                "client.id": "one",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["orders"])
        until(lambda: consumer.poll(0.2) is not None, "a record")
        consumer.commit(asynchronous=False)
        yield broker
        consumer.close()


def run(broker: Broker, *arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"OTTLA_LAB": broker.lab_url})


def test_a_group_is_shown_with_its_members_offsets_and_events(broker: Broker) -> None:
    listed = run(broker, "groups", "work*").stdout.splitlines()
    assert [line.split()[:3] for line in listed] == [["group", "kind", "state"], ["workers", "consumer", "Stable"]]
    found = run(broker, "group", "workers")
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith("workers  consumer  Stable  epoch ")
    assert "one@127.0.0.1" in found.stdout
    assert "orders:0,1" in found.stdout
    assert "last events:" in found.stdout
    values = json.loads(run(broker, "group", "workers", "--json").stdout)
    (offset,) = [one for one in values["offsets"] if one["partition"] == 0]
    assert (offset["high_watermark"], offset["lag"]) == (2, 2 - offset["committed_offset"])


def test_a_member_that_is_waited_for_is_named_in_words(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        joins = m.ConsumerGroupHeartbeatRequest(group_id="slow", member_id="a", rebalance_timeout_ms=10_000)
        joins.topic_partitions, joins.subscribed_topic_names = [], ["orders"]
        epoch = wire.ask("ConsumerGroupHeartbeat", 1, joins).member_epoch
        joins.member_id = "b"
        wire.ask("ConsumerGroupHeartbeat", 1, joins)
        assert "waits for a heartbeat of a, which has orders:1; b will get that" in run(broker, "group", "slow").stdout
        stays = m.ConsumerGroupHeartbeatRequest(group_id="slow", member_id="a", member_epoch=epoch)
        wire.ask("ConsumerGroupHeartbeat", 1, stays)
        assert "waits for a to give up orders:1; b will get that (" in run(broker, "group", "slow").stdout


def test_offsets_are_set_after_the_plan_was_shown(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        commit(wire, "nightly", "orders", {0: 1, 1: 0})
    plan = ("reset-offsets", "nightly", "-t", "orders", "-p", "0", "--to", "latest")
    shown = run(broker, *plan).stdout.splitlines()
    assert [line.split() for line in shown[:2]] == [
        ["topic", "partition", "before", "after"],
        ["orders", "0", "1", "2"],
    ]
    assert shown[2] == "This is the plan: --execute carries it out."
    assert broker.lab.group("nightly")["offsets"][0]["committed_offset"] == 1  # type: ignore[index]
    assert run(broker, *plan, "--execute").stdout.splitlines() == shown[:2]
    assert broker.lab.group("nightly")["offsets"][0]["committed_offset"] == 2  # type: ignore[index]
    refused = run(broker, "reset-offsets", "workers", "-t", "orders", "--by", "-1", "--execute")
    assert (refused.exit_code, refused.stderr) == (1, "ottla: the group workers has members: stop them first\n")
    wrong = run(broker, "reset-offsets", "nightly", "-t", "orders")
    assert (wrong.exit_code, "exactly one of to, offset, timestamp and by" in wrong.stderr) == (1, True)


def test_a_share_group_is_set_and_forgets_a_topic(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, "parcels", 1)
        produce(wire, "parcels", b"first", b"second")
        session = ShareSession(wire, "parcels", bytes.fromhex(broker.lab.topic("parcels")["topic_id"]), 1)
        session.leave()
    done = json.loads(
        run(broker, "reset-offsets", "parcels", "-t", "parcels", "--offset", "1", "--execute", "--json").stdout
    )
    assert done["offsets"] == [{"topic": "parcels", "partition": 0, "before": None, "committed_offset": 1}]
    plan = run(broker, "delete-offsets", "parcels", "-t", "parcels").stdout.splitlines()
    assert [line.split() for line in plan[:2]] == [["topic", "partition", "before"], ["parcels", "0", "1"]]
    assert "--execute" in plan[2]
    assert run(broker, "delete-offsets", "parcels", "-t", "parcels", "--execute").stdout.splitlines() == plan[:2]
    assert broker.lab.group("parcels")["share_partitions"] == []
    again = run(broker, "delete-offsets", "parcels", "-t", "parcels", "--execute")
    assert (again.exit_code, again.stderr) == (1, "ottla: the group parcels has no offsets of topic parcels\n")


def test_a_data_directory_tells_what_the_broker_told(broker: Broker) -> None:
    live = json.loads(run(broker, "group", "workers", "--timeline", "--json").stdout)
    data = broker.data_directory
    read = json.loads(run(broker, "group", "workers", "--data", str(data), "--json").stdout)
    told = [(one["at_ms"], one["words"]) for one in live if one["source"] == "log"]
    assert [(one["at_ms"], one["words"]) for one in read] == told
    assert "became a member (client one, topics orders)" in run(broker, "group", "workers", "--data", str(data)).stdout


def test_what_does_not_exist_is_said(broker: Broker, tmp_path: Path) -> None:
    found = run(broker, "group", "absent")
    assert (found.exit_code, found.stderr) == (1, "ottla: group absent does not exist\n")
    found = run(broker, "group", "absent", "--data", str(broker.data_directory))
    assert (found.exit_code, "has no records of a group absent" in found.stderr) == (1, True)
    found = run(broker, "group", "workers", "--data", str(tmp_path))
    assert found.exit_code == 1
    assert "does not contain __consumer_offsets" in found.stderr
