"""The simulator of share groups: many histories hold, and it would find what it is there to find."""

from __future__ import annotations

import pytest

from . import sim_share
from .bugs import Bug, with_bug

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quiet")]


def _run(first: int, end: int) -> None:
    for seed in range(first, end):
        sim_share.run(seed)


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_a_thousand_histories_hold(first: int) -> None:
    _run(first, first + 100)


@pytest.mark.parametrize("bug", sim_share.BUGS, ids=lambda bug: f"{bug[1]}: {bug[3]}")
def test_a_deliberate_bug_is_found_within_a_thousand_histories(bug: Bug) -> None:
    undo = with_bug(bug)
    try:
        with pytest.raises(AssertionError, match=r"^seed \d+: "):
            _run(0, 1000)
    finally:
        undo()
