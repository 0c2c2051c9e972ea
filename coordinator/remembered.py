"""A cache of results by short names. What a client may choose is as long as a string may be:
of long names nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

R = TypeVar("R")
LENGTH_MAX = 1000  # of all arguments together


def remembered(count: int) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Remembers the last `count` results of a function of texts or bytes that are not long."""

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        cached = lru_cache(count)(function)

        @wraps(function)
        def call(name: str | bytes, *more: str | bytes) -> R:
            length = len(name)
            for other in more:
                length += len(other)
            return cached(name, *more) if length <= LENGTH_MAX else function(name, *more)

        return call

    return decorate
