"""Deliberate bugs, put into the running code to see whether a simulator finds them."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

import pytest

# The owner of a function, the function, what stands there once, and what it is replaced by.
Bug = tuple[Any, str, str, str]


def with_bug(bug: Bug) -> Callable[[], None]:
    """Puts a bug into the running code; returns what takes it out again."""
    owner, name, right, wrong = bug
    before = getattr(owner, name)
    source = textwrap.dedent(inspect.getsource(before))
    assert source.count(right) == 1, f"{name} has no line {right!r} of its own"
    scope: dict[str, Any] = {}
    exec(
        compile(f"from __future__ import annotations\n{source.replace(right, wrong)}", name, "exec"),
        before.__globals__,
        scope,
    )
    code = before.__code__
    before.__code__ = scope[name].__code__  # in the function itself, which tables and other modules hold too
    return lambda: setattr(before, "__code__", code)


def bug_name(bug: Bug) -> str:
    """Returns the name of a bug's test: the function, and what it has in place of what is right."""
    return f"{bug[1]}: {bug[3]}"


def run_all(run: Callable[[int], object], seeds: Iterable[int]) -> None:
    """Runs the histories of some seeds."""
    for seed in seeds:
        run(seed)


def assert_is_found(bug: Bug, run: Callable[[int], object], seeds: Iterable[int] = range(1000)) -> None:
    """A simulator finds a bug in one of its histories, and says in which. `run`: runs the history of a seed."""
    undo = with_bug(bug)
    try:
        with pytest.raises(AssertionError, match=r"^seed \d+: "):
            run_all(run, seeds)
    finally:
        undo()
