"""The recorded replies to requests that fail as a whole are those of Kafka's own classes."""

from __future__ import annotations

import pytest

from . import documented_errors
from .error_reply_cases import asked, recorded

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def test_recorded_documentation_is_that_of_kafkas_jar() -> None:
    assert documented_errors.of_messages() == documented_errors.recorded()["messages"]


def test_recorded_replies_are_kafkas() -> None:
    assert asked() == recorded()
