"""The examples in other languages, which ask the lab in plain HTTP: as their readers run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import Broker

from ..support.sources import ROOT

pytestmark = pytest.mark.slow
EXAMPLES = ROOT / "examples"
TOKEN = "example-token"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"ottla.lab.token": TOKEN}) as broker:
        yield broker


def passes(broker: Broker, folder: str, directory: Path, *commands: list[str]) -> None:
    """Runs an example in a copy of its folder."""
    shutil.copytree(EXAMPLES / folder, directory / folder)
    environment = {
        **os.environ,
        "OTTLA_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
        "OTTLA_LAB": broker.lab_url,
        "OTTLA_LAB_TOKEN": TOKEN,
    }
    for command in commands:
        done = subprocess.run(
            command, cwd=directory / folder, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


@pytest.mark.go
def test_the_example_in_go(broker: Broker, tmp_path: Path) -> None:
    passes(broker, "go", tmp_path, ["go", "test", "./..."])


@pytest.mark.node
def test_the_example_in_javascript(broker: Broker, tmp_path: Path) -> None:
    install = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
    passes(broker, "javascript", tmp_path, install, ["npm", "test"])


@pytest.mark.oracle
def test_the_example_in_java(broker: Broker, tmp_path: Path) -> None:
    passes(broker, "java", tmp_path, ["mvn", "-q", "-B", "test"])
