"""Fixtures that several test modules share: brokers, the oracle, and which tests can run here."""

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from ottla.protocol import messages as m

from ottla import build
from ottla.testing import Broker

from .oracle import jars
from .oracle.kafka import Kafka
from .support import compiled, transcripts
from .support.differences import first_difference
from .support.differential import WITHOUT_RETENTION, Kept, Pair, Tally, told
from .support.poll import until
from .support.transcripts import Transcript
from .support.wire import Wire

END_SECONDS_MAX = 900  # from the last test to the end of the process


def _without(command: str, name: str) -> str | None:
    return None if shutil.which(command) else f"needs {name}"


NEEDS: dict[str, Callable[[], str | None]] = {
    "oracle": jars.missing,
    "gcc": lambda: _without("gcc", "a C compiler"),
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


def pytest_collection() -> None:
    """What is imported and collected stays: the garbage collector would look at it again and again in vain."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end: from here on the garbage collector passes them over."""
    gc.freeze()
    gc.enable()


LEFT: dict[Path, str] = {}  # data directories that tests left, and which test that was


def pytest_assertrepr_compare(op: str, left: object, right: object) -> None:
    """Says itself what large values have different: pytest's own words would be made whatever is returned."""
    __tracebackhide__ = True
    if op == "==" and (found := first_difference(left, right)):
        raise AssertionError("\n".join(found))


def pytest_report_header() -> str:
    return f"ottla: {build.kind()}"


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("OTTLA_WARM", "0")  # most brokers of tests live for seconds
    compiled.configure()
    settings.register_profile("quick", max_examples=20, deadline=None, derandomize=True)
    settings.register_profile("all", max_examples=200, deadline=None, derandomize="CI" in os.environ)
    settings.load_profile("quick" if "not slow" in config.option.markexpr else "all")
    if "not oracle" not in config.option.markexpr:
        _keep_directories()


def _keep_directories() -> None:
    """What a broker wrote stays until the end of the run, for Kafka's own tool to read."""
    if jars.missing() is not None:
        return
    close = Broker.close

    def keeping(broker: Broker) -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST", "")
        try:
            if broker.running:
                broker.stop()
            if broker.data_directory.exists():
                kept = Path(tempfile.mkdtemp(prefix="ottla-left-"))
                shutil.copytree(broker.data_directory, kept / "data", ignore=shutil.ignore_patterns("*-delete"))
                LEFT[kept] = test
        finally:
            close(broker)

    setattr(Broker, "close", keeping)  # noqa: B010  # a method cannot be assigned to


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Kafka's DumpLogSegments over every directory that a test left; a file that it does not like fails the run, by the
    test's name.
    """
    from .oracle import brokers, tools
    from .support.dumps import check_directory

    faulthandler.dump_traceback_later(END_SECONDS_MAX, exit=True)
    files = 0
    wrong = []
    for directory, test in LEFT.items():
        try:
            files += check_directory(directory)
        except AssertionError as error:
            wrong.append(f"{test} left {directory}: {error}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    tools.stop()
    brokers.stop()
    if LEFT:
        print(
            f"\n{files} files of {len(LEFT)} data directories read by Kafka's DumpLogSegments, {len(wrong)} "
            "directories with complaints"
        )
    if wrong:
        print("\n".join(wrong))
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR  # no second run of a test mends it


@pytest.fixture
def quiet() -> Iterator[None]:
    """Handlers that are broken on purpose have a lot to say."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="session")
def oracle() -> Iterator[Kafka]:
    """Apache Kafka 4.4.0, one for the session. Where stories ask it, it has the loggers of its process alone."""
    often = {"group.consumer.assignment.interval.ms": 1000, **WITHOUT_RETENTION}
    with Kafka(often, own_process=transcripts.mode() != "recorded") as kafka:
        yield kafka


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """An ottla process, one for the module."""
    with Broker() as running:
        yield running


# two brokers side by side; the module that compares them has a fixture `ours`


@pytest.fixture(scope="session")
def tally() -> Tally:
    return Tally()


@pytest.fixture(scope="session")
def kept() -> Iterator[Kept]:
    found = Kept()
    yield found
    found.close()


@pytest.fixture(scope="module")
def kafka(request: pytest.FixtureRequest) -> str:
    """Kafka's address for the differential stories; empty where its transcripts are played."""
    if transcripts.mode() == "recorded":
        return ""
    oracle: Kafka = request.getfixturevalue("oracle")
    return oracle.bootstrap_servers


@pytest.fixture(scope="module")
def settled(kafka: str) -> None:
    """Kafka answers before it has caught up with its own metadata; what is compared is what it says after that."""
    if not kafka:
        return
    with Wire(kafka) as wire:
        ids = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        versions = m.ApiVersionsRequest(client_software_name="w", client_software_version="1")

        def is_settled() -> bool:
            first = wire.ask("InitProducerId", 4, ids)
            return first.error_code == 0 and bool(wire.ask("ApiVersions", 4, versions).finalized_features)

        until(is_settled, "Kafka settles")


@pytest.fixture
def pair(ours: Broker, kafka: str, settled: None, tally: Tally, request: pytest.FixtureRequest) -> Iterator[Pair]:
    with told(tally, Transcript(request.node.nodeid, playing=not kafka), transcripts.mode()) as transcript:
        found = Pair(ours.bootstrap_servers, kafka, tally, transcript)
        yield found
        found.close()
