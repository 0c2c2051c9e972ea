"""The simulators of groups, share groups and transactions: many histories hold, and each would find what it is there to
find.
"""

from __future__ import annotations

from types import ModuleType

import pytest

from ..support.bugs import Bug, assert_is_found, bug_name
from . import groups as sim_groups
from . import share as sim_share
from . import transactions as sim_transactions

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quiet")]
SIMULATORS = (sim_groups, sim_share, sim_transactions)


def _run(simulator: ModuleType, first: int, count: int) -> None:
    for seed in range(first, first + count):
        simulator.run(seed)


def _name(value: object) -> str:
    if isinstance(value, ModuleType):
        return value.__name__.rpartition(".")[2]
    return bug_name(value) if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize("first", range(0, 400, 100))
@pytest.mark.parametrize("simulator", SIMULATORS, ids=_name)
def test_four_hundred_histories_hold(simulator: ModuleType, first: int) -> None:
    _run(simulator, first, 100)


@pytest.mark.parametrize(("simulator", "bug"), [(one, bug) for one in SIMULATORS for bug in one.BUGS], ids=_name)
def test_a_deliberate_bug_is_found_within_a_thousand_histories(simulator: ModuleType, bug: Bug) -> None:
    assert_is_found(bug, simulator.run)
