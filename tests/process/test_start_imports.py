"""What a start imports: nothing that only some brokers or later requests need, and not more modules than before."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

MODULES_MAX = 404
"""With those of the interpreter. A change that needs more says why a start needs them. Four are halves of
others of which one half is compiled and the other is not (`broker/alarm.py`, `coordinator/packing.py`, `journaled.py`,
`broker/transaction/completion.py`).
"""
NOT_AT_START = (
    *("click", "construct", "pickle", "pdb", "re2", "h11"),
    *("datetime", "encodings.idna", "gettext", "hashlib", "importlib.metadata", "pkgutil"),
    *("tempfile", "uuid"),
    "ottla.cli",
    "ottla.broker.error_replies",
    "ottla.broker.seed",
    "ottla.broker.telemetry.pushed_metrics",
    "ottla.coordinator.group.assignors",
    "ottla.coordinator.group.state",
    "ottla.coordinator.security.scram",
    "ottla.coordinator.telemetry.subscriptions",
    "ottla.protocol.trees",
)
PROGRAM = """
import sys, ottla.__main__ as main, ottla.serving as serving

def announced(server):
    print(*sys.modules)
    server.stopping.set()

serving._announce_line = announced
main.run()
"""
SOON_AFTER = """
import asyncio, gc, sys, ottla.__main__ as main, ottla.serving as serving

def look(server):
    if gc.isenabled():
        print(*sys.modules)
        server.stopping.set()
    else:
        asyncio.get_running_loop().call_later(0.01, look, server)

serving._announce_line = look
main.run()
"""
"""When the broker is ready it collects no garbage, until it is warm."""


def imported(folder: Path, data: str, program: str = PROGRAM, **environment: str) -> list[str]:
    """Returns the modules that a broker has imported when it is ready. The folder has what it compiles, too."""
    command = [sys.executable, "-c", program, "serve", "--announce", f"log.dirs={folder}/{data}"]
    cached = {"PYTHONPYCACHEPREFIX": f"{folder}/cache", "PYTHONDONTWRITEBYTECODE": ""}
    listening = ["listeners=PLAINTEXT://127.0.0.1:0"]
    done = subprocess.run(
        [*command, *listening],
        env=os.environ | cached | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.split()


def test_what_a_start_must_not_import_exists() -> None:
    """A module that was renamed would not be missed in the list."""
    assert [name for name in NOT_AT_START if find_spec(name) is None] == []


def test_a_start_imports_little(tmp_path: Path) -> None:
    first = imported(tmp_path, "one")
    assert "construct" in first, "functions of the codec were made without construct, and none was cached"
    again = imported(tmp_path, "two")
    assert [name for name in NOT_AT_START if name in again] == []
    assert len(again) <= MODULES_MAX
    imported(tmp_path, "two")  # the first start that reads what another one has written; it caches the functions for it
    assert "construct" not in imported(tmp_path, "two")


def test_what_first_requests_need_is_imported_soon_after_the_start(tmp_path: Path) -> None:
    """Unless it is not wanted, as in most brokers of tests."""
    warm, cold = (imported(tmp_path, "one", SOON_AFTER, OTTLA_WARM=value) for value in ("1", "0"))
    later = {"ottla.coordinator.group.shard", "ottla.coordinator.share.shard", "ottla.broker.error_replies"}
    assert later <= {*warm}
    assert later & {*cold} == set()
