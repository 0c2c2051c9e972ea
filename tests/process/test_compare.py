"""`ottla compare`: unchanged clients on a proxy in front of two brokers, and what it reports."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from ottla.protocol import messages as m
from ottla.protocol.frames import framed

from ottla.testing import Broker

from ..support.ask import batch, create, fetch, produce, produce_message
from ..support.compared import Compared, assert_same, compared
from ..support.wire import Closed, Wire, request_frame

pytestmark = pytest.mark.slow
QUIET = {"log_level": 0}

LEFT_OUT = "left out by --only or --ignore"


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Broker, Broker]]:
    settings: dict[str, object] = {"ottla.group.settle": False, "group.initial.rebalance.delay.ms": 100}
    with Broker(settings) as a, Broker(settings) as b:
        for broker, topics in ((a, 1), (b, 3)):  # their producer ids differ from now on
            with Wire(broker.bootstrap_servers) as wire:
                for _ in range(topics):
                    wire.ask("InitProducerId", 4, m.InitProducerIdRequest(transactional_id=None))
        yield a, b


@pytest.fixture
def proxy(pair: tuple[Broker, Broker]) -> Iterator[Compared]:
    with compared(*(one.bootstrap_servers for one in pair), "--timeout", "5") as found:
        yield found
        for broker in pair:
            broker.lab.reset()


def ends(broker: Broker, topic: str) -> list[int]:
    return [one["log_end_offset"] for one in broker.lab.topic(topic)["partitions"]]


def read(consumer: Any, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        for message in consumer.consume(count - len(found), 30.0):
            assert not message.error(), message.error()
            found.append(message.value())
    return found


def test_librdkafka(proxy: Compared, pair: tuple[Broker, Broker]) -> None:
    """Topics, records, groups of both protocols, transactions: no difference, and both brokers have the same."""
    servers = {"bootstrap.servers": proxy.bootstrap_servers, **QUIET}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic("rd", 3, 1)])["rd"].result()
    admin.create_partitions([NewPartitions("rd", 4)])["rd"].result()
    producer = Producer({**servers, "enable.idempotence": True})
    for n in range(50):
        producer.produce("rd", b"%d" % n, b"%d" % n, partition=n % 4)
    assert producer.flush(60) == 0
    for protocol in ("classic", "consumer"):
        config = {**servers, "group.id": f"rd-{protocol}", "group.protocol": protocol, "auto.offset.reset": "earliest"}
        consumer = Consumer(config)
        consumer.subscribe(["rd"])
        assert sorted(read(consumer, 50), key=int) == [b"%d" % n for n in range(50)]
        consumer.commit(asynchronous=False)
        consumer.close()
    writer = Producer({**servers, "transactional.id": "rd-writer"})
    writer.init_transactions(60)
    for end in (writer.commit_transaction, writer.abort_transaction, writer.commit_transaction):
        writer.begin_transaction()
        writer.produce("rd", b"in a transaction", partition=0)
        end(60)
    consumer = Consumer({**servers, "group.id": "none", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition("rd", 0, 0)])
    assert read(consumer, 15)[-2:] == [b"in a transaction"] * 2
    consumer.close()
    admin.describe_consumer_groups(["rd-classic"])["rd-classic"].result()
    admin.list_consumer_groups().result()
    proxy.end()
    assert_same(
        proxy,
        *(
            "CreateTopics",
            "CreatePartitions",
            "Produce",
            "Fetch",
            "JoinGroup",
            "ConsumerGroupHeartbeat",
            "OffsetCommit",
        ),
        *("InitProducerId", "AddPartitionsToTxn", "EndTxn", "ListOffsets", "DescribeGroups", "ListGroups"),
    )
    assert proxy.summary["ids"]["topic"] >= 1
    assert proxy.summary["ids"]["producer"] >= 2
    assert ends(pair[0], "rd") == ends(pair[1], "rd")


def test_kafka_python(proxy: Compared) -> None:
    producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers)
    for n in range(20):
        producer.send("py", b"%d" % n).get(60)
    producer.close()
    consumer = KafkaConsumer(
        "py", bootstrap_servers=proxy.bootstrap_servers, group_id="py", auto_offset_reset="earliest"
    )
    assert [next(consumer).value for _ in range(20)] == [b"%d" % n for n in range(20)]
    consumer.commit()
    consumer.close()
    proxy.end()
    assert_same(proxy, "Produce", "Fetch", "JoinGroup", "SyncGroup", "OffsetCommit", "LeaveGroup")


def test_aiokafka(proxy: Compared) -> None:
    async def work() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=proxy.bootstrap_servers, transactional_id="aio")
        await producer.start()
        async with producer.transaction():
            for n in range(10):
                await producer.send("aio", b"%d" % n)
        await producer.stop()
        consumer = AIOKafkaConsumer(
            "aio", bootstrap_servers=proxy.bootstrap_servers, group_id="aio", auto_offset_reset="earliest"
        )
        await consumer.start()
        assert [(await consumer.getone()).value for _ in range(10)] == [b"%d" % n for n in range(10)]
        await consumer.commit()
        await consumer.stop()

    asyncio.run(asyncio.wait_for(work(), 100))
    proxy.end()
    assert_same(proxy, "Produce", "Fetch", "JoinGroup", "EndTxn", "OffsetCommit")


def test_a_fault_of_b_is_found_by_its_path(proxy: Compared, pair: tuple[Broker, Broker]) -> None:
    with Wire(proxy.bootstrap_servers) as wire:
        create(wire, "faulty", 2)
        with pair[1].lab.fault("error", error="CORRUPT_MESSAGE", api="Produce", topic="faulty", times=1):
            assert produce(wire, "faulty", b"1").error_code == 0
            proxy.await_difference("Produce", "responses[faulty].partition_responses[0].error_code")
        fetch(wire, "faulty")  # B has no such record
        proxy.await_difference("Fetch", "responses[faulty].partitions[0].records[0]")
    proxy.end()
    assert proxy.code == 1
    shown = next(one for one in proxy.events if one["event"] == "difference")
    assert (shown["a"], shown["b"], shown["version"] > 0, "faulty" in shown["request"]) == ("0", "2", True, True)


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        ({"kind": "close", "at": "before-reply"}, "<closed the connection>"),
        ({"kind": "close", "at": "middle", "after_bytes": 6}, "<closed the connection>"),
        ({"kind": "no-reply"}, "<no reply in time>"),
    ],
    ids=["closed", "closed in the middle", "silent"],
)
def test_a_broken_connection_of_b_is_a_difference_and_the_client_goes_on(
    pair: tuple[Broker, Broker], fault: dict[str, Any], seen: str
) -> None:
    a, b = (one.bootstrap_servers for one in pair)
    with compared(a, b, "--timeout", "0.5") as proxy, Wire(proxy.bootstrap_servers) as wire:
        kind = fault["kind"]
        with pair[1].lab.fault(kind, api="ListGroups", times=1, **{k: v for k, v in fault.items() if k != "kind"}):
            assert wire.ask("ListGroups", 4, m.ListGroupsRequest()).error_code == 0
            proxy.await_difference("ListGroups", "connection")
        assert wire.ask("ListGroups", 4, m.ListGroupsRequest()).error_code == 0
        proxy.end()
        assert proxy.summary["compared"].get("ListGroups") == 1
    (shown,) = (one for one in proxy.events if one["event"] == "difference")
    assert (shown["a"], shown["b"]) == ("<a reply>", seen)


def test_requests_without_a_reply_and_unknown_apis(proxy: Compared, pair: tuple[Broker, Broker]) -> None:
    with Wire(proxy.bootstrap_servers) as wire:
        create(wire, "silent")
        message = produce_message("silent", batch(b"7"), acks=0)
        wire.send(request_frame("Produce", 9, message))
        assert fetch(wire, "silent") == [b"7"]
    for frame in (
        b"\x7f\x7f\0\0\0\0\0\1\0\0",
        request_frame("Metadata", 4, m.MetadataRequest())[4:6] + b"\0\x63" + b"\0" * 8,
    ):
        with Wire(proxy.bootstrap_servers) as wire:
            wire.send(framed(frame))
            with pytest.raises(Closed):
                wire.read_frame()
    proxy.end()
    assert_same(proxy)
    assert [ends(one, "silent") for one in pair] == [[1], [1]]


def test_garbage_ends_no_proxy(proxy: Compared) -> None:
    host, _, port = proxy.bootstrap_servers.rpartition(":")
    frame = request_frame("Metadata", 9, m.MetadataRequest(topics=[]))
    for data in (
        *(os.urandom(size) for size in (1, 3, 4, 40, 4000)),
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff" + b"x" * 100,
        b"GET / HTTP/1.1\r\n\r\n",
        framed(b""),
        framed(b"\0\3\0\x09"),
        *(frame[:size] for size in range(1, len(frame), 5)),
        framed(frame[4:-1]),
        framed(b"\0\3\0\x09\0\0\0\1\0\0\0" + b"\xff" * 5),
    ):
        with socket.create_connection((host, int(port)), 10) as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
    with Wire(proxy.bootstrap_servers) as wire:
        assert wire.ask("Metadata", 9, m.MetadataRequest(topics=[])).brokers
    proxy.end()
    assert_same(proxy, "Metadata")


def test_options(pair: tuple[Broker, Broker], tmp_path: Path) -> None:
    a, b = (one.bootstrap_servers for one in pair)
    file = tmp_path / "rules.yaml"
    file.write_text("- {api: Metadata, path: topics, reason: tried out}")
    options = ("--only", "Metadata", "--only", "FindCoordinator", "--ignore", "findcoordinator", "--rules", str(file))
    with compared(a, b, *options) as proxy, Wire(proxy.bootstrap_servers) as wire:
        wire.ask("ListGroups", 4, m.ListGroupsRequest())
        (node,) = wire.ask("Metadata", 9, m.MetadataRequest(topics=[])).brokers
        assert f"{node.host}:{node.port}" != a
        with Wire(f"{node.host}:{node.port}") as other:
            assert other.ask("Metadata", 9, m.MetadataRequest(topics=[])).brokers
        found = wire.ask("FindCoordinator", 6, m.FindCoordinatorRequest(coordinator_keys=["g"])).coordinators[0]
        assert (found.host, found.port) in ((node.host, node.port), ("", -1))
        (broker,) = wire.ask("DescribeCluster", 0, m.DescribeClusterRequest()).brokers
        assert (broker.host, broker.port) == (node.host, node.port)
    assert proxy.summary["compared"] == {"Metadata": 2}
    left_out = {one["api"]: one["count"] for one in proxy.summary["not_compared"] if one["reason"] == LEFT_OUT}
    assert left_out.keys() >= {"ListGroups", "FindCoordinator", "DescribeCluster"}
    with (
        compared(a, b, "--exit-on-difference") as proxy,
        Wire(proxy.bootstrap_servers) as wire,
        pair[1].lab.fault("error", error="GROUP_AUTHORIZATION_FAILED", api="ListGroups", times=1),
    ):
        wire.ask("ListGroups", 4, m.ListGroupsRequest())
        proxy.end(by_itself=True)
    # and the groups of other tests, which a reply with an error does not list
    assert ("ListGroups", "error_code") in proxy.differences
    assert {api for api, _ in proxy.differences} == {"ListGroups"}
    assert proxy.code == 1


def test_what_only_one_broker_has_is_said_at_once(pair: tuple[Broker, Broker]) -> None:
    with Broker({"ottla.emulate": "3.9"}) as older:
        for a, b, name in ((pair[0], older, "A"), (older, pair[0], "B")):
            with compared(a.bootstrap_servers, b.bootstrap_servers) as proxy:
                pass
            (note,) = (one["text"] for one in proxy.events if one["event"] == "note" and f"only {name}" in one["text"])
            assert "StreamsGroupHeartbeat" in note
            assert proxy.summary["notes"][0] == proxy.events[0]["text"]
