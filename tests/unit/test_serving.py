"""The arguments of `ottla serve` that are read without click, what they configure, and how the process ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from ottla.broker.machine import Threads

from ottla.__main__ import _end_as_click
from ottla.cli import serve
from ottla.serving import LAB_PORT_DEFAULT, LAB_WITHOUT_PORT, Options, _configuration, plain_options

PLAIN = (
    "",
    "log.dirs=data",
    "log.dirs=data --announce listeners=PLAINTEXT://:0",
    "--announce -v",
    "--verbose --announce",
    "-c server.properties",
    "--config one.properties a=b -c two.properties",
    "a=b not-a-setting",
)
NOT_PLAIN = ("--lab", "--lab=1 a=b", "--seed 3", "-h", "--help", "-c", "-c -v", "--config=a", "-vc a", "-- a=b", "-")


def options_by_click(arguments: list[str]) -> Options:
    return Options(**serve.make_context("serve", list(arguments)).params)


@pytest.mark.parametrize("line", PLAIN)
def test_plain_arguments_are_read_as_click_reads_them(line: str) -> None:
    arguments = line.split()
    assert plain_options(arguments) == options_by_click(arguments)


@pytest.mark.parametrize("arguments", [["", "a=b"], ["-c", "", "a=b"]])
def test_an_empty_argument_is_read_as_click_reads_it(arguments: list[str]) -> None:
    assert plain_options(arguments) == options_by_click(arguments)


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_other_arguments_are_left_to_click(line: str) -> None:
    assert plain_options(line.split()) is None


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (Options(), {"ottla.lab.port": -1, "ottla.nodes": 1}),
        (Options(lab_port=LAB_WITHOUT_PORT), {"ottla.lab.port": LAB_PORT_DEFAULT}),
        (Options(lab_port=LAB_WITHOUT_PORT, settings=("ottla.lab.port=1234",)), {"ottla.lab.port": 1234}),
        (Options(lab_port="0", settings=("ottla.lab.port=1234",)), {"ottla.lab.port": 0}),
        (Options(seed=0, nodes=3), {"ottla.lab.seed": 0, "ottla.nodes": 3}),
        (
            Options(scenario="one.yaml", settings=("ottla.nodes=2",)),
            {"ottla.lab.scenario": "one.yaml", "ottla.nodes": 2},
        ),
    ],
)
def test_options_become_configuration_keys(options: Options, values: dict[str, object]) -> None:
    config = _configuration(options)
    assert {key: config[key] for key in values} == values


def test_settings_override_the_file_and_the_file_overrides_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("NODE_ID", "NUM_PARTITIONS", "LOG_RETENTION_HOURS")):
        monkeypatch.setenv(f"KAFKA_{name}", str(10 + number))
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=21\nlog.retention.hours=22\n")
    config = _configuration(Options(file=str(file), settings=("log.retention.hours=32",)))
    assert [config[key] for key in ("node.id", "num.partitions", "log.retention.hours")] == [10, 21, 32]


def test_ctrl_c_ends_the_process_as_with_click(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        _end_as_click(interrupted)
    assert (ended.value.code, capsys.readouterr().err) == (1, "\nAborted!\n")


@pytest.mark.slow
def test_a_broker_whose_output_nothing_reads_ends_with_1_and_says_nothing(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    settings = [f"log.dirs={tmp_path}/data", "listeners=PLAINTEXT://127.0.0.1:0"]
    command = [sys.executable, "-m", "ottla", "serve", "--announce", *settings]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_what_a_thread_has_done_is_dropped_where_the_loop_has_ended(caplog: pytest.LogCaptureFixture) -> None:
    """As after an exception that ends the process: nothing is told of it."""
    loop, has_ended, called = asyncio.new_event_loop(), threading.Event(), list[object]()
    threads = Threads(loop, "late")
    threads.run(has_ended.wait, lambda result, error: called.append(result))
    loop.close()
    has_ended.set()
    threads._pool.shutdown(wait=True)
    assert (called, caplog.records) == ([], [])
