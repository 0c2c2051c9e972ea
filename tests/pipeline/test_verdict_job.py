"""The verdict on many traces as tables: equal to that of the running broker and of `ottla verdict`, and counted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from ottla.pipeline import judging
from ottla.pipeline.jobs import Report, verdict
from ottla.pipeline.traces import GROUPS, found
from ottla.verdict.examiner import Share
from ottla.verdict.from_trace import TraceExaminer
from ottla.verdict.skimming import Skimmer
from ottla.verdict.trace_lines import event_of
from pyarrow import parquet

from ottla.cli import main

from ..clients.verdicts import its_own, report
from ..clients.well_known import CLIENTS, Client
from ..support.kcat import Missing, put_on_path
from ..support.traced_clients import HEAD, Traced, bytes_of, of_case
from ..support.verdict_reports import timeless
from .live import Judged, by_command, wordless

pytestmark = pytest.mark.slow

DAY_MS = 86_400_000
BROKEN = "KIP-848.epoch-echoed"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["pipeline", "verdict", *arguments])


def reports(spark: Any, path: Path, tasks: int) -> list[Any]:
    """The clients of one trace, as Spark's tables have them."""
    rows = verdict.verdicts(verdict.judged(spark, found([str(path)]), tasks=tasks)).collect()
    clients: dict[int, Any] = {}
    for row in rows:
        who = {"client_id": row.clientId, "software": row.software, "software_version": row.softwareVersion}
        client = clients.setdefault(row.client, {**who, "host": row.host, "rules": []})
        names = ("examination", "severity", "outcome", "kept", "failed")
        failures = [one.asDict(recursive=True) for one in row.failures]
        client["rules"].append({"id": row.rule, **{name: row[name] for name in names}, "failures": failures})
    return [one for _, one in sorted(clients.items())]


@pytest.fixture
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small trace is worth several tasks."""
    monkeypatch.setattr("ottla.pipeline.traces.SPLIT_BYTES_MIN", 1)


def passed_over(lines: list[bytes]) -> int:
    """How many lines the first of two shares need not read."""
    of = TraceExaminer(None, Share(0, 2))
    skimmer = Skimmer(of.examiner)
    count = 0
    for number, line in enumerate(lines, 1):
        if skimmer.may_skip(line):
            count += 1
        else:
            read = event_of(line, "t", number)
            skimmer.took(line, read["event"], of.take(read))
    return count


def compare(spark: Any, trace: Path, live: Any) -> None:
    whole = by_command(trace)
    for tasks in (1, 2):
        assert reports(spark, trace, tasks) == whole, f"{tasks} tasks"
    assert timeless(whole) == timeless(live)
    lines = trace.read_bytes().splitlines()
    assert passed_over(lines) > len(lines) / 10, "the lines of a broker are those that a share need not read"
    passed = {rule["id"] for client in whole for rule in client["rules"] if rule["outcome"] == "passed"}
    assert {"KIP-35.api-versions-first", "KIP-98.sequences-in-order"} <= passed


def test_the_tables_are_the_live_verdict_on_librdkafka(
    spark: Any, live_on_librdkafka: Judged, small_shares: None
) -> None:
    compare(spark, *live_on_librdkafka)


@pytest.mark.oracle
def test_the_tables_are_the_live_verdict_on_kafkas_clients(
    spark: Any, live_on_kafkas_clients: Judged, small_shares: None
) -> None:
    compare(spark, *live_on_kafkas_clients)


@pytest.mark.skipif("OTTLA_CLIENTS" not in os.environ, reason="takes minutes: set OTTLA_CLIENTS=1")
@pytest.mark.parametrize("client", CLIENTS, ids=lambda one: one.name)
def test_the_tables_are_the_live_verdict_on_a_well_known_client(
    spark: Any, tmp_path: Path, small_shares: None, client: Client
) -> None:
    """The live verdict on its plain work is compared with that of the command on the way."""
    with suppress(Missing):
        put_on_path()
    work = report(client, tmp_path)
    whole = by_command(tmp_path / "trace.jsonl")
    for tasks in (1, 2, 5):
        assert reports(spark, tmp_path / "trace.jsonl", tasks) == whole, f"{tasks} tasks"
    assert timeless(its_own(client, whole)) == timeless([wordless(one) for one in work])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days of runs: librdkafka's client keeps a rule, and one of two versions of Java's breaks it since the
    second day.
    """
    root = tmp_path_factory.mktemp("runs")
    for day, name, software, version, right in (
        (0, "a", "librdkafka", "2.0", True), (0, "b", "java", "4.0", True), (1, "a", "java", "4.1", False),
        (2, "a", "java", "4.1", False), (2, "b", "java", "4.0", True),
    ):  # fmt: skip
        path = root / f"day-{day}" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        head = {**HEAD, "clock_ms": HEAD["clock_ms"] + day * DAY_MS}
        lines = of_case(BROKEN, right, client_id=name, software=software, version=version, at_ms=head["clock_ms"])
        path.write_bytes(b"".join(line + b"\n" for line in [bytes_of(head), *lines]))
    return root


