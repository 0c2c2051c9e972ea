"""The action for CI: what its file says, and its scripts as a runner runs them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ottla.lab_client import Lab

from ..support.poll import until
from ..support.sources import ROOT
from ..support.wire import Wire

pytestmark = pytest.mark.slow
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())


class Runner:
    """A runner with a directory of its own, and ottla as it is installed here."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = directory / "ottla"
        executable = directory / "bin"
        executable.write_text(f'#!/bin/sh\nexec {sys.executable} -m ottla "$@"\n')
        executable.chmod(0o755)
        self.environment = {
            **{f"INPUT_{name.upper()}": one["default"] for name, one in ACTION["inputs"].items()},
            "INPUT_PORT": "0",
            "INPUT_LAB_PORT": "0",
            "OTTLA": str(executable),
            "RUNNER_TEMP": str(directory),
            "GITHUB_OUTPUT": str(directory / "outputs"),
            "GITHUB_ENV": str(directory / "variables"),
        }

    def run(self, *command: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **self.environment, **{f"INPUT_{k.upper()}": v for k, v in inputs.items()}}
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    def values(self, file: str) -> dict[str, str]:
        return dict(line.split("=", 1) for line in (self.directory / file).read_text().splitlines())


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    made = Runner(tmp_path)
    yield made
    if (made.home / "pid").exists():
        pid = int((made.home / "pid").read_text())
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
            until(lambda: not Path(f"/proc/{pid}").exists(), "the broker ends", every=0.05)


def test_the_action_names_files_that_are_there_and_describes_what_it_takes() -> None:
    runs = ACTION["runs"]
    assert (runs["using"], runs["post-if"]) == ("node24", "failure()")
    for file in (runs["main"], runs["post"]):
        assert (ROOT / file).is_file()
    for one in (*ACTION["inputs"].values(), *ACTION["outputs"].values()):
        assert one["description"].endswith(".")
    for name in ACTION["inputs"]:
        scripts = "".join(path.read_text() for path in (ROOT / "action").glob("*.sh"))
        assert f"INPUT_{name.upper()}" in scripts, f"no script takes {name}"


def test_the_broker_serves_when_the_step_is_done(runner: Runner, tmp_path: Path) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text("steps:\n  - seed: {topics: [{name: orders}]}\n")
    settings = "  num.partitions=3  \n\n# a comment\nauto.create.topics.enable=false\n"
    done = runner.run("bash", "action/start.sh", settings=settings, scenario=str(scenario))
    assert done.returncode == 0, done.stdout + done.stderr
    outputs, variables = runner.values("outputs"), runner.values("variables")
    assert outputs["bootstrap_servers"] == variables["OTTLA_BOOTSTRAP_SERVERS"]
    assert Lab(outputs["lab_url"]).topic("orders")["topic"] == "orders"
    assert variables["OTTLA_LAB"] == outputs["lab_url"]
    with Wire(outputs["bootstrap_servers"]):
        shown = runner.run("bash", "action/show-log.sh")
    assert "::group::The log of ottla, which still runs" in shown.stdout


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ("num.partitions=many", 1, "::error::ottla did not start; its log says why"),
        ("nonsense", 2, "'nonsense' in 'settings' is not key=value"),
    ],
)
def test_a_broker_that_does_not_start_fails_the_step(runner: Runner, settings: str, code: int, words: str) -> None:
    done = runner.run("bash", "action/start.sh", settings=settings)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stdout
    assert "::error::ottla" in done.stdout
    shown = runner.run("bash", "action/show-log.sh").stdout
    assert "has ended" in shown if code == 1 else "ottla was not started" in shown


def test_a_log_gives_the_runner_no_commands(runner: Runner) -> None:
    runner.home.mkdir()
    (runner.home / "pid").write_text("999999999")
    (runner.home / "log").write_text("::set-output name=evil::1\n")
    shown = runner.run("bash", "action/show-log.sh").stdout.splitlines()
    stop, line, end = shown[1], shown[2], shown[3]
    assert line == "::set-output name=evil::1"
    assert stop == f"::stop-commands::{end.strip(':')}"


@pytest.mark.node
def test_the_steps_of_the_action_run_in_node(runner: Runner) -> None:
    done = runner.run("node", ACTION["runs"]["main"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ottla serves Kafka clients at 127.0.0.1:" in done.stdout
    shown = runner.run("node", ACTION["runs"]["post"])
    assert (shown.returncode, "::endgroup::" in shown.stdout) == (0, True)
