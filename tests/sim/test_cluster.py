"""The simulator of clusters: a thousand histories hold, and each deliberate bug is found."""

from __future__ import annotations

import pytest

from ..support.bugs import Bug, with_bug
from ..support.seeds import spans
from . import cluster
from .cluster_bugs import BUGS

pytestmark = pytest.mark.usefixtures("quiet")


def _run(of: range) -> None:
    for seed in of:
        cluster.run(seed)


def _name(bug: Bug) -> str:
    return f"{bug[1]}: {bug[3]}"


@pytest.mark.parametrize("of", spans(0, 1000, quick=10))
def test_a_thousand_histories_hold(of: range) -> None:
    _run(of)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=_name)
def test_a_deliberate_bug_is_found_within_a_thousand_histories(bug: Bug) -> None:
    undo = with_bug(bug)
    try:
        with pytest.raises(AssertionError, match=r"^seed \d+: "):
            _run(range(1000))
    finally:
        undo()
