"""The recorded MBeans are those that a Kafka has."""

from __future__ import annotations

import pytest

from .mbeans import ask, recorded

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def test_recorded_mbeans_are_kafkas() -> None:
    assert ask() == recorded()
