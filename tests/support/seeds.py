"""Cases for `parametrize`: a few for every run of the tests, the others marked `slow`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
GIT_SECONDS = 60
ALL = "all"  # OTTLA_SEEDS=all: every part of what `in_turn` divides


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


def in_turn(cases: Sequence[Any], parts: int = 4) -> list[Any]:
    """Returns the quick ones of these cases, and one of `parts` equal parts of the slow ones. Which part it is depends
    on the commit: a commit always has the same part, and others have the other parts. OTTLA_SEEDS=all: all cases.
    """
    quick = [one for one in cases if not getattr(one, "marks", ())]
    others = [one for one in cases if getattr(one, "marks", ())]
    held = turns(parts)
    return quick + [one for at, one in enumerate(others) if at % parts in held]


def turns(parts: int = 4) -> Sequence[int]:
    """Returns which of `parts` parts of a space a commit holds: one; all with OTTLA_SEEDS=all."""
    return range(parts) if os.environ.get("OTTLA_SEEDS") == ALL else [_turn() % parts]


@cache
def _turn() -> int:
    """A number that the commit determines, 0 where there is no repository."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True, timeout=GIT_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return 0
    return int(done.stdout, 16)


def _span(first: int, end: int, *marks: pytest.MarkDecorator) -> Any:
    return pytest.param(range(first, end), id=f"{first} to {end - 1}", marks=marks)
