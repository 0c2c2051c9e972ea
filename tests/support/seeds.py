"""Cases for `parametrize`: a few for every run of the tests, the others marked `slow`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest


def slow(cases: Iterable[Any]) -> list[Any]:
    """These cases, marked `slow`. A tuple is the values of several parameters."""
    return [pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.slow) for one in cases]


def seeds(count: int, quick: int) -> list[Any]:
    """0 to `count`, of which the first `quick` are not slow."""
    return [*range(quick), *slow(range(quick, count))]


def spans(first: int, count: int, quick: int, each: int = 100) -> list[Any]:
    """`count` seeds from `first` on as ranges: one of `quick` seeds, and slow ones of up to `each`."""
    return [_span(first, first + quick), *all_slow(first + quick, first + count, each)]


def all_slow(first: int, end: int, each: int = 100) -> Iterator[Any]:
    """The seeds before `end` in ranges of up to `each`, marked `slow`."""
    for at in range(first, end, each):
        yield _span(at, min(at + each, end), pytest.mark.slow)


def _span(first: int, end: int, *marks: pytest.MarkDecorator) -> Any:
    return pytest.param(range(first, end), id=f"{first} to {end - 1}", marks=marks)
