"""Fixtures that several test modules share: brokers, the oracle, and which tests can run here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator

import pytest

from ottla.testing import Broker

from .oracle import jars
from .oracle.kafka import Kafka


def _without(command: str, name: str) -> str | None:
    return None if shutil.which(command) else f"needs {name}"


NEEDS: dict[str, Callable[[], str | None]] = {
    "oracle": jars.missing,
    "go": lambda: _without("go", "Go"),
    "node": lambda: _without("npm", "Node.js and npm"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that needs a JVM, Go or Node skips where there is none, and fails there in CI."""
    for item in items:
        for marker, missing in NEEDS.items():
            reason = missing() if item.get_closest_marker(marker) else None
            if reason and not os.environ.get("CI"):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def oracle() -> Iterator[Kafka]:
    """Apache Kafka 4.4.0, one for the session."""
    with Kafka() as kafka:
        yield kafka


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """An ottla process, one for the module."""
    with Broker() as running:
        yield running
