"""Kafka's own assignor of streams groups gives 10,000 random groups the tasks that ottla's gives them."""

from __future__ import annotations

import pytest
from ottla.coordinator.group.assignors import finished
from ottla.coordinator.group.streams.sticky import steps

from .task_cases import GROUPS, KEPT, ask, group, recorded, words

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def test_every_group_has_the_assignment_that_kafka_makes() -> None:
    specs = [group(seed) for seed in range(GROUPS)]
    answers = ask(specs)
    assert answers[:KEPT] == recorded()
    for seed, (spec, answer) in enumerate(zip(specs, answers, strict=True)):
        assert words(dict(finished(steps(spec)))) == answer, f"seed {seed}"
