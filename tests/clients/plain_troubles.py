"""The troubles that clients get into in the verdict on them: a record is too large for its topic; of two clients that
claim to be the same, the younger one fences the older one, which goes on for longer than what was on its way may take;
and the broker refuses a batch as out of order, and has not written it. Programs in other languages are in the folders
beside this file.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

import kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import Consumer, KafkaException, Producer
from kafka.errors import KafkaError as PythonKafkaError

from ottla.testing import Broker

from ..support.librdkafka import fresh, member, poll_until
from ..support.poll import until

TOPIC: Final = "twins"
SMALL: Final = "small"
"""A topic whose batches have at most 1,000 bytes."""
ASTRAY: Final = "astray"
"""A topic of which the third batch is refused with OUT_OF_ORDER_SEQUENCE_NUMBER."""
ASTRAY_WRITES: Final = "astray-writes"
"""Another one, for transactions."""
ASTRAY_RECORDS: Final = 6
SIZES: Final = (5000, 1)  # of records: one that is too large, and one after it
SECONDS: Final = 60.0
VALUE: Final = b"value" * 100  # which is smaller when it is compressed
LONGER_SECONDS: Final = 6.0
"""For so long the older one goes on: in five seconds it may send what it had begun."""
STATIC_MEMBER: Final = "KIP-345.static-stays"
FENCED_MEMBER: Final = "KIP-345.fenced-stops"
REFUSED_MEMBER: Final = "KIP-848.refused-stops"


def go_astray(broker: Broker) -> None:
    """Lets the broker refuse batches as out of order."""
    for topic in (ASTRAY, ASTRAY_WRITES):
        action = {"kind": "error", "error": "OUT_OF_ORDER_SEQUENCE_NUMBER"}
        broker.lab.post("faults", {"api": "Produce", "topic": topic, "nth": 3, "action": action})


def is_exercised(broker: Broker, rule: str) -> bool:
    """Whether the verdict has seen a client in the situation of a rule."""
    outcomes = (one for client in broker.lab.get("verdict")["clients"] for one in client["rules"])
    return any(one["id"] == rule and one["outcome"] != "not exercised" for one in outcomes)


def longer() -> Callable[[], bool]:
    """Returns what tells whether LONGER_SECONDS are over."""
    end = time.monotonic() + LONGER_SECONDS
    return lambda: time.monotonic() > end


def librdkafka(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, "log_level": 0})
    for size in SIZES:
        producer.produce(SMALL, bytes(size))
        producer.flush(SECONDS)
    _librdkafka_astray(broker.bootstrap_servers)
    topic = fresh(broker, 1)
    _librdkafka_writers(broker, topic)
    _librdkafka_members(broker, topic, "classic", FENCED_MEMBER)
    _librdkafka_members(broker, topic, "consumer", REFUSED_MEMBER)


def _librdkafka_astray(at: str) -> None:
    """A producer that has given up is made again by its application."""
    config: dict[str, Any] = {"bootstrap.servers": at, "log_level": 0}
    producer = Producer({**config, "enable.idempotence": True})
    for _ in range(ASTRAY_RECORDS):
        try:
            producer.produce(ASTRAY, VALUE)
            producer.flush(SECONDS)
        except KafkaException:
            producer = Producer({**config, "enable.idempotence": True})

    def made() -> Producer:
        found = Producer({**config, "transactional.id": ASTRAY})
        found.init_transactions(SECONDS)
        return found

    producer = made()
    for _ in range(ASTRAY_RECORDS // 2):
        producer.begin_transaction()
        try:
            for _ in range(2):
                producer.produce(ASTRAY_WRITES, VALUE)
                producer.flush(SECONDS)
            producer.commit_transaction(SECONDS)
        except KafkaException:
            try:
                producer.abort_transaction(SECONDS)
            except KafkaException:
                producer = made()


def _librdkafka_writers(broker: Broker, topic: str) -> None:
    config = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic, "log_level": 0}
    old, young = (Producer({**config, "compression.type": "zstd"}) for _ in range(2))
    for one in (old, young):
        one.init_transactions(SECONDS)
        one.begin_transaction()
        one.produce(topic, VALUE)
        one.flush(SECONDS)
    with suppress(KafkaException):
        old.commit_transaction(SECONDS)
    young.commit_transaction(SECONDS)


def _librdkafka_members(broker: Broker, topic: str, protocol: str, rule: str) -> None:
    """In groups of KIP-848 the younger one is refused, and the older one stays."""

    def comes() -> Consumer:
        made = member(broker, f"{topic}-{protocol}", protocol, group_instance_id="twin")
        made.subscribe([topic])
        return made

    old = comes()
    poll_until(lambda: bool(old.assignment()), old)
    young = comes()
    poll_until(lambda: is_exercised(broker, rule), old, young)
    poll_until(longer(), old, young)
    young.close()
    old.close()


def kcat(broker: Broker) -> None:
    """A run after a batch that is refused is another producer. A static member goes and comes again."""
    _kcat_lines(broker.bootstrap_servers, SMALL, SIZES, "enable.idempotence=true")
    for _ in range(2):
        for topic, option in ((ASTRAY, "enable.idempotence=true"), (ASTRAY_WRITES, f"transactional.id={ASTRAY}")):
            _kcat_lines(broker.bootstrap_servers, topic, (1,) * ASTRAY_RECORDS, option)
        _kcat_member(broker)


def _kcat_lines(at: str, topic: str, sizes: Iterable[int], option: str) -> None:
    """Each line is a batch, and waits for the one before."""
    options = (option, "batch.num.messages=1", "max.in.flight=1")
    settings = [part for one in options for part in ("-X", one)]
    lines = b"".join(b"x" * size + b"\n" for size in sizes)
    command = ["kcat", "-b", at, "-P", "-t", topic, *settings]
    subprocess.run(command, input=lines, capture_output=True, timeout=SECONDS, check=False)


def _kcat_member(broker: Broker) -> None:
    """A static member that has said that it lives."""
    options = ("group.instance.id=twin", "heartbeat.interval.ms=100", "auto.offset.reset=earliest")
    settings = [part for one in options for part in ("-X", one)]
    command = ["kcat", "-b", broker.bootstrap_servers, "-q", "-u", *settings, "-G", TOPIC, SMALL]
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)
    try:
        until(lambda: is_exercised(broker, STATIC_MEMBER), "a heartbeat of a static member", SECONDS, every=0.1)
    finally:
        process.terminate()
        process.wait(SECONDS)


def aiokafka(broker: Broker) -> None:
    asyncio.run(asyncio.wait_for(_aiokafka(broker), 4 * SECONDS))


async def _aiokafka(broker: Broker) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True) as producer:
        for size in SIZES:
            with suppress(AioKafkaError):
                await producer.send_and_wait(SMALL, bytes(size))
    await _aiokafka_astray(broker.bootstrap_servers)
    await _aiokafka_writers(broker.bootstrap_servers)
    await _aiokafka_members(broker)


async def _aiokafka_astray(at: str) -> None:
    """An application sends on after an error, and aborts a transaction that had one."""
    async with AIOKafkaProducer(bootstrap_servers=at, enable_idempotence=True) as producer:
        for _ in range(ASTRAY_RECORDS):
            with suppress(AioKafkaError):
                await producer.send_and_wait(ASTRAY, VALUE)
    async with AIOKafkaProducer(bootstrap_servers=at, transactional_id=ASTRAY) as producer:
        for _ in range(ASTRAY_RECORDS // 2):
            await producer.begin_transaction()
            try:
                for _ in range(2):
                    await producer.send_and_wait(ASTRAY_WRITES, VALUE)
                await producer.commit_transaction()
            except AioKafkaError:
                await producer.abort_transaction()


async def _aiokafka_writers(at: str) -> None:
    more = {"transactional_id": TOPIC, "compression_type": "zstd"}
    old, young = (AIOKafkaProducer(bootstrap_servers=at, **more) for _ in range(2))
    for one in (old, young):
        await one.start()
        await one.begin_transaction()
        await one.send_and_wait(TOPIC, VALUE)
    with suppress(AioKafkaError):
        await old.commit_transaction()
    await young.commit_transaction()
    await young.stop()
    with suppress(AioKafkaError):
        await old.stop()


async def _aiokafka_members(broker: Broker) -> None:
    """A static member commits, says that it lives, goes, and comes again. Two at once would fence each other for ever:
    neither hears of it.
    """
    more: dict[str, Any] = {"bootstrap_servers": broker.bootstrap_servers, "group_id": TOPIC}
    more |= {"group_instance_id": "twin", "heartbeat_interval_ms": 200, "session_timeout_ms": 6000}
    for _ in range(2):
        async with AIOKafkaConsumer(TOPIC, **more) as one:
            while not one.assignment() or not await asyncio.to_thread(is_exercised, broker, STATIC_MEMBER):
                await one.getmany(timeout_ms=50)
            await one.commit(dict.fromkeys(one.assignment(), 0))


def kafka_python(broker: Broker) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True)
    for size in SIZES:
        with suppress(PythonKafkaError):
            producer.send(SMALL, bytes(size)).get(SECONDS)
    for _ in range(ASTRAY_RECORDS):
        with suppress(PythonKafkaError):
            producer.send(ASTRAY, VALUE).get(SECONDS)
    producer.close()
    _kafka_python_astray(broker.bootstrap_servers)
    _kafka_python_writers(broker.bootstrap_servers)
    _kafka_python_members(broker)


def _kafka_python_astray(at: str) -> None:
    """An application makes a producer again whose transaction cannot be aborted."""

    def made() -> kafka.KafkaProducer:
        found = kafka.KafkaProducer(bootstrap_servers=at, transactional_id=ASTRAY)
        found.init_transactions()
        return found

    producer = made()
    for _ in range(ASTRAY_RECORDS // 2):
        producer.begin_transaction()
        try:
            for _ in range(2):
                producer.send(ASTRAY_WRITES, VALUE).get(SECONDS)
            producer.commit_transaction()
        except PythonKafkaError:
            try:
                producer.abort_transaction()
            except PythonKafkaError:
                producer.close()
                producer = made()
    producer.close()


def _kafka_python_writers(at: str) -> None:
    more = {"transactional_id": TOPIC, "compression_type": "zstd"}
    old, young = (kafka.KafkaProducer(bootstrap_servers=at, **more) for _ in range(2))
    for one in (old, young):
        one.init_transactions()
        one.begin_transaction()
        one.send(TOPIC, VALUE).get(SECONDS)
    with suppress(PythonKafkaError):
        old.commit_transaction()
    young.commit_transaction()
    for one in (young, old):
        one.close(SECONDS)


class _Member(threading.Thread):
    """A static member in a thread of its own, which reads until it is told to go."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self.goes = threading.Event()
        self.has_partitions = threading.Event()
        more: dict[str, Any] = {"group_id": TOPIC, "group_instance_id": "twin"}
        more |= {"heartbeat_interval_ms": 200, "session_timeout_ms": 6000}
        self._consumer = kafka.KafkaConsumer(TOPIC, bootstrap_servers=at, **more)
        self.start()

    def run(self) -> None:
        while not self.goes.is_set():
            with suppress(PythonKafkaError):
                self._consumer.poll(50)
            if self._consumer.assignment():
                self.has_partitions.set()
        self._consumer.close()

    def leave(self) -> None:
        self.goes.set()
        self.join()


def _kafka_python_members(broker: Broker) -> None:
    """The last one is alone, and leads its group as the one before did, which only went (KIP-814)."""
    old = _Member(broker.bootstrap_servers)
    assert old.has_partitions.wait(SECONDS)
    young = _Member(broker.bootstrap_servers)
    until(lambda: is_exercised(broker, FENCED_MEMBER), "the older one is fenced", SECONDS, every=0.1)
    time.sleep(2 * LONGER_SECONDS)  # for an auto commit, which comes every five seconds
    for one in (old, young):
        one.leave()
    last = _Member(broker.bootstrap_servers)
    assert last.has_partitions.wait(SECONDS)
    last.leave()
