"""A benchmark that is interrupted leaves nothing behind, and a name that none has starts none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ..bench.broker import main
from ..support import fuzz

ROOT = Path(__file__).parents[2]
INTERRUPTED = """
from tests.bench.sides import fresh
server = fresh("ottla").start()
print(server.pid, server.directory, flush=True)
raise KeyboardInterrupt
"""


def test_ctrl_c_ends_the_server_and_removes_its_directory() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    pid, directory = ended.stdout.split()
    is_orphan = psutil.pid_exists(int(pid))
    if is_orphan:
        os.kill(int(pid), signal.SIGKILL)
    assert not is_orphan
    assert not Path(directory).exists()
    assert "KeyboardInterrupt" in ended.stderr


def test_a_name_that_is_none_measures_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["latency", "thruput"]) == 2
    assert capsys.readouterr().out.startswith("no benchmark thruput; there are growth, codec, start, ")
    assert main(["growth", "sparse"]) == 2
    assert capsys.readouterr().out.startswith("no curve sparse; there are ")
    assert fuzz.main(["counts=3"]) == 2
