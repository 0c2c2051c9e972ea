"""Histories of users with rights and quotas hold, and would not with one mistake in any part of it."""

from __future__ import annotations

import pytest

from ..support.bugs import Bug, with_bug
from ..support.seeds import spans
from . import security as sim_security

pytestmark = pytest.mark.usefixtures("quiet")


def _run(seeds: range) -> None:
    for seed in seeds:
        sim_security.run(seed)


@pytest.mark.parametrize("seeds", spans(0, 300, quick=5))
def test_histories_hold(seeds: range) -> None:
    _run(seeds)


@pytest.mark.slow
@pytest.mark.parametrize("bug", sim_security.BUGS, ids=[f"{bug[1]}: {bug[3]}" for bug in sim_security.BUGS])
def test_a_deliberate_bug_is_found(bug: Bug) -> None:
    undo = with_bug(bug)
    try:
        with pytest.raises(AssertionError, match=r"^seed \d+: "):
            _run(range(1000))
    finally:
        undo()
