"""Fixtures for pytest: `ottla_broker`, one broker for the session, and `ottla_topic`, a fresh topic for each test.

Keys for the broker's configuration go into the ini option `ottla_settings`, one `key=value` a line.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from .testing import Broker


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("ottla_settings", "configuration of the ottla broker, one key=value a line", type="linelist", default=[])


@pytest.fixture(scope="session")
def ottla_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker process on a free port of loopback, ready to serve; ended after the session."""
    settings = dict(line.partition("=")[::2] for line in request.config.getini("ottla_settings"))
    with Broker({key.strip(): value.strip() for key, value in settings.items()}) as broker:
        request.config.stash[_BROKER] = broker
        yield broker


@pytest.fixture
def ottla_topic(ottla_broker: Broker) -> str:
    """The name of a topic that nobody else uses; the broker creates it when a client first asks for it."""
    return f"topic-{uuid.uuid4().hex[:12]}"


_BROKER = pytest.StashKey[Broker]()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """Shows the broker's log with a test that failed."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    broker = item.config.stash.get(_BROKER, None)
    if report.failed and broker is not None and "ottla_broker" in getattr(item, "fixturenames", ()):
        report.sections.append(("ottla broker", broker.log))
