"""Kafka's own assignors give 10,000 random groups the partitions that ottla's give them."""

from __future__ import annotations

import pytest

from .assignor_cases import FAILS, GROUPS, KEPT, ask, group, recorded, words

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def test_every_group_has_the_assignment_that_kafka_makes() -> None:
    groups = [group(seed) for seed in range(GROUPS)]
    answers = ask(groups)
    assert answers[:KEPT] == recorded()
    for seed, (one, answer) in enumerate(zip(groups, answers, strict=True)):
        if answer != FAILS:
            assert words(one.assigned(), one.spec.members) == answer, f"seed {seed}"
