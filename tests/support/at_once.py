"""Settings of brokers whose groups neither wait nor settle, so that each reply follows from the requests before it."""

from __future__ import annotations

from typing import Final

AT_ONCE: Final[dict[str, object]] = {
    "ottla.group.settle": False,
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "group.share.assignment.interval.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
}
SHORTEST: Final[dict[str, object]] = {
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.share.min.session.timeout.ms": 1000,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.min.record.lock.duration.ms": 1000,
}
"""Settings of brokers on which sessions and locks of records may be short."""


def for_world(settings: dict[str, object]) -> dict[str, str]:
    """The same settings for a `World`."""
    return {key.replace(".", "_"): str(value).lower() for key, value in settings.items()}


IN_WORLD: Final = for_world(AT_ONCE)