@pytest.fixture(scope="module")
def told(spark: Any, runs: Path) -> Iterator[Report]:
    rows = verdict.judged(spark, found([str(runs)])).cache()
    yield verdict.report(rows, every=True)
    rows.unpersist()


def counted(report: Report, table: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in report.tables[table].collect()]


FIRST_DAY = datetime.fromtimestamp(HEAD["clock_ms"] / 1000, UTC).date()


def days(count: int) -> date:
    return date.fromordinal(FIRST_DAY.toordinal() + count)


def test_verdicts_are_counted_by_each_group(told: Report) -> None:
    assert counted(told, "by client", "clientId", "traces", "clients", "failed") == [("a", 3, 3, 2), ("b", 2, 2, 0)]
    by_version = counted(told, "by version", "software", "softwareVersion", "traces", "failed")
    assert by_version == [("java", "4.0", 2, 0), ("java", "4.1", 2, 2), ("librdkafka", "2.0", 1, 0)]
    by_day = counted(told, "by day", "day", "traces", "failed")
    assert by_day == [(days(0), 2, 0), (days(1), 1, 1), (days(2), 2, 1)]
    by_rule = {row[0]: row[1:] for row in counted(told, "by rule", "rule", "clients", "passed", "failed")}
    assert by_rule[BROKEN] == (5, 3, 2)


def test_outcomes_add_up(told: Report) -> None:
    verdicts = told.tables["verdicts"].count()
    for table in (f"by {one}" for one in GROUPS):
        rows = counted(told, table, "passed", "failed", "warned", "notExercised")
        assert sum(map(sum, rows)) == verdicts, table


def test_a_failure_has_its_first_frame_as_evidence(told: Report, runs: Path) -> None:
    columns = ("software", "softwareVersion", "rule", "clients", "firstTrace", "firstWords", "firstFrame")
    (row,) = counted(told, "failures", *columns)
    assert row[:5] == ("java", "4.1", BROKEN, 2, f"{runs}/day-1/a.jsonl")
    (first,) = [
        failure
        for client in by_command(runs / "day-1" / "a.jsonl")
        for rule in client["rules"]
        for failure in rule["failures"]
        if rule["id"] == BROKEN
    ]
    frame = first["evidence"][0]
    where = f"connection {frame['connection']}, exchange {frame['exchange']}"
    assert row[5:] == (first["words"], f"{where}: {frame['what']} {frame['message']}")


def test_a_table_by_several_is_counted_for_each_combination(spark: Any, runs: Path) -> None:
    rows = verdict.judged(spark, found([str(runs)]))
    report = verdict.report(rows, [("version", "day")])
    assert [name for name in report.tables if name.startswith("by")] == ["by version, day"]
    assert counted(report, "by version, day", "softwareVersion", "day", "failed")[:3] == [
        ("4.0", days(0), 0),
        ("4.0", days(2), 0),
        ("4.1", days(1), 1),
    ]
    assert set(verdict.BY) == set(GROUPS)


def test_no_table_waits_for_a_broadcast(told: Report, capsys: pytest.CaptureFixture[str]) -> None:
    """Spark gives up a broadcast after five minutes, and judging many traces takes longer."""
    for name, frame in told.tables.items():
        frame.explain()
        assert "Broadcast" not in capsys.readouterr().out, name


