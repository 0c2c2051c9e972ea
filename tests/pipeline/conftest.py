"""One Spark session for all tests, and two data directories with the same story: one of ottla, and one that Apache Kafka 4.4.0 wrote."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ottla.pipeline.java import cache_directory, check_java, class_archive

from ottla import pipeline
from ottla.testing import Broker

from ..oracle import jars
from . import story

FAST = {
    **pipeline.SMALL,
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
}
ARCHIVE = Path(__file__).parent / "data" / "kafka.tar.xz"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    try:
        check_java()
    except RuntimeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    connector = jars.connector()
    classes = class_archive(cache_directory(), Path(pipeline.spark_home(), "jars"))
    java = {pipeline.JAVA_OPTIONS: f"{FAST[pipeline.JAVA_OPTIONS]} {classes}"}
    session = pipeline.session(**{**FAST, **java, **({"spark.jars": connector} if connector else {})})
    yield session
    session.stop()


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


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """ottla's."""
    directory = tmp_path_factory.mktemp("served")
    with Broker(story.SETTINGS, directory=directory) as broker:
        truth = story.tell(broker.bootstrap_servers)
    return Told(str(directory / "data"), truth)


@pytest.fixture(params=["ottla", "kafka"])
def told(request: pytest.FixtureRequest, archive: Path) -> Told:
    """Either."""
    if request.param == "ottla":
        found: Told = request.getfixturevalue("served")
        return found
    return Told(str(archive / "story"), json.loads((archive / "truth.json").read_text()))
