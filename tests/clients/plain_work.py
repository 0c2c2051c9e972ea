"""What a client does in the verdict on it: it produces with idempotence, consumes in groups whose members come and go,
and does transactions, as far as it has them. Programs in other languages are in the folders beside this file.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from aiokafka.structs import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, Producer, ShareConsumer
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as PythonNewTopic
from kafka.structs import OffsetAndMetadata

from ottla.testing import Broker

from ..support.librdkafka import PROTOCOLS, fill, fresh, member, poll_until
from ..support.poll import until

TOPIC, PARTITIONS, RECORDS = "work", 4, 40
SECONDS = 60.0


def librdkafka(broker: Broker) -> None:
    for protocol in PROTOCOLS:
        _librdkafka_group(broker, protocol)
        _librdkafka_transactions(broker, protocol)
    _librdkafka_cooperative(broker)
    _librdkafka_share(broker)


def _share(members: Sequence[Consumer], each: int) -> bool:
    """Whether each member has so many partitions."""
    return all(len(one.assignment()) == each for one in members)


def _librdkafka_cooperative(broker: Broker) -> None:
    """A second member comes, for which the first one gives partitions away."""
    topic = fresh(broker, PARTITIONS)
    members: list[Consumer] = []
    for count in (1, 2):
        members.append(member(broker, topic, "classic", partition_assignment_strategy="cooperative-sticky"))
        members[-1].subscribe([topic])
        poll_until(partial(_share, members, PARTITIONS // count), *members)
    for one in members:
        one.close()


def _librdkafka_group(broker: Broker, protocol: str) -> None:
    topic = fresh(broker, PARTITIONS)
    fill(broker, topic, RECORDS, PARTITIONS)
    first, second = (member(broker, topic, protocol, group_instance_id=name) for name in ("a", "b"))
    third, seen = member(broker, topic, protocol), list[int]()
    for one in (first, second, third):
        one.subscribe([topic])
    poll_until(
        lambda: len(set(seen)) == RECORDS and all(one.assignment() for one in (first, second, third)),
        *(first, second, third),
        seen=seen,
    )
    first.commit(asynchronous=False)
    third.close()
    poll_until(lambda: len(first.assignment()) + len(second.assignment()) == PARTITIONS, first, second)
    second.close()
    second = member(broker, topic, protocol, group_instance_id="b")
    second.subscribe([topic])
    poll_until(lambda: len(second.assignment()) == PARTITIONS // 2, first, second)
    first.close()
    second.close()


def _librdkafka_transactions(broker: Broker, protocol: str) -> None:
    topic = fresh(broker, PARTITIONS)
    fill(broker, topic, RECORDS, PARTITIONS)
    consumer = member(broker, topic, protocol, isolation_level="read_committed")
    consumer.subscribe([topic])
    seen: list[int] = []
    poll_until(lambda: len(seen) == RECORDS, consumer, seen=seen)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic, "log_level": 2})
    producer.init_transactions(SECONDS)
    for number in range(6):
        _librdkafka_transaction(producer, consumer, topic, number)
    consumer.close()


def _librdkafka_transaction(producer: Producer, consumer: Consumer, topic: str, number: int) -> None:
    producer.begin_transaction()
    for partition in range(2):
        producer.produce(topic, b"%d" % number, partition=partition)
    position = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), SECONDS)
    if number % 3:
        producer.commit_transaction(SECONDS)
    else:
        producer.flush(SECONDS)
        producer.abort_transaction(SECONDS)


def _librdkafka_share(broker: Broker) -> None:
    topic = fresh(broker, 1)
    broker.lab.post("seed", {"topics": [{"name": topic}]})
    consumer = ShareConsumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": f"{topic}-share", "log_level": 2}
    )
    consumer.subscribe([topic])
    seen: list[bytes] = []

    def read() -> bool:
        fill(broker, topic, 1, 1)  # a share group begins at the end of its topic
        seen.extend(one.value() for one in consumer.poll(0.5) or () if one.error() is None)
        return len(seen) >= 5

    until(read, "records of the queue", SECONDS)
    consumer.commit_sync()
    consumer.close()


def aiokafka(broker: Broker) -> None:
    asyncio.run(asyncio.wait_for(_aiokafka(broker.bootstrap_servers), 4 * SECONDS))


async def _aiokafka(at: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=at)
    await admin.start()
    await admin.create_topics([AioNewTopic(TOPIC, PARTITIONS, 1)])
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=at, enable_idempotence=True) as producer:
        for number in range(RECORDS):
            await producer.send_and_wait(TOPIC, b"%d" % number, partition=number % PARTITIONS)
    await _aiokafka_group(at)
    await _aiokafka_transactions(at)


async def _aiokafka_group(at: str) -> None:
    more: dict[str, Any] = {"bootstrap_servers": at, "group_id": "group", "auto_offset_reset": "earliest"}
    more |= {"enable_auto_commit": False, "heartbeat_interval_ms": 200, "session_timeout_ms": 6000}
    seen: set[bytes | None] = set()

    async def read(*members: AIOKafkaConsumer) -> None:
        for one in members:
            for batch in (await one.getmany(timeout_ms=50)).values():
                seen.update(record.value for record in batch)
                await one.commit()

    async with AIOKafkaConsumer(TOPIC, **more) as first:
        async with AIOKafkaConsumer(TOPIC, **more) as second:
            while len(seen) < RECORDS or len(first.assignment()) != len(second.assignment()):
                await read(first, second)
        while len(first.assignment()) < PARTITIONS:
            await read(first)


async def _aiokafka_transactions(at: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=at, transactional_id="transactions") as producer:
        for number in range(6):
            await producer.begin_transaction()
            await producer.send_and_wait(TOPIC, b"%d" % number, partition=number % 2)
            await producer.send_offsets_to_transaction({AioTopicPartition(TOPIC, 0): number + 1}, "group")
            await (producer.commit_transaction() if number % 3 else producer.abort_transaction())
    committed: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer(TOPIC, bootstrap_servers=at, **committed) as consumer:
        await consumer.getmany(timeout_ms=1000)


def kafka_python(broker: Broker) -> None:
    at = broker.bootstrap_servers
    admin = KafkaAdminClient(bootstrap_servers=at)
    admin.create_topics([PythonNewTopic(TOPIC, PARTITIONS, 1)])
    admin.close()
    producer = kafka.KafkaProducer(bootstrap_servers=at, enable_idempotence=True)
    for number in range(RECORDS):
        producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS).get(SECONDS)
    producer.close()
    _kafka_python_group(at)
    _kafka_python_transactions(at)


def _kafka_python_group(at: str) -> None:
    """Two members share the topic; then one goes, and the other has everything."""
    seen: set[bytes] = set()
    owned = [0, 0]
    ends = [threading.Event(), threading.Event()]

    def run(member: int) -> None:
        more = {"group_id": "group", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        consumer = kafka.KafkaConsumer(
            TOPIC, bootstrap_servers=at, heartbeat_interval_ms=200, session_timeout_ms=6000, **more
        )
        while not ends[member].is_set():
            for batch in consumer.poll(100).values():
                seen.update(record.value for record in batch)
                consumer.commit()
            owned[member] = len(consumer.assignment())
        consumer.close()

    threads = [threading.Thread(target=run, args=(one,)) for one in range(2)]
    try:
        for thread in threads:
            thread.start()
        until(lambda: len(seen) == RECORDS and owned == [2, 2], "two members share", SECONDS, every=0.02)
        ends[1].set()
        until(lambda: owned[0] == PARTITIONS, "one member has everything", SECONDS, every=0.02)
    finally:
        for end, thread in zip(ends, threads, strict=True):
            end.set()
            thread.join()


def _kafka_python_transactions(at: str) -> None:
    consumer = kafka.KafkaConsumer(
        TOPIC,
        bootstrap_servers=at,
        group_id="transactions",
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    until(lambda: consumer.poll(100), "the member has its partitions", SECONDS)
    producer = kafka.KafkaProducer(bootstrap_servers=at, transactional_id="transactions")
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        producer.send(TOPIC, b"%d" % number, partition=number % 2).get(SECONDS)
        offsets = {kafka.TopicPartition(TOPIC, 0): OffsetAndMetadata(number + 1, "", -1)}
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        if number % 3:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()
    consumer.close()


def kcat(broker: Broker) -> None:
    at = ["kcat", "-b", broker.bootstrap_servers]
    lines = "".join(f"{number}\n" for number in range(RECORDS)).encode()

    def run(*arguments: str) -> None:
        subprocess.run([*at, *arguments], input=lines, capture_output=True, timeout=SECONDS, check=True)

    run("-L")
    for options in (("-X", "enable.idempotence=true"), ("-X", "transactional.id=transactions"), ("-z", "zstd")):
        run("-P", "-t", TOPIC, *options)
    run("-C", "-t", TOPIC, "-o", "beginning", "-e", "-q")
    run("-q", "-c", str(RECORDS), "-X", "auto.offset.reset=earliest", "-G", "group", TOPIC)
    run("-Q", "-t", f"{TOPIC}:0:-1")
