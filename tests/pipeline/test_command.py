"""`ottla pipeline`: what it prints, writes and exits with."""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from ottla.pipeline import command, directory
from ottla.pipeline.command import since_ms
from ottla.pipeline.jobs import Report
from ottla.pipeline.output import write
from pyarrow import parquet

from ottla.cli import main

from .apart import Ran

SHUFFLED = "spark.sql.shuffle.partitions"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["pipeline", *arguments])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, None), ("90s", 1_000_000 - 90_000), ("2h", 1_000_000 - 7_200_000), ("1700000000000", 1_700_000_000_000),
        ("1970-01-01T00:01", 60_000), ("1970-01-01T01:00+01:00", 0),
    ],
)  # fmt: skip
def test_since_is_a_span_or_a_time(text: str | None, wanted: int | None) -> None:
    assert since_ms(text, 1_000_000) == wanted


def test_since_that_is_no_time() -> None:
    with pytest.raises(click.BadParameter, match="'soon' is not a time"):
        since_ms("soon", 0)


@pytest.mark.parametrize("job", ["audit", "lag", "rebalances", "shares", "transactions", "compaction", "all"])
def test_what_is_no_data_directory_is_said_before_spark_starts(tmp_path: Path, job: str) -> None:
    missing = run(job, str(tmp_path / "nowhere"))
    assert missing.exit_code == 2
    assert "nowhere" in missing.stderr
    empty = run(job, str(tmp_path))
    assert empty.exit_code == 2
    assert "is not the data directory of a broker" in empty.stderr


@pytest.mark.parametrize(("bytes_", "shuffled"), [(directory.LITTLE_BYTES - 1, "1"), (directory.LITTLE_BYTES, None)])
def test_what_is_little_is_shuffled_to_one_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_: int, shuffled: str | None
) -> None:
    """Unless a setting says otherwise."""
    (tmp_path / "t-0").mkdir()
    with (tmp_path / "t-0" / f"{0:020d}.log").open("wb") as file:
        file.truncate(bytes_)
    asked: list[dict[str, str]] = []

    def started(settings: tuple[str, ...], small: bool, near: bool) -> Any:
        asked.append(command.of_conf(settings))
        raise RuntimeError("that is enough")

    monkeypatch.setattr(command, "started", started)
    assert run("audit", str(tmp_path)).stderr == "ottla: that is enough\n"
    assert run("audit", str(tmp_path), "--conf", f"{SHUFFLED}=7").exit_code == 2
    assert [one.get(SHUFFLED) for one in asked] == [shuffled, "7"]


@pytest.fixture
def story(spark: Any, archive: Path) -> str:
    return str(archive / "story")


@pytest.mark.slow
def test_exit_codes(story: str, archive: Path) -> None:
    """0 clean, 1 for findings, 2 for what could not be done."""
    assert run("diff", story, story, "--topic", "jobs").exit_code == 0
    differ = run("diff", str(archive / "before"), str(archive / "after"), "--topic", "compacted", "--format", "csv")
    assert differ.exit_code == 1
    assert "findings" in differ.stderr
    cannot = run("lag", str(archive / "before"))
    assert cannot.exit_code == 2
    assert "no group committed offsets" in cannot.stderr
    assert run("diff", str(archive / "before"), str(archive / "truth.json")).exit_code == 2


@pytest.mark.slow
def test_a_table_for_people(story: str) -> None:
    lines = run("lag", story).stdout.splitlines()
    assert "lag" in lines
    header = next(line.split() for line in lines if "committedOffset" in line)
    row = next(line.split() for line in lines if line.split()[:3] == ["classic", "work", "0"])
    assert dict(zip(header, row, strict=False)) | {"committedOffset": "70", "lag": "30"} == dict(
        zip(header, row, strict=False)
    )


@pytest.mark.slow
def test_lines_of_json(story: str) -> None:
    rows = [json.loads(line) for line in run("shares", story, "--format", "json").stdout.splitlines()]
    assert {row["table"] for row in rows} == {"groups", "deliveries", "stalls"}
    (group,) = [row for row in rows if row["table"] == "groups"]
    assert (group["acknowledged"], group["archived"]) == (16, 2)


@pytest.mark.slow
def test_files_of_each_format(spark: Any, tmp_path: Path) -> None:
    rows = [(n, datetime(2026, 1, 2, 3, 4, n, tzinfo=UTC), b"\xff" if n else b"text", None) for n in range(3)]
    things = spark.createDataFrame(rows, "n int, at timestamp, raw binary, nothing string").orderBy("n")
    report = Report({"things": things}, findings="things")
    for kind in ("csv", "json", "parquet", "table"):
        assert write(report, "things of a test", kind, str(tmp_path / kind)) == (str(tmp_path / kind), 3)
    with (tmp_path / "csv" / "things.csv").open() as file:
        assert [(row["n"], row["raw"], row["nothing"]) for row in csv.DictReader(file)] == [
            ("0", "text", ""),
            ("1", "0xff", ""),
            ("2", "0xff", ""),
        ]
    lines = [json.loads(line) for line in (tmp_path / "json" / "things.jsonl").read_text().splitlines()]
    assert lines[1] == {"n": 1, "at": "2026-01-02T03:04:01", "raw": "0xff", "nothing": None}
    assert parquet.read_table(tmp_path / "parquet" / "things")["n"].to_pylist() == [0, 1, 2]
    assert "2026-01-02T03:04:02" in (tmp_path / "table" / "things.txt").read_text()
    with pytest.raises(ValueError, match="needs --out"):
        write(report, "things", "parquet", None)


@pytest.mark.slow
def test_a_page_needs_nothing_else(story: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run("rebalances", story, "--format", "html", "--out", str(page)).exit_code == 0
    text = page.read_text()
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", text), "nothing is fetched"
    assert text.count("Plotly.newPlot(") >= 2
    assert "<td>consumer work-0</td>" in text
    assert "Who owned what" in text


def test_a_project_is_made_and_only_once(tmp_path: Path) -> None:
    project = tmp_path / "mine"
    assert run("new", str(project), "logs").exit_code == 0
    specification = (project / "spark-pipeline.yml").read_text()
    assert f"storage: file://{project}/pipeline-storage" in specification
    assert str(Path("logs").absolute()) in (project / "transformations" / "logs.py").read_text()
    assert not list(project.rglob("*.pyc"))
    assert run("new", str(project), "logs").exit_code == 2


@pytest.mark.slow
def test_a_declarative_pipeline_runs(declared: Ran) -> None:
    """With the exit code of the run, which Spark 4.3.0 gets wrong for Python data sources; and 2 for one that fails."""
    assert declared.exit_code == 0
    rows = parquet.read_table(declared.project / "spark-warehouse" / "partitions").to_pylist()
    assert {(row["topic"], row["endOffset"]) for row in rows} >= {("jobs", 20), ("exact", 76)}


@pytest.mark.slow
def test_what_is_no_project_fails(spark: Any, tmp_path: Path) -> None:
    assert run("run", str(tmp_path)).exit_code == 2
