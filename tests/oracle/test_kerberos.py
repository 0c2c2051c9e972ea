"""The recorded answers to `kerberos_cases` are what Kafka's own class says."""

from __future__ import annotations

import pytest

from .kerberos_cases import ask, cases, recorded

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def test_recorded_answers_are_kafkas() -> None:
    assert ask(cases()) == recorded()
