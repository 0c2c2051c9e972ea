"""The simulator of connections: a part of a thousand histories holds, and each deliberate bug is found."""

from __future__ import annotations

import pytest

from ..support.bugs import Bug, assert_is_found, bug_name
from ..support.seeds import in_turn, spans
from . import connections
from .connection_bugs import BUGS

pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.long]


@pytest.mark.parametrize("of", in_turn(spans(0, 1000, quick=30, each=25)))
def test_histories_hold(of: range) -> None:
    for seed in of:
        connections.run(seed)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=bug_name)
def test_a_deliberate_bug_is_found_within_a_thousand_histories(bug: Bug) -> None:
    assert_is_found(bug, connections.run)
