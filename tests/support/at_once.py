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
IN_WORLD: Final = {key.replace(".", "_"): str(value).lower() for key, value in AT_ONCE.items()}
"""The same for a `World`."""
