"""One Spark session for all tests, and two data directories with the same story: one of ottla, and one that Apache
Kafka 4.4.0 wrote.

The session starts while the tests run that need none, and other processes work while the tests run that do not need
them.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ottla.pipeline.java import cache_directory, check_java, class_archive

from ottla import pipeline
from ottla.testing import Broker

from ..oracle import jars
from ..support.verdict_reports import measuring
from . import apart, cluster, live, story

FAST = {
    **pipeline.SMALL,
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
}
WITH_JAVAS = {"killed_export", "on_a_cluster", "in_a_server"}
HERE = Path(__file__).parent
ARCHIVE = HERE / "data" / "kafka.tar.xz"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs nothing else comes first: Spark starts meanwhile, with the environment that some tests change. What
    takes long beside the tests is waited for at the end. What has several Javas of its own runs only with
    OTTLA_CLUSTER=1: two cores that run all tests are too slow for it.
    """
    if not os.environ.get("OTTLA_CLUSTER"):
        items[:] = [item for item in items if not fixtures_of(item) & WITH_JAVAS]
    own = [item for item in items if item.path.is_relative_to(HERE)]
    items[:] = [item for item in items if not item.path.is_relative_to(HERE)] + sorted(own, key=_turn)


def _turn(item: pytest.Item) -> int:
    needed = fixtures_of(item)
    if needed & {"declared", "live_on_kafkas_clients", *WITH_JAVAS}:
        return 2
    return int(bool(needed & {"spark", "broker", "in_s3", "monkeypatch"}))


def fixtures_of(item: pytest.Item) -> set[str]:
    return set(item.fixturenames) if isinstance(item, pytest.Function) else set()


class Beside:
    """Things that are done beside the tests, by name; each is begun when the first of all is, if any test that runs
    wants it.
    """

    def __init__(self, wanted: set[str]) -> None:
        self.wanted, self.pool = wanted, ThreadPoolExecutor(4)
        self.done: dict[str, Future[Any]] = {}

    def begin(self, fixture: str, work: Callable[[], Any]) -> None:
        if fixture in self.wanted:
            self.done[fixture] = self.pool.submit(work)

    def after(self, fixture: str, work: Callable[[], Any]) -> Any:
        """Does what would take the processor from what is waited for first."""
        if fixture in self.done:
            wait([self.done[fixture]])
        return work()


@pytest.fixture(scope="session", autouse=True)
def beside(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, archive: Path) -> Iterator[Beside]:
    """What fixtures of the same names return."""
    needed = Beside(
        {name for item in request.session.items if isinstance(item, pytest.Function) for name in item.fixturenames}
    )
    if needed.wanted & {"live_on_librdkafka", "live_on_kafkas_clients"}:
        measuring()  # two threads that read sources at the same time can fail (CPython 3.11, issue 106905)
    needed.begin("spark", lambda: started(str(archive / "story")))
    needed.begin("served", lambda: serve(tmp_path_factory.mktemp("served")))
    for name, judge in (
        ("live_on_kafkas_clients", live.on_kafkas_clients),
        ("live_on_librdkafka", live.on_librdkafka),
    ):
        needed.begin(name, partial(judge, tmp_path_factory.mktemp(name)))
    needed.begin(
        "killed_export", lambda: apart.killed_export(str(archive / "story"), tmp_path_factory.mktemp("export"))
    )
    needed.begin(
        "declared",
        lambda: needed.after(
            "spark", lambda: apart.declared(str(archive / "story"), tmp_path_factory.mktemp("declared"))
        ),
    )
    needed.begin("in_a_server", lambda: apart.served(str(archive / "story"), tmp_path_factory.mktemp("server")))
    if "on_a_cluster" in needed.wanted:
        stored = request.getfixturevalue("in_s3")
        needed.begin("on_a_cluster", lambda: cluster.run_job("lag", stored, tmp_path_factory.mktemp("cluster")))
    yield needed
    needed.pool.shutdown(cancel_futures=True)
    session = needed.done.get("spark")
    if session is not None and not session.cancelled() and session.exception() is None:
        session.result().stop()


