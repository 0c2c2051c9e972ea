"""`ottla pipeline serve`: jobs in a Spark that stays."""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from ottla.pipeline import serving, shared

from ottla.cli import main

from ..support.ports import free_port
from .apart import Served


def run(*arguments: str, remote: str) -> Result:
    return CliRunner().invoke(main, ["pipeline", *arguments], env={"SPARK_REMOTE": remote})


@pytest.mark.slow
def test_jobs_report_what_they_report_in_a_spark_of_their_own(in_a_server: Served, spark: Any, archive: Path) -> None:
    here = CliRunner().invoke(main, ["pipeline", "lag", str(archive / "story"), "--format", "json"])
    assert sorted(in_a_server.lag.splitlines()) == sorted(here.stdout.splitlines())


@pytest.mark.slow
def test_a_job_works_in_the_python_processes_of_the_job_before(in_a_server: Served) -> None:
    """Which a report of little does without."""
    report, first, second = in_a_server.python_after
    assert report == set()
    assert first
    assert second <= first


def test_jobs_with_equal_settings_share_a_session() -> None:
    server, settings = "sc://127.0.0.1:15002", {"spark.sql.shuffle.partitions": "1", "spark.app.name": "one"}
    one = shared(server, settings)
    assert one.startswith(f"{server}/;session_id=")
    assert shared(f"{server}/", {**settings, "spark.app.name": "other"}) == one
    assert shared(server, {"spark.sql.shuffle.partitions": "2"}) != one
    assert shared(f"{server}/;token=t", settings) == one.replace("/;", "/;token=t;")
    assert shared(f"{server}/;session_id=mine", settings) == f"{server}/;session_id=mine"


@pytest.mark.slow
def test_an_export_goes_on_where_it_stopped_and_counts_what_it_wrote(in_a_server: Served) -> None:
    first, second = in_a_server.exports
    assert "50 records written" in first
    assert "\n0 records written" in "\n" + second


@pytest.mark.slow
def test_the_server_ends_with_its_java_when_it_is_terminated(in_a_server: Served) -> None:
    assert in_a_server.exit_code == 0
    assert not in_a_server.listens_after


def test_where_no_spark_is_a_job_says_so_at_once(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    remote = f"sc://127.0.0.1:{free_port()}"
    nobody = run("lag", str(tmp_path), remote=remote)
    assert (nobody.exit_code, nobody.stderr) == (2, f"ottla: there is no Spark at {remote}: Connection refused\n")
    wrong = run("lag", str(tmp_path), remote="http://127.0.0.1:1")
    assert wrong.exit_code == 2
    assert "http://127.0.0.1:1 is no address of Spark Connect" in wrong.stderr


def test_a_java_that_hangs_while_it_shuts_down_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    hangs = (
        "import signal, socket;"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        f"open_port = socket.create_server(('127.0.0.1', {port}));"
        "signal.pause()"
    )
    monkeypatch.setattr(serving, "command", lambda *_: [sys.executable, "-c", hangs])
    monkeypatch.setattr(serving, "END_SECONDS", 0.01)
    before = signal.getsignal(signal.SIGTERM)

    def interrupt(url: str) -> None:
        raise KeyboardInterrupt

    try:
        assert serving.serve(port, {}, "", interrupt) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
