"""Histories in which one call fails, with an exception of any kind."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from ottla.broker.turn import Turn
from ottla.storage.files import HandlePool

from ..support.bugs import Bug, assert_is_found, bug_name
from ..support.seeds import all_slow, in_turn, spans
from . import faults as sim_faults

pytestmark = pytest.mark.long

# What would be seen if an exception took others with it: a flush that is forgotten, a failed append's log that is
# trusted
BUGS: tuple[Bug, ...] = (
    (Turn, "settle", "self.later(RETRY_MS, partial(self.wrote, writes))", "pass"),
    (Turn, "_move_all", "self.later(RETRY_MS, partial(self.moved, partition))", "pass"),
    (HandlePool, "close_under", "self.close(path)", "pass"),
)


def _run(seeds: Iterable[int]) -> None:
    for seed in seeds:
        sim_faults.run(seed)


@pytest.mark.parametrize("seeds", in_turn([*spans(0, 150, quick=8, each=25), *all_slow(1000, 1400, each=25)]))
def test_histories_hold(seeds: range) -> None:
    _run(seeds)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=bug_name)
def test_a_deliberate_bug_is_found(bug: Bug) -> None:
    assert_is_found(bug, sim_faults.run)
