"""Deliberate bugs, put into the running code to see whether a simulator finds them.

`tests/sim/found.json` has a seed for each bug that finds it, which is tried first. What finds a bug changes with the
simulator: then the search begins at the first seed again. `OTTLA_SIM=record` with the tests of bugs writes the file.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import textwrap
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

# The owner of a function, the function, what stands there once, and what it is replaced by.
Bug = tuple[Any, str, str, str]
FOUND = Path(__file__).parents[1] / "sim" / "found.json"


def with_bug(bug: Bug) -> Callable[[], None]:
    """Puts a bug into the running code; returns what takes it out again."""
    owner, name, right, wrong = bug
    before = getattr(owner, name)
    if not isinstance(before, FunctionType):
        pytest.skip(f"{name} is compiled")
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


@cache
def _found() -> dict[str, dict[str, int]]:
    """By simulator and bug, a seed that finds it."""
    found: dict[str, dict[str, int]] = json.loads(FOUND.read_text())
    return found


def _record(simulator: str, bug: str, seed: int) -> None:
    _found().setdefault(simulator, {})[bug] = seed
    FOUND.write_text(json.dumps(_found(), indent=1, sort_keys=True) + "\n")


def assert_is_found(bug: Bug, run: Callable[[int], object], seeds: Iterable[int] = range(1000)) -> None:
    """A simulator finds a bug in one of its histories, and says in which. `run`: runs the history of a seed."""
    simulator, is_recorded = run.__module__.rpartition(".")[2], os.environ.get("OTTLA_SIM") == "record"
    key = f"{bug[1]}: {bug[2]} -> {bug[3]}"
    known = None if is_recorded else _found().get(simulator, {}).get(key)
    undo = with_bug(bug)
    try:
        with pytest.raises(AssertionError, match=r"^seed \d+: ") as found:
            run_all(run, seeds if known is None else [known, *seeds])
    finally:
        undo()
    if is_recorded:
        (seed,) = re.findall(r"^seed (\d+): ", str(found.value))
        _record(simulator, key, int(seed))
