"""Fixtures that several test modules share: brokers, the oracle, and which tests can run here."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

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


LEFT: dict[Path, str] = {}  # data directories that tests left, and which test that was


WRONG_ON_PURPOSE = ("test_records_are_checked_in_full_when_asked",)


def pytest_configure(config: pytest.Config) -> None:
    """What a broker wrote stays until the end of the run, for Kafka's own tool to read."""
    if jars.missing() is not None:
        return
    close = Broker.close

    def keeping(broker: Broker) -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST", "")
        if broker.running:
            broker.stop()
        if broker.data_directory.exists() and not any(name in test for name in WRONG_ON_PURPOSE):
            kept = Path(tempfile.mkdtemp(prefix="ottla-left-"))
            shutil.copytree(broker.data_directory, kept / "data", ignore=shutil.ignore_patterns("*-delete"))
            LEFT[kept] = test
        close(broker)

    setattr(Broker, "close", keeping)  # noqa: B010  # a method cannot be assigned to


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Kafka's DumpLogSegments over every directory that a test left; a file that it does not like fails the run, by the test's name."""
    from .dumps import check_directory

    files = 0
    wrong = []
    for directory, test in LEFT.items():
        try:
            files += check_directory(directory)
        except AssertionError as error:
            wrong.append(f"{test} left {directory}: {error}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    if LEFT:
        print(f"\n{files} files of {len(LEFT)} data directories read by Kafka's DumpLogSegments, {len(wrong)} directories with complaints")
    if wrong:
        print("\n".join(wrong))
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


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