def test_types_of_columns(told: Report) -> None:
    types = {name: dict(frame.dtypes) for name, frame in told.tables.items()}
    assert types["by day"]["day"] == "date"
    assert types["failures"]["firstAt"] == types["traces"]["started"] == "timestamp"
    assert {types["by rule"][name] for name in ("traces", "clients", "passed", "failed", "warned")} == {"bigint"}
    evidence = "struct<connection:bigint,exchange:bigint,at_ms:bigint,what:string,message:string>"
    assert types["verdicts"]["failures"] == f"array<struct<words:string,evidence:array<{evidence}>>>"


def test_the_command_prints_tables_and_says_by_its_exit_code_what_was_found(spark: Any, runs: Path) -> None:
    bad = run(str(runs), "--by", "version", "--by", "rule,day")
    assert bad.exit_code == 1
    tables = [line for line in bad.stdout.splitlines() if line and not line.startswith(" ")]
    assert tables == ["by version", "by rule, day", "failures", "warnings", "set aside"]
    assert "1 findings" in bad.stderr
    since = datetime.fromtimestamp((HEAD["clock_ms"] + 2 * DAY_MS) / 1000, UTC).isoformat()
    good = run(str(runs), "--json", "--by", "day", "--examination", "network", "--since", since)
    assert (good.exit_code, good.stderr.splitlines()[-1]) == (0, "clean")
    (found,) = [one for one in map(json.loads, good.stdout.splitlines()) if one["table"] == "by day"]
    assert (found["day"], found["traces"], found["failed"]) == (days(2).isoformat(), 2, 0)


def test_traces_that_cannot_be_judged_are_set_aside_and_the_others_are_judged(
    spark: Any, runs: Path, tmp_path: Path
) -> None:
    for name, head in (("old", {**HEAD, "format": 0}), ("filtered", {**HEAD, "filters": {"topic": "t"}})):
        lines = [bytes_of(head), *Traced(1, 2).lines()[1:], b""]
        (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join(lines))
    only = run(str(tmp_path), "--by", "day", "--json")
    assert only.exit_code == 2
    assert "no trace was examined" in only.stderr
    both = run(str(tmp_path), str(runs), "--by", "day", "--format", "parquet", "--out", str(tmp_path / "out"), "--all")
    assert both.exit_code == 1
    assert "2 of 7 traces were set aside: " in both.stderr
    refused = parquet.read_table(tmp_path / "out" / "set aside").to_pylist()
    assert {Path(row["trace"]).name: row["refused"] for row in refused} == {
        "old.jsonl": f"{tmp_path}/old.jsonl:1: a trace of format 0; this is for format 1",
        "filtered.jsonl": f"{tmp_path}/filtered.jsonl: the trace was filtered (topic=t), and a verdict needs all "
        "requests: trace without filters",
    }
    rows = parquet.read_table(tmp_path / "out" / "verdicts").to_pylist()
    assert {Path(row["trace"]).parent for row in rows} == {runs / f"day-{day}" for day in range(3)}
    failed = [row for row in rows if row["rule"] == BROKEN and row["outcome"] == "failed"]
    assert [row["day"] for row in failed] == [days(1), days(2)]
    assert failed[0]["failures"][0]["evidence"][0]["connection"] == 1


def test_a_trace_that_one_of_its_tasks_refuses_has_no_verdicts(spark: Any) -> None:
    rule = {"client": 0, "rule": "KIP-35.versions-within", "outcome": "passed"}
    rows = [
        {"trace": "whole", "shares": 1},
        {"trace": "whole", "shares": 1, **rule},
        {"trace": "shared", "shares": 2},
        {"trace": "shared", "shares": 2, **rule},
        {"trace": "refused", "shares": 2, "refused": "not a trace"},
        {"trace": "refused", "shares": 2, **rule},
    ]
    given = spark.createDataFrame(pa.Table.from_pylist(rows, schema=judging.SCHEMA))
    assert sorted(row.trace for row in verdict.verdicts(given).collect()) == ["shared", "whole"]


def test_what_is_asked_wrongly_is_said_before_spark_starts(tmp_path: Path) -> None:
    assert "'week' is not one of client, version, rule, day" in run(str(tmp_path), "--by", "rule,week").stderr
    empty = run(str(tmp_path))
    assert (empty.exit_code, empty.stderr) == (2, f"ottla: {tmp_path} contains no trace\n")
    assert run(str(tmp_path / "none")).exit_code == 2
    assert run().exit_code == 2
