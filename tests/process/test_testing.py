"""`ottla.testing.Broker` where its user does not do what the examples do."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from ottla.testing import Broker

from ..support.poll import until

pytestmark = pytest.mark.long

FORGETFUL = """
import os
from ottla.testing import Broker

broker = Broker().start()
if os.fork() == 0:
    raise SystemExit
os.wait()
print(broker.pid, broker.running, broker.directory, flush=True)
raise ValueError("the program fails")
"""


def test_a_broker_that_nothing_closes_ends_with_its_program() -> None:
    done = subprocess.run([sys.executable, "-c", FORGETFUL], capture_output=True, text=True, check=False, timeout=120)
    assert "the program fails" in done.stderr
    pid, running, directory = done.stdout.split()
    assert running == "True", "a fork of the program does not end it"
    until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the broker")
    assert not Path(directory).exists()


def test_a_broker_that_is_closed_can_be_forgotten() -> None:
    with Broker() as broker:
        left = weakref.ref(broker)
    del broker
    gc.collect()
    assert left() is None


def test_a_broker_that_does_not_run_cannot_be_stopped() -> None:
    broker = Broker()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the broker is not running: call start"):
            broker.stop()
        broker.kill()
    broker.close()
