"""The simulator of transactions: many histories hold, and it would find what it is there to find."""

from __future__ import annotations

import pytest

from . import sim_transactions
from .bugs import Bug, with_bug

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quiet")]


def _run(seeds: int) -> None:
    for seed in range(seeds):
        sim_transactions.run(seed)


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_a_thousand_histories_hold(first: int) -> None:
    for seed in range(first, first + 100):
        sim_transactions.run(seed)


@pytest.mark.parametrize("bug", sim_transactions.BUGS, ids=lambda bug: f"{bug[1]}: {bug[3]}")
def test_a_deliberate_bug_is_found_within_a_thousand_histories(bug: Bug) -> None:
    undo = with_bug(bug)
    try:
        with pytest.raises(AssertionError, match=r"^seed \d+: "):
            _run(1000)
    finally:
        undo()
