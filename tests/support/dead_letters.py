"""A share group with a dead-letter queue, for tests."""

from __future__ import annotations

from typing import Any

from .share_world import (
    EARLIEST,
    Consumer,
    produce,
    records_of,
    world,
)
from .world import World

QUEUE = "dlq.q"  # `errors.deadletterqueue.topic.name.prefix` is "dlq." unless it is set


AUTO: dict[str, Any] = {"errors_deadletterqueue_auto_create_topics_enable": "true"}


def ready(
    values: int = 3, partitions: int = 1, group: dict[str, str] | None = None, **settings: Any
) -> tuple[World, Consumer]:
    """A group with the queue `dlq.q`, and so many records in each partition of its topic."""
    w = world(partitions, group=EARLIEST | {"errors.deadletterqueue.topic.name": QUEUE} | (group or {}), **settings)
    one = Consumer(w, partitions=range(partitions))
    one.got()
    for partition in range(partitions):
        produce(w, *(b"%d" % n for n in range(values)), partition=partition)
    one.got()
    return w, one


def letters(w: World, topic: str = QUEUE, partition: int = 0) -> list[dict[str, str]]:
    """The headers of what is in the queue."""
    return [
        {name.removeprefix("__dlq.errors."): (value or b"").decode() for name, value in one.headers}
        for one in records_of(w.broker.partitions.get(topic, partition))
    ]
