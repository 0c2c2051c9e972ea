"""The recorded answers to `config_cases` are what Kafka's own classes say."""

from __future__ import annotations

import pytest

from .config_cases import ask, cases, name_of, recorded

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def test_recorded_answers_are_kafkas() -> None:
    asked = cases()
    assert {
        name_of(case): words for case, words in zip(asked, ask(asked), strict=True) if words is not None
    } == recorded()
