"""Damaged directories lose nothing in silence, and bugs that would lose data are found."""

from __future__ import annotations

import pytest

from ..support.bugs import Bug, assert_is_found, bug_name
from ..support.seeds import all_slow, in_turn, spans
from . import damage as sim_damage


@pytest.mark.long
@pytest.mark.parametrize("seeds", in_turn([*spans(30_000, 50, quick=6, each=25), *all_slow(0, 300, each=25)]))
def test_damaged_directories_lose_nothing_in_silence(seeds: range) -> None:
    for seed in seeds:
        sim_damage.run(seed)


@pytest.mark.slow
@pytest.mark.parametrize("bug", sim_damage.BUGS, ids=bug_name)
def test_a_deliberate_bug_is_found_within_a_thousand_directories(bug: Bug) -> None:
    assert_is_found(bug, sim_damage.run)
