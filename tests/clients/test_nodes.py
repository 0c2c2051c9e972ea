"""Real clients over three nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Broker

pytestmark = pytest.mark.slow
COUNT = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[Broker]:
    with Broker({"ottla.nodes": 3, "num.partitions": 6, "default.replication.factor": 3}) as running:
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
