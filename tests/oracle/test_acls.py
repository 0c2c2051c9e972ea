"""The recorded answers to `acl_cases` are what Kafka's own class says."""

from __future__ import annotations

import pytest

from .acl_cases import WORLDS, ask, recorded, world

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def test_recorded_answers_are_kafkas() -> None:
    assert ask([world(seed) for seed in range(WORLDS)]) == recorded()
