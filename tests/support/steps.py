"""Work in steps, done at once."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from ottla.storage.log import Log
from ottla.storage.rebuilding import answered

T = TypeVar("T")


def result_of(work: Generator[Any, Any, T]) -> T:
    """What the work returns once all its steps are done."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


def answer_of(log: Log, ask: Callable[[], T]) -> T:
    """What a log answers once the indexes are rebuilt that are found damaged."""
    return result_of(answered(log, ask))
