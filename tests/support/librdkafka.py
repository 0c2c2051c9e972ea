"""Consumers of librdkafka in groups of both protocols."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Broker

from .poll import until

PROTOCOLS = ["classic", "consumer"]


def fresh(broker: Broker, partitions: int = 4) -> str:
    name = f"g-{uuid.uuid4().hex[:10]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
    return name


def fill(broker: Broker, topic: str, count: int, partitions: int = 4) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2})
    for n in range(count):
        producer.produce(topic, b"%d" % n, partition=n % partitions)
    assert producer.flush(60) == 0


def member(broker: Broker, group: str, protocol: str, **more: Any) -> Consumer:
    config = {
        "bootstrap.servers": broker.bootstrap_servers,
        "log_level": 2,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **({"heartbeat.interval.ms": 200, "session.timeout.ms": 6000} if protocol == "classic" else {}),
        **{k.replace("_", "."): v for k, v in more.items()},
    }
    return Consumer(config)


def poll_until(
    condition: Callable[[], bool], *members: Consumer, seen: list[int] | None = None, within: float = 120
) -> None:
    """Polls every member in turn until the condition holds."""

    def holds() -> bool:
        for one in members:
            message = one.poll(0.02)
            if message is not None and message.error() is None and seen is not None:
                seen.append(int(message.value()))
        return condition()

    try:
        until(holds, "the members come to this", within)
    except AssertionError as error:
        assigned = [[p.partition for p in one.assignment()] for one in members]
        raise AssertionError(f"{error}; assignments {assigned}") from None
