"""The simulators of groups, share groups and transactions: many histories hold, and each would find what it is there to
find.
"""

from __future__ import annotations

from types import ModuleType

import pytest

from ..support.bugs import Bug, assert_is_found, bug_name, run_all
from ..support.seeds import all_slow, in_turn
from . import groups as sim_groups
from . import share as sim_share
from . import transactions as sim_transactions

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quiet")]
SIMULATORS = (sim_groups, sim_share, sim_transactions)


def _name(value: object) -> str:
    if isinstance(value, ModuleType):
        return value.__name__.rpartition(".")[2]
    return bug_name(value) if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize("seeds", in_turn([*all_slow(0, 400, each=25)]))
@pytest.mark.parametrize("simulator", SIMULATORS, ids=_name)
def test_histories_hold(simulator: ModuleType, seeds: range) -> None:
    run_all(simulator.run, seeds)


@pytest.mark.parametrize(("simulator", "bug"), [(one, bug) for one in SIMULATORS for bug in one.BUGS], ids=_name)
def test_a_deliberate_bug_is_found_within_a_thousand_histories(simulator: ModuleType, bug: Bug) -> None:
    assert_is_found(bug, simulator.run)
