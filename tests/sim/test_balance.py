"""The simulator of groups of `ottla.classic`: many histories hold, and each deliberate bug is found."""

from __future__ import annotations

import pytest

from ..support.bugs import Bug, assert_is_found, bug_name, run_all
from ..support.seeds import spans
from . import balance


@pytest.mark.long
@pytest.mark.parametrize("seeds", spans(0, 300, quick=20))
def test_histories_hold(seeds: range) -> None:
    run_all(balance.run, seeds)


@pytest.mark.slow
@pytest.mark.parametrize("bug", balance.BUGS, ids=bug_name)
def test_a_deliberate_bug_is_found(bug: Bug) -> None:
    assert_is_found(bug, balance.run)
