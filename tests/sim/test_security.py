"""Histories of users with rights and quotas hold, and would not with one mistake in any part of it."""

from __future__ import annotations

import pytest

from ..support.bugs import Bug, assert_is_found, bug_name
from ..support.seeds import in_turn, spans
from . import security as sim_security

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.long
@pytest.mark.parametrize("seeds", in_turn(spans(0, 300, quick=5, each=25)))
def test_histories_hold(seeds: range) -> None:
    for seed in seeds:
        sim_security.run(seed)


@pytest.mark.slow
@pytest.mark.parametrize("bug", sim_security.BUGS, ids=bug_name)
def test_a_deliberate_bug_is_found(bug: Bug) -> None:
    assert_is_found(bug, sim_security.run)
