"""The recorded answers to `quota_cases` are what Kafka's own classes say."""

from __future__ import annotations

import pytest

from .quota_cases import WORLDS, ask, recorded, world

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def test_recorded_answers_are_kafkas() -> None:
    assert ask([world(seed) for seed in range(WORLDS)]) == recorded()
