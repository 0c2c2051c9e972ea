"""The folder that Spark starts from: each Python that plans a query imports the PySpark that is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from ottla.pipeline.home import LINKED, lean_home
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from ottla import pipeline

pytestmark = pytest.mark.slow
INSTALLED = Path(pyspark.__file__).parent


class _Reader(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        import pyspark  # of the Python that plans

        return [InputPartition(pyspark.__file__)]

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        yield (partition.value,)


class Planned(DataSource):
    """A source with one row: from which file the Python that planned the query had imported PySpark."""

    @classmethod
    def name(cls) -> str:
        return "planned"

    def schema(self) -> str:
        return "file string"

    def reader(self, schema: Any) -> DataSourceReader:
        return _Reader()


def test_what_plans_a_query_imports_what_is_installed_and_not_the_archive_of_its_sources(spark: Any) -> None:
    spark.dataSource.register(Planned)
    assert [row.file for row in spark.read.format("planned").load().collect()] == [pyspark.__file__]


def test_the_folder_links_to_the_programs_and_jars_that_are_installed(tmp_path: Path) -> None:
    home = lean_home(INSTALLED, tmp_path)
    assert home.parent == tmp_path
    there = {name for name in LINKED if (INSTALLED / name).is_dir()}
    assert there >= {"bin", "jars"}
    assert {one.name: one.readlink() for one in home.iterdir()} == {name: INSTALLED / name for name in there}
    assert lean_home(INSTALLED, tmp_path) == home


def test_a_session_begins_there_unless_the_environment_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert not Path(pipeline.spark_home(), "python").exists()
    monkeypatch.setenv("SPARK_HOME", "/spark")
    assert pipeline.spark_home() == "/spark"


def test_another_python_gets_the_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have no PySpark of its own."""
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python3")
    assert lean_home(INSTALLED, tmp_path) == INSTALLED
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert lean_home(INSTALLED, tmp_path) != INSTALLED


def test_a_pyspark_that_python_finds_only_by_a_path_of_this_process_keeps_its_archives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "packages" / "pyspark"
    (elsewhere / "jars").mkdir(parents=True)
    assert lean_home(elsewhere, tmp_path) == elsewhere
    monkeypatch.setenv("PYTHONPATH", f"/other:{elsewhere.parent}")
    assert [one.name for one in lean_home(elsewhere, tmp_path).iterdir()] == ["jars"]


def test_where_the_folder_cannot_be_made_spark_begins_in_its_own(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert lean_home(INSTALLED, file) == INSTALLED
    jars = lean_home(INSTALLED, tmp_path) / "jars"
    jars.unlink()
    jars.write_text("")
    assert lean_home(INSTALLED, tmp_path) == INSTALLED
