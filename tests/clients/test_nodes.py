"""Real clients over three nodes."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Broker

from ..support.poll import until

pytestmark = pytest.mark.slow
COUNT = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[Broker]:
    settings: dict[str, object] = {
        "ottla.nodes": 3,
        "offsets.topic.num.partitions": 6,
        "transaction.state.log.num.partitions": 6,
    }
    with Broker(settings) as running:
        yield running


def create(cluster: Broker, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(name, 6, 3)])[name].result()


def test_librdkafka_uses_all_nodes(cluster: Broker) -> None:
    create(cluster, "librdkafka")
    last = cluster.bootstrap_servers.rpartition(",")[2]  # one address leads to all nodes
    producer = Producer({"bootstrap.servers": last, "enable.idempotence": True, "log_level": 2})
    assert set(producer.list_topics(timeout=10).brokers) == {1, 2, 3}
    for number in range(COUNT):
        producer.produce("librdkafka", str(number))
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": last, "group.id": "g1", "auto.offset.reset": "earliest", "log_level": 2})
    consumer.subscribe(["librdkafka"])
    found: list[int] = []
    while len(found) < COUNT:
        message = consumer.poll(20)
        assert message is not None
        found.append(int(message.value() or b""))
    consumer.commit(asynchronous=False)
    consumer.close()
    assert sorted(found) == list(range(COUNT))


def test_aiokafka_uses_all_nodes(cluster: Broker) -> None:
    create(cluster, "aiokafka")

    async def work() -> list[int]:
        producer = AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, enable_idempotence=True, transactional_id="tx"
        )
        await producer.start()
        async with producer.transaction():
            for number in range(COUNT):
                await producer.send("aiokafka", str(number).encode())
        await producer.stop()
        consumer = AIOKafkaConsumer(
            "aiokafka",
            bootstrap_servers=cluster.bootstrap_servers,
            group_id="g2",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await consumer.start()
        found = [int((await asyncio.wait_for(anext(consumer), 20)).value or b"") for _ in range(COUNT)]
        await consumer.stop()
        return found

    assert sorted(asyncio.run(work())) == list(range(COUNT))


def restart_all(cluster: Broker, produced: Callable[[], int]) -> None:
    """Stops or kills each node, and starts it again, while more and more is acknowledged."""
    for node, how in ((1, "stop"), (2, "kill"), (3, "stop")):
        for do in (how, *(("fence",) if how == "kill" else ()), "start"):
            before = produced()
            cluster.lab.post(f"nodes/{node}", do=do)
            until(lambda before=before: produced() >= before + 50, f"records after {do} of node {node}", within=30)  # type: ignore[misc]


def test_librdkafka_loses_and_repeats_nothing_while_nodes_restart(cluster: Broker) -> None:
    create(cluster, "restarts")
    servers, acknowledged, failed, stop = cluster.bootstrap_servers, [0], list[str](), threading.Event()

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failed.append(str(error))
        acknowledged[0] += 1

    def feed() -> None:
        producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
        number = 0
        while not stop.is_set():
            producer.produce("restarts", str(number), on_delivery=delivered)
            number += 1
            producer.poll(0.002)
        assert producer.flush(30) == 0

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        restart_all(cluster, lambda: acknowledged[0])
    finally:
        stop.set()
        feeder.join()
    assert not failed
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "restarts", "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe(["restarts"])
    found: list[int] = []
    while len(found) < acknowledged[0]:
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None
        found.append(int(message.value() or b""))
    consumer.close()
    assert sorted(found) == list(range(acknowledged[0]))


async def stop(consumer: AIOKafkaConsumer) -> None:
    """Stops one whose last fetch failed, too: aiokafka 0.14 raises what it cancels then, and leaves sockets open."""
    try:
        await consumer.stop()
    except asyncio.CancelledError:
        await consumer._client.close()


def test_aiokafka_consumes_in_a_group_while_nodes_restart(cluster: Broker) -> None:
    create(cluster, "followed")
    consumed: list[int] = []

    async def work() -> None:
        servers = cluster.bootstrap_servers
        producer = AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True)
        consumer = AIOKafkaConsumer(
            "followed",
            bootstrap_servers=servers,
            group_id="followers",
            auto_offset_reset="earliest",
            auto_commit_interval_ms=100,
        )
        await producer.start()
        await consumer.start()
        restarts = asyncio.create_task(asyncio.to_thread(restart_all, cluster, lambda: len(consumed)))
        sent = 0
        while not restarts.done():
            await producer.send_and_wait("followed", str(sent).encode())
            sent += 1
            for records in (await consumer.getmany(timeout_ms=1)).values():
                consumed.extend(int(one.value or b"") for one in records)
        await restarts
        while len(set(consumed)) < sent:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                consumed.extend(int(one.value or b"") for one in records)
        await producer.stop()
        await consumer.commit()  # the coordinator is found again; aiokafka's stop() would wait for it for ever
        await stop(consumer)
        assert sorted(set(consumed)) == list(range(sent))

    asyncio.run(asyncio.wait_for(work(), 120))


def test_transactions_are_whole_while_nodes_restart(cluster: Broker) -> None:
    """Each is of five records in several partitions, whose leaders and coordinator move. aiokafka 0.14 gives up where a
    connection is lost while it looks for the coordinator: then the transaction is there as a whole or not at all.
    """
    create(cluster, "whole")
    servers, committed, doubtful = cluster.bootstrap_servers, [0], set[int]()

    async def begun() -> AIOKafkaProducer:
        producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="whole", request_timeout_ms=10_000)
        await producer.start()
        return producer

    async def commit_some(producer: AIOKafkaProducer, number: int) -> None:
        async with producer.transaction():
            for part in range(5):
                await producer.send("whole", f"{number}".encode(), partition=part)

    async def work() -> None:
        producer = await begun()
        restarts = asyncio.create_task(asyncio.to_thread(restart_all, cluster, lambda: committed[0]))
        while not restarts.done():
            try:
                await asyncio.wait_for(commit_some(producer, committed[0]), 30)
            except KafkaError:
                doubtful.add(committed[0])
                await producer.stop()
                producer = await begun()
            committed[0] += 1
        await restarts
        await producer.stop()
        assert len(doubtful) < committed[0] / 10
        consumer = AIOKafkaConsumer(
            "whole",
            bootstrap_servers=servers,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            group_id=None,
        )
        await consumer.start()
        ends = await consumer.end_offsets(consumer.assignment() or [TopicPartition("whole", part) for part in range(5)])
        found = Counter[bytes | None]()
        while any([await consumer.position(one) < end for one, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                found.update(one.value for one in records)
        await stop(consumer)
        counts = [found[b"%d" % number] for number in range(committed[0])]
        assert {count for number, count in enumerate(counts) if number not in doubtful} == {5}
        assert {counts[number] for number in doubtful} <= {0, 5}

    asyncio.run(asyncio.wait_for(work(), 120))
