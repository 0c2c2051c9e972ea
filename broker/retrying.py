"""Trying again, as Kafka's inter-broker clients do: five times, at growing intervals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container
from typing import TYPE_CHECKING, TypeVar

from ..protocol.errors import ApiError

if TYPE_CHECKING:
    from .broker import Broker

T = TypeVar("T")
ATTEMPTS = 5
BACKOFF_MS, BACKOFF_MAX_MS = 1000, 30_000


async def retried(broker: Broker, retriable: Container[int], attempt: Callable[[], Awaitable[T]]) -> T:
    """What an attempt gives. ApiError: one that is not `retriable`, or the last one's."""
    backoff_ms = BACKOFF_MS
    for left in reversed(range(ATTEMPTS)):
        try:
            return await attempt()
        except ApiError as error:
            if not left or error.code not in retriable:
                raise
        await broker.pause(backoff_ms)
        backoff_ms = min(2 * backoff_ms, BACKOFF_MAX_MS)
    raise AssertionError("the last attempt returns or raises")
