"""What Kafka's own assignors give the members of random groups (`tests/oracle/assignor_cases.py`)."""

from __future__ import annotations

import pytest
from ottla.coordinator.group.modern import with_changed
from ottla.coordinator.group.share.group import ShareMember

from ..oracle.assignor_cases import FAILS, KEPT, group, recorded, words
from ..support.seeds import spans


@pytest.mark.parametrize("seeds", spans(0, KEPT, quick=100))
def test_members_get_the_partitions_that_kafka_gives_them(seeds: range) -> None:
    said = recorded()
    assert len(said) == KEPT
    for seed in seeds:
        one = group(seed)
        if said[seed] != FAILS:
            assert words(one.assigned(), one.spec.members) == said[seed], f"seed {seed}"


def test_a_member_that_changes_keeps_its_place_among_the_members() -> None:
    before = [ShareMember(name) for name in ("b", "a", "c")]
    changed, new = ShareMember("a", rack_id="r"), ShareMember("d")
    assert with_changed(before, changed) == [before[0], changed, before[2]]
    assert with_changed(before, new, {"b"}) == [before[1], before[2], new]
