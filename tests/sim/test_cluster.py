"""The simulator of clusters: a part of a thousand histories holds, and each deliberate bug is found."""

from __future__ import annotations

import pytest

from ..support.bugs import Bug, assert_is_found, bug_name
from ..support.seeds import in_turn, spans
from . import cluster
from .cluster_bugs import BUGS

# Drained nodes that had been cut off were elected, and one that was eligible before `min.insync.replicas` changed;
# replicas did not follow a held leader that was cut off and healed while it paused;
# a replica stayed out of sync whose leader had asked for it with an outdated epoch;
# a new partition whose leader is not the first node was offline where the process was killed before its log was made.
FOUND = (950, 1142, 2023, 3114, 10033, 10187, 10583, 10912, 13448)
# A leader that was cut off did not wait for a replica that it had wanted in sync. The others were wrong invariants:
# a topic of the same name, a cancelled reassignment, a replica added behind a cut, a leader that hears of its election.
FOUND_WITH_SIDES = (10974, 3014, 5574, 8046, 8784, 10588, 12991, 14843, 19018)

pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.long]


@pytest.mark.parametrize("of", in_turn(spans(0, 1000, quick=10, each=25)))
def test_histories_hold(of: range) -> None:
    for seed in of:
        cluster.run(seed)


@pytest.mark.parametrize("seed", FOUND)
def test_a_history_that_found_a_bug_holds(seed: int) -> None:
    """Before there were sides of the network."""
    cluster.run(seed, is_early=True)


@pytest.mark.parametrize("seed", FOUND_WITH_SIDES)
def test_a_history_with_sides_that_found_a_bug_holds(seed: int) -> None:
    cluster.run(seed)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=bug_name)
def test_a_deliberate_bug_is_found_within_a_thousand_histories(bug: Bug) -> None:
    assert_is_found(bug, cluster.run)
