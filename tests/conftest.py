"""Fixtures that several test modules share: brokers, the oracle, and which tests can run here."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from .differential import Pair, Tally
from .oracle import jars
from .oracle.kafka import Kafka
from .wire import Wire


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


@pytest.fixture
def quiet() -> Iterator[None]:
    """Handlers that are broken on purpose have a lot to say."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="session")
def oracle() -> Iterator[Kafka]:
    """Apache Kafka 4.4.0, one for the session."""
    with Kafka({"group.consumer.assignment.interval.ms": 1000}) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """An ottla process, one for the module."""
    with Broker() as running:
        yield running


# two brokers side by side; the module that compares them has a fixture `ours`


@pytest.fixture(scope="module")
def tally() -> Tally:
    return Tally()


@pytest.fixture(scope="module")
def settled(oracle: Kafka) -> None:
    """Kafka answers before it has caught up with its own metadata; what is compared is what it says after that."""
    with Wire(oracle.bootstrap_servers) as wire:
        for _ in range(10_000):
            ids = wire.ask("InitProducerId", 4, m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
            listed = wire.ask("ApiVersions", 4, m.ApiVersionsRequest(client_software_name="w", client_software_version="1"))
            if ids.error_code == 0 and listed.finalized_features:
                return
    raise AssertionError("Kafka does not settle")


@pytest.fixture
def pair(ours: Broker, oracle: Kafka, settled: None, tally: Tally) -> Iterator[Pair]:
    found = Pair(ours.bootstrap_servers, oracle.bootstrap_servers, tally)
    before = len(tally.differences)
    yield found
    found.close()
    fresh = tally.differences[before:]
    assert not fresh, "\n".join([f"{len(fresh)} differences", *fresh[:12]])
