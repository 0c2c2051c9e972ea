"""Programs of clients in other languages, built once for all tests that run them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..oracle.jars import missing
from ..oracle.zookeeper import ZooKeeperServer
from ..support import kcat as debians_kcat

HERE = Path(__file__).parent
Run = Callable[..., str]
"""Runs a program with arguments, and returns what it prints; `within`: the seconds it may take. AssertionError unless
its last word is `ok`.
"""


def _run(command: list[str], cwd: Path | None, within: float) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=within, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-3000:]
    return done.stdout


@pytest.fixture(scope="session")
def kcat() -> None:
    """The command `kcat`."""
    try:
        debians_kcat.put_on_path()
    except debians_kcat.Missing as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def go_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with franz-go and sarama."""
    return _built(HERE / "go", tmp_path_factory.mktemp("go") / "clients")


@pytest.fixture(scope="session")
def go_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with franz-go and sarama of a history of nodes."""
    return _built(HERE / "go" / "history", tmp_path_factory.mktemp("go") / "history")


def _built(folder: Path, program: Path) -> Path:
    with Path(tempfile.gettempdir(), "ottla-go-build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the second of two lanes finds everything compiled
        subprocess.run(["go", "build", "-o", str(program), "."], cwd=folder, check=True, timeout=300)
    return program


@pytest.fixture(scope="session")
def go_clients(go_program: Path) -> Run:
    """Runs franz-go and sarama."""

    def run(*arguments: str, within: float) -> str:
        return _run([str(go_program), *arguments], None, within)

    return run


def _with_packages(folder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies programs for Node.js, and installs what they need."""
    directory = shutil.copytree(HERE / folder, tmp_path_factory.mktemp(folder) / "clients")
    install = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--omit=optional"]
    subprocess.run(install, cwd=directory, check=True, capture_output=True, timeout=200)
    return directory


@pytest.fixture(scope="session")
def node_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the programs with kafkajs."""
    return _with_packages("node", tmp_path_factory)


@pytest.fixture(scope="session")
def kafka_node(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs the programs with kafka-node."""
    directory = _with_packages("kafka_node", tmp_path_factory)

    def run(*arguments: str, within: float) -> str:
        return _run(["node", *arguments], directory, within)

    return run


@pytest.fixture(scope="session")
def kafkajs(node_programs: Path) -> Run:
    """Runs the programs with kafkajs; the first argument is the program's file."""

    def run(*arguments: str, within: float) -> str:
        return _run(["node", *arguments], node_programs, within)

    return run


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeperServer]:
    reason = missing()
    if reason is not None:
        assert not os.environ.get("CI"), reason
        pytest.skip(reason)
    with ZooKeeperServer() as running:
        yield running


@pytest.fixture
def fresh(zookeeper: ZooKeeperServer) -> Iterator[ZooKeeperServer]:
    """One that may lose its data."""
    with ZooKeeperServer() as running:
        yield running
