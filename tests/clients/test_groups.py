"""Consumers of others, in groups of both protocols: Java and its tools, librdkafka, aiokafka,
kafka-python, Go, Node.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..oracle.kafka import program
from ..oracle.tools import tool
from ..support.librdkafka import PROTOCOLS, fill, fresh, member, poll_until
from ..support.poll import until
from ..support.wire import Wire
from .conftest import Run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_librdkafka_scales_and_commits(broker: Broker, protocol: str) -> None:
    topic, group = fresh(broker), f"rd-{uuid.uuid4().hex[:6]}"
    fill(broker, topic, 40)
    first, second = member(broker, group, protocol), member(broker, group, protocol)
    seen: list[int] = []
    first.subscribe([topic])
    poll_until(lambda: len(seen) >= 40, first, seen=seen)
    assert sorted(seen) == list(range(40))
    first.commit(asynchronous=False)
    second.subscribe([topic])
    poll_until(lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second)
    owned = [p.partition for one in (first, second) for p in one.assignment()]
    assert sorted(owned) == [0, 1, 2, 3]
    fill(broker, topic, 40)
    seen.clear()
    poll_until(lambda: len(seen) >= 40, first, second, seen=seen)
    first.commit(asynchronous=False)
    second.commit(asynchronous=False)
    second.close()
    poll_until(lambda: len(first.assignment()) == 4, first)
    assert {p.offset for p in first.committed([TopicPartition(topic, n) for n in range(4)])} == {20}
    first.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_that_stops_polling_or_beating_is_replaced(broker: Broker, protocol: str) -> None:
    """max.poll.interval.ms: the client leaves by itself, and its commit is refused then."""
    topic, group = fresh(broker), f"slow-{uuid.uuid4().hex[:6]}"
    fill(broker, topic, 8)
    slow = member(broker, group, protocol, max_poll_interval_ms=6000 if protocol == "classic" else 1000)
    slow.subscribe([topic])
    poll_until(lambda: len(slow.assignment()) == 4, slow)
    other = member(broker, group, protocol)
    other.subscribe([topic])
    poll_until(lambda: len(other.assignment()) == 4, other)
    with pytest.raises(KafkaException):
        slow.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    poll_until(lambda: not slow.assignment(), slow)  # librdkafka may hang if it is closed before it knows of its loss
    slow.close()
    other.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_static_members_keep_their_partitions_over_a_restart(broker: Broker, protocol: str) -> None:
    topic, group = fresh(broker), f"static-{uuid.uuid4().hex[:6]}"
    members = [member(broker, group, protocol, group_instance_id=f"i{n}") for n in range(2)]
    for one in members:
        one.subscribe([topic])
    poll_until(lambda: [len(m.assignment()) for m in members] == [2, 2], *members)
    before = sorted(p.partition for p in members[0].assignment())
    members[0].close()
    members[0] = member(broker, group, protocol, group_instance_id="i0")
    members[0].subscribe([topic])
    poll_until(lambda: [len(m.assignment()) for m in members] == [2, 2], *members)
    assert sorted(p.partition for p in members[0].assignment()) == before
    for one in members:
        one.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_partitions_are_added_and_topics_come_and_go(broker: Broker, protocol: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    topic, group = fresh(broker, 2), f"grow-{uuid.uuid4().hex[:6]}"
    one = member(broker, group, protocol, topic_metadata_refresh_interval_ms=200)
    one.subscribe([f"^{topic}.*"])
    poll_until(lambda: len(one.assignment()) == 2, one)
    from confluent_kafka.admin import NewPartitions

    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    poll_until(lambda: len(one.assignment()) == 3, one)
    if protocol == "classic":  # a new topic is found by the broker within ten seconds at the least, as in Kafka
        admin.create_topics([NewTopic(f"{topic}-b", 1, 1)])[f"{topic}-b"].result()
        poll_until(lambda: len(one.assignment()) == 4, one)
        admin.delete_topics([f"{topic}-b"])[f"{topic}-b"].result()
        poll_until(lambda: len(one.assignment()) == 3, one)
    one.close()


def _await_rebalance(broker: Broker, protocol: str, joining: Consumer) -> None:
    """Until the newcomer is known. The other member, which is not polled, does not let go of what it has."""
    with Wire(broker.bootstrap_servers) as wire:

        def is_known() -> bool:
            joining.poll(0.01)
            if protocol == "classic":
                classic = wire.ask("DescribeGroups", 5, m.DescribeGroupsRequest(groups=["kill"])).groups[0]
                return bool(classic.group_state == "PreparingRebalance")
            request = m.ConsumerGroupDescribeRequest(group_ids=["kill"])
            return len(wire.ask("ConsumerGroupDescribe", 1, request).groups[0].members) == 2

        until(is_known, "the second member is known")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_broker_that_is_killed_in_a_rebalance(protocol: str) -> None:
    with Broker() as broker:
        topic, group = fresh(broker), "kill"
        fill(broker, topic, 40)
        first, second = member(broker, group, protocol), member(broker, group, protocol)
        seen: list[int] = []
        first.subscribe([topic])
        poll_until(lambda: len(seen) >= 40, first, seen=seen)
        first.commit(asynchronous=False)
        second.subscribe([topic])
        _await_rebalance(broker, protocol, second)
        broker.kill()
        broker.start()
        poll_until(lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second)
        assert {p.offset for p in first.committed([TopicPartition(topic, n) for n in range(4)])} == {10}
        first.close()
        second.close()


async def test_aiokafka(broker: Broker) -> None:
    topic, group = fresh(broker), f"aio-{uuid.uuid4().hex[:6]}"
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for n in range(40):
            await producer.send_and_wait(topic, b"%d" % n, partition=n % 4)
    more: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap_servers,
        "group_id": group,
        "auto_offset_reset": "earliest",
    }
    more |= {"enable_auto_commit": False, "heartbeat_interval_ms": 200, "session_timeout_ms": 6000}
    async with AIOKafkaConsumer(topic, **more) as first, AIOKafkaConsumer(topic, **more) as second:
        seen: set[bytes | None] = set()
        async with asyncio.timeout(60):
            while len(seen) < 40 or not len(first.assignment()) == len(second.assignment()) == 2:
                for one in (first, second):
                    for batch in (await one.getmany(timeout_ms=50)).values():
                        seen |= {r.value for r in batch}
                        await one.commit()
        assert sorted(p.partition for p in first.assignment() | second.assignment()) == [0, 1, 2, 3]
        await asyncio.sleep(0)


def test_kafka_python(broker: Broker) -> None:
    topic, group = fresh(broker), f"py-{uuid.uuid4().hex[:6]}"
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for n in range(40):
        producer.send(topic, b"%d" % n, partition=n % 4).get(60)
    producer.close()
    seen: set[bytes] = set()
    done = threading.Event()

    def run() -> None:
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap_servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=200,
            session_timeout_ms=6000,
        )
        while not done.is_set():
            for batch in consumer.poll(100).values():
                seen.update(r.value for r in batch)
                consumer.commit()
            if len(seen) == 40:
                done.set()
        consumer.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(seen) == 40


@pytest.mark.oracle
def test_kafkas_own_consumers(tmp_path: Path) -> None:
    """Every stock assignor, both protocols, static members and patterns, scaled from one member to four and back under
    traffic.
    """
    command = program("tools", "GroupClients", tmp_path)
    with Broker() as broker:
        done = subprocess.run(
            [*command, broker.bootstrap_servers], capture_output=True, text=True, timeout=300, check=False
        )
    assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]


@pytest.mark.oracle
def test_kafka_streams_goes_from_one_instance_to_two_and_back(tmp_path: Path) -> None:
    """In a classic group, with members gathered for others and not for Streams; the program prints how long each step
    took.
    """
    command = program("streams", "StreamsScale", tmp_path)
    with Broker() as broker:
        done = subprocess.run(
            [*command, broker.bootstrap_servers, "scale", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    print(done.stdout)
    assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]


@pytest.mark.oracle
def test_kafkas_tools_for_groups(tmp_path: Path) -> None:
    with Broker() as broker:
        at = ["--bootstrap-server", broker.bootstrap_servers]
        topic = fresh(broker)
        fill(broker, topic, 40)

        def groups(*arguments: str) -> str:
            done = tool("consumer.group.ConsumerGroupCommand", *at, *arguments)
            return done.stdout + done.stderr

        live = [member(broker, f"live-{p}", p) for p in PROTOCOLS]
        seen: list[int] = []
        for one in live:
            one.subscribe([topic])
        poll_until(lambda: len(seen) >= 80, *live, seen=seen)
        for one in live:
            one.commit(asynchronous=False)

        def rows(out: str) -> list[list[str]]:
            return sorted(line.split() for line in out.splitlines() if line.startswith("live"))

        assert rows(groups("--list", "--state")) == [["live-classic", "Stable"], ["live-consumer", "Stable"]]
        assert rows(groups("--list", "--type")) == [["live-classic", "Classic"], ["live-consumer", "Consumer"]]
        both = rows(tool("GroupsCommand", *at, "--list").stdout)
        assert both == [["live-classic", "Classic", "consumer"], ["live-consumer", "Consumer", "consumer"]]
        described = groups("--describe", "--all-groups", "--verbose")
        assert described.count(topic) >= 8
        for name in ("live-consumer", "live-classic"):
            ((_, _, host, client, partitions, epoch, assigned, *_),) = rows(
                groups("--describe", "--group", name, "--members", "--verbose")
            )
            assert (host, client, partitions, assigned) == ("/127.0.0.1", "rdkafka", "4", f"{topic}:0,1,2,3")
            assert epoch.isdigit() is (name == "live-consumer")
        assert "Stable" in groups("--describe", "--group", "live-classic", "--state")
        assert "is not empty" in groups("--delete", "--group", "live-classic")
        for one in live:
            one.close()
        at_offset = ["--reset-offsets", "--group", "live-classic", "--topic", topic, "--execute"]
        for how, total in (
            (["--to-earliest"], 0),
            (["--to-latest"], 40),
            (["--shift-by", "-3"], 28),
            (["--to-offset", "5"], 20),
            (["--to-current"], 20),
            (["--by-duration", "PT1H"], 0),
            (["--to-datetime", "2000-01-01T00:00:00.000"], 0),
            (["--to-datetime", "2999-01-01T00:00:00.000"], 40),
        ):
            out = groups(*at_offset, *how)
            offsets = [int(line.split()[3]) for line in out.splitlines() if line.startswith("live-classic")]
            assert sum(offsets) == total, (how, out)
        exported = tmp_path / "reset.csv"
        exported.write_text(f"{topic},0,3\n")
        assert f"{topic}" in groups(
            "--reset-offsets", "--group", "live-classic", "--from-file", str(exported), "--execute"
        )
        assert "Successful" in groups("--delete-offsets", "--group", "live-classic", "--topic", topic)
        assert "successful" in groups("--delete", "--group", "live-classic", "--group", "live-consumer")
        assert "live" not in groups("--list")
        assert "live" not in tool("GroupsCommand", *at, "--list").stdout


@pytest.mark.go
def test_franz_go_and_sarama_in_groups(broker: Broker, go_clients: Run) -> None:
    go_clients(broker.bootstrap_servers, "groups", within=200)


@pytest.mark.node
def test_kafkajs_in_groups(broker: Broker, kafkajs: Run) -> None:
    kafkajs("groups.js", broker.bootstrap_servers, within=100)
