"""What runs in a Java of its own, beside the tests: an export that is killed, and a declarative project."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import psutil

from ottla import pipeline

from ..support.poll import until
from ..support.ports import free_port

OFFSETS_PER_BATCH = 900
TOPICS = "codecs,exact"


def ottla(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ottla", "pipeline", *arguments]


def commits(out: Path) -> int:
    """How many batches an export has written."""
    return len(list(out.glob("_checkpoint/commits/[0-9]*")))


def with_small_java() -> dict[str, str]:
    """The environment of a command whose Java compiles little, and makes no archive of its classes."""
    return {
        **os.environ, "JDK_JAVA_OPTIONS": pipeline.SMALL[pipeline.JAVA_OPTIONS], "XDG_CACHE_HOME": os.devnull
    }  # fmt: skip


def killed_export(directory: str, out: Path) -> Path:
    """Killed when it has written some of its batches."""
    arguments = ottla(
        "export", directory, "--topic", TOPICS, "--out", str(out), "--offsets-per-batch", str(OFFSETS_PER_BATCH)
    )
    small = {name: value for name, value in pipeline.SMALL.items() if name != pipeline.JAVA_OPTIONS}
    for name, value in {**small, "spark.master": "local[1]"}.items():
        arguments += ["--conf", f"{name}={value}"]
    export = subprocess.Popen(arguments, env=with_small_java(), stderr=subprocess.DEVNULL, start_new_session=True)

    def has_begun() -> bool:
        assert export.poll() is None, "the export was done before it could be killed"
        return commits(out) >= 2

    until(has_begun, "the export commits two batches", within=300, every=0.05)
    os.killpg(export.pid, signal.SIGKILL)
    export.wait()
    return out


class Served(NamedTuple):
    """What jobs said in a Spark that stays, and how it ended."""

    lag: str
    python_after: list[set[int]]  # what processes Java had started after each job
    exports: list[str]
    exit_code: int
    listens_after: bool


def python_of(server: int) -> set[int]:
    """The processes that the Java of `ottla pipeline serve` has started: daemons, whose children do the work."""
    return {python.pid for java in psutil.Process(server).children() for python in java.children()}


def served(directory: str, out: Path) -> Served:
    port = free_port()
    server = subprocess.Popen(
        ottla("serve", "--port", str(port)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert server.stdout is not None
        name, _, url = server.stdout.readline().strip().partition("=")
        environment = {**os.environ, name: url, "JAVA_HOME": "/nowhere"}  # jobs start no Java

        def said(*arguments: str) -> tuple[str, str]:
            ran = subprocess.run(
                ottla(*arguments), env=environment, check=False, capture_output=True, text=True, timeout=300
            )
            assert ran.returncode == 0, ran.stderr
            return ran.stdout, ran.stderr

        lag, _ = said("lag", directory, "--format", "json")
        python_after = [python_of(server.pid)]
        exports = []
        for _ in range(2):
            exports.append(said("export", directory, "--topic", "exact,jobs", "--out", str(out))[1])
            python_after.append(python_of(server.pid))
    finally:
        server.terminate()
        server.communicate(timeout=60)
    with socket.socket() as probe:
        return Served(lag, python_after, exports, server.returncode, probe.connect_ex(("127.0.0.1", port)) == 0)


class Ran(NamedTuple):
    project: Path
    exit_code: int


def declared(directory: str, parent: Path) -> Ran:
    """One table of a project as `ottla pipeline new` makes it."""
    project = parent / "mine"
    subprocess.run(ottla("new", str(project), directory), check=True, stdout=subprocess.DEVNULL, timeout=120)
    ran = subprocess.run(
        ottla("run", str(project), "--refresh", "partitions"),
        env=with_small_java(),
        check=False,
        capture_output=True,
        timeout=600,
    )
    return Ran(project, ran.returncode)
