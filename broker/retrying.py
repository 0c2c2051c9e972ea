"""Retries like those of Kafka's inter-broker clients: five attempts, at growing intervals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterator
from typing import TypeVar

from ..protocol.errors import ApiError
from .turn import Turn

T = TypeVar("T")
ATTEMPTS = 5
BACKOFF_MS, BACKOFF_MAX_MS = 1000, 30_000


async def retried(turn: Turn, retriable: Container[int], attempt: Callable[[], Awaitable[T]]) -> T:
    """Returns the result of the first successful attempt. Raises the first ApiError that is not `retriable`, or that of
    the last attempt.
    """
    for backoff_ms in backoffs_ms():
        try:
            return await attempt()
        except ApiError as error:
            if backoff_ms is None or error.code not in retriable:
                raise
        await turn.pause(backoff_ms)
    raise AssertionError("the last attempt returns or raises")


def backoffs_ms() -> Iterator[int | None]:
    """Yields how long to wait after each attempt; None after the last one."""
    for number in range(ATTEMPTS - 1):
        yield min(BACKOFF_MS << number, BACKOFF_MAX_MS)
    yield None
