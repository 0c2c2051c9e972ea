"""Programs of clients that produce or consume, for tests of what they do when they meet faults."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import CorruptRecordError
from kafka.errors import KafkaError as PyError

from ottla.testing import Broker

from .conftest import Run

COUNT = 8
TIMEOUT_MS = 2000
Program = Callable[[Broker, str, str, str], list[str]]
"""Produces or consumes COUNT records of a topic; returns the values, and `error ...` for what it was told."""


def librdkafka(broker: Broker, what: str, topic: str, group: str) -> list[str]:
    shared = {"bootstrap.servers": broker.bootstrap_servers, "socket.timeout.ms": TIMEOUT_MS, "log_level": 0}
    if what == "produce":
        producer = Producer({**shared, "enable.idempotence": True, "retry.backoff.ms": 100, "linger.ms": 0})
        failed: list[Any] = []
        for n in range(COUNT):
            producer.produce(topic, b"v%d" % n, on_delivery=lambda error, _: failed.append(error) if error else None)
            assert producer.flush(90) == 0
        return [f"error {error}" for error in failed]
    more = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False, "check.crcs": True}
    consumer = Consumer({**shared, **more, "fetch.error.backoff.ms": 100})
    consumer.subscribe([topic])
    found: list[str] = []
    try:
        while len(values_of(found)) < COUNT:
            message = consumer.poll(90)
            assert message is not None
            found.append(f"error {message.error()}" if message.error() else f"value {message.value().decode()}")
        _until_done(lambda: consumer.commit(asynchronous=False), KafkaException)
    finally:
        consumer.close()
    return found


def _until_done(call: Callable[[], object], *errors: type[Exception]) -> None:
    """Calls again while it raises one of the errors, a few times."""
    for left in reversed(range(10)):
        try:
            call()
            return
        except errors:
            if not left:
                raise
            time.sleep(0.1)


def kafka_python(broker: Broker, what: str, topic: str, group: str) -> list[str]:
    shared = {"bootstrap_servers": broker.bootstrap_servers, "request_timeout_ms": TIMEOUT_MS, "retry_backoff_ms": 100}
    if what == "produce":
        producer = KafkaProducer(**shared, enable_idempotence=True, max_block_ms=60_000, delivery_timeout_ms=60_000)
        for n in range(COUNT):
            producer.send(topic, b"v%d" % n).get(90)
        producer.close()
        return []
    found: list[str] = []
    of_group = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    session = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 500, "max_poll_interval_ms": 6500}

    def consuming() -> KafkaConsumer:
        return KafkaConsumer(topic, **{**shared, "request_timeout_ms": 7000}, **of_group, **session)

    consumer = consuming()
    until = time.monotonic() + 90
    while len(values_of(found)) < COUNT and time.monotonic() < until:
        try:
            for polled in consumer.poll(500).values():
                found += [f"value {record.value.decode()}" for record in polled]
        except PyError as error:
            found.append(f"error {error}")
            if isinstance(error, CorruptRecordError):  # it keeps what it has fetched: only another consumer helps
                consumer.close()
                consumer = consuming()
    _until_done(consumer.commit, PyError)
    consumer.close()
    return found


def aiokafka(broker: Broker, what: str, topic: str, group: str) -> list[str]:
    shared: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap_servers, "request_timeout_ms": TIMEOUT_MS, "retry_backoff_ms": 100
    }  # fmt: skip

    async def produce() -> list[str]:
        async with AIOKafkaProducer(**shared, enable_idempotence=True) as producer:
            for n in range(COUNT):
                await producer.send_and_wait(topic, b"v%d" % n)
        return []

    async def consume() -> list[str]:
        found: list[str] = []
        more = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False, "check_crcs": True}
        async with AIOKafkaConsumer(topic, **shared, **more) as consumer:
            while len(values_of(found)) < COUNT:
                try:
                    found.append(f"value {(await consumer.getone()).value.decode()}")
                except Exception as error:
                    found.append(f"error {error!r}")
            await consumer.commit()
        return found

    return asyncio.run(asyncio.wait_for(produce() if what == "produce" else consume(), 120))


def values_of(lines: list[str]) -> list[str]:
    return [line.removeprefix("value ") for line in lines if line.startswith("value ")]


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("value ", "error "))]


@pytest.fixture
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Program:
    """The program of a client."""
    name = request.param
    if name in ("franz-go", "sarama"):
        go: Run = request.getfixturevalue("go_clients")
        word = "franz-faults" if name == "franz-go" else "sarama-faults"
        return lambda broker, *more: _lines(go(broker.bootstrap_servers, word, *more, str(COUNT), within=120))
    if name == "kafkajs":
        node: Run = request.getfixturevalue("kafkajs")
        return lambda broker, *more: _lines(node("faults.js", broker.bootstrap_servers, *more, str(COUNT), within=120))
    if name == "java":
        from ..oracle.kafka import program as compiled

        command = compiled("tools", "FaultClients", tmp_path)

        def run(broker: Broker, *more: str) -> list[str]:
            whole = [*command, broker.bootstrap_servers, *more, str(COUNT)]
            done = subprocess.run(whole, capture_output=True, text=True, timeout=150, check=False)
            assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]
            return _lines(done.stdout)

        return run
    here: dict[str, Program] = {"librdkafka": librdkafka, "kafka-python": kafka_python, "aiokafka": aiokafka}
    return here[name]


CLIENTS = [
    *("librdkafka", "kafka-python", "aiokafka"),
    *(pytest.param(name, marks=pytest.mark.go) for name in ("franz-go", "sarama")),
    pytest.param("kafkajs", marks=pytest.mark.node),
    pytest.param("java", marks=pytest.mark.oracle),
]
WANTED = [f"v{n}" for n in range(COUNT)]
