"""Waiting in tests, always with a bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

WITHIN_S = 120.0
T = TypeVar("T")


def until(condition: Callable[[], T | None], what: str, within: float = WITHIN_S, every: float = 0.0) -> T:
    """Calls `condition` until it returns something true, and returns that.

    `within` and `every` are seconds. A condition that asks a broker needs no pause; one that looks at another process's
    files does. AssertionError with `what` was waited for and the last value: the time is over.
    """
    end = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < end, f"{what}: not within {within:g} s; last: {found!r}"
        time.sleep(every)
    return found