def started(directory: str) -> Any:
    """A session that has read a directory: it has the processes of Python that it needs. Raises RuntimeError without
    Java.
    """
    check_java()
    connector = jars.connector()
    # an archive is used if there is one: to make it takes longer than what it saves here
    classes = class_archive(cache_directory(), Path(pipeline.spark_home(), "jars"), create=False)
    java = {pipeline.JAVA_OPTIONS: f"{FAST[pipeline.JAVA_OPTIONS]} {classes}"}
    session = pipeline.session(**{**FAST, **java, **({"spark.jars": connector} if connector else {})})
    session.read.format("kafka-log").option("path", directory).load().where("offset = 0").count()
    return session


@pytest.fixture(scope="session")
def spark(beside: Beside) -> Any:
    try:
        session = beside.done["spark"].result()
    except RuntimeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    # makes it the active one of this thread, too: what is written goes to the formats that are registered in that
    session.createDataFrame([], "n int")
    return session


class Told(NamedTuple):
    """A data directory after the story, and the truth about it."""

    path: str
    truth: story.Truth

    def read(self, topic: str) -> list[tuple[Any, ...]]:
        """The committed records of a topic, as a client got them."""
        rows: list[list[Any]] = self.truth["records"][topic]
        return [(*row[:5], [tuple(pair) for pair in row[5]]) for row in rows]


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kafka's directories: `story`, `before` and `after`."""
    directory = tmp_path_factory.mktemp("kafka")
    with tarfile.open(ARCHIVE) as file:
        file.extractall(directory, filter="data")
    return directory


def serve(directory: Path) -> Told:
    with Broker(story.SETTINGS, directory=directory) as broker:
        truth = story.tell(broker.bootstrap_servers)
    return Told(str(directory / "data"), truth)


@pytest.fixture(scope="session")
def served(beside: Beside) -> Told:
    """ottla's."""
    found: Told = beside.done["served"].result()
    return found


@pytest.fixture(scope="session")
def killed_export(beside: Beside) -> Path:
    """What an export of Kafka's directory had written when it was killed."""
    found: Path = beside.done["killed_export"].result()
    return found


@pytest.fixture(scope="session")
def declared(beside: Beside) -> apart.Ran:
    """A declarative project that has run over Kafka's directory."""
    found: apart.Ran = beside.done["declared"].result()
    return found


@pytest.fixture(scope="session")
def live_on_librdkafka(beside: Beside) -> live.Judged:
    """What librdkafka's clients did."""
    found: live.Judged = beside.done["live_on_librdkafka"].result()
    return found


@pytest.fixture(scope="session")
def live_on_kafkas_clients(beside: Beside) -> live.Judged:
    """What transactional clients of Kafka's own did."""
    found: live.Judged = beside.done["live_on_kafkas_clients"].result()
    return found


@pytest.fixture(scope="session")
def in_s3(archive: Path) -> Iterator[cluster.Stored]:
    """Kafka's directory in object storage, to which the environment leads."""
    with cluster.object_storage(archive / "story") as stored, pytest.MonkeyPatch.context() as patch:
        for name, value in stored.environment.items():
            patch.setenv(name, value)
        yield stored


@pytest.fixture(scope="session")
def on_a_cluster(beside: Beside) -> cluster.Job:
    """The lag of groups in Kafka's directory, as a job on a cluster."""
    found: cluster.Job = beside.done["on_a_cluster"].result()
    return found


@pytest.fixture(scope="session")
def in_a_server(beside: Beside) -> apart.Served:
    """Jobs over Kafka's directory in a Spark that stays."""
    found: apart.Served = beside.done["in_a_server"].result()
    return found


@pytest.fixture(scope="session")
def recorded(archive: Path) -> Told:
    """Kafka's."""
    return Told(str(archive / "story"), json.loads((archive / "truth.json").read_text()))


@pytest.fixture(scope="session", params=["ottla", "kafka"])
def told(request: pytest.FixtureRequest, served: Told, recorded: Told) -> Told:
    """Either."""
    return served if request.param == "ottla" else recorded
