"""A broker of one's own that examines who connects: `ottla verdict` without a trace or a running broker."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from .testing import Broker

if TYPE_CHECKING:
    from .broker.lab.verdict.routes import VerdictView
    from .verdict.rule import Examination

LEAVING_S_MAX: Final = 5.0
POLL_S: Final = 0.05
BOOTSTRAP: Final = "OTTLA_BOOTSTRAP_SERVERS"
Say = Callable[[str], None]


def serve(examination: Examination | None, seed: int, listen: str, command: str | None, say: Say) -> VerdictView:
    """Examines the clients of a broker until the program `command` ends, or SIGINT or SIGTERM comes; returns the
    report. Raises BrokerFailed.
    """
    broker = Broker({"listeners": f"PLAINTEXT://{listen}"})
    with _without_interrupts():  # of a terminal, which would end the broker before it has told its report
        broker.start()
    try:
        broker.lab.post("verdict", examination=examination, provokes=examination is not None, seed=seed)
        what = f"the examination {examination}" if examination is not None else "all rules, and no faults"
        say(f"examining the clients of {broker.bootstrap_servers}: {what}")
        if command is None:
            say("end with Ctrl-C")
            _wait_for_signal()
        else:
            environment = {**os.environ, BOOTSTRAP: broker.bootstrap_servers}
            status = subprocess.run(command, shell=True, env=environment, check=False).returncode
            say(f"the program ended with exit code {status}")
            _wait_for_leaving(broker)
        found: VerdictView = broker.lab.delete("verdict")
        return found
    finally:
        broker.close()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that begin here do not hear of Ctrl-C."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait_for_signal() -> None:
    ends = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        signal.sigwait(ends)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait_for_leaving(broker: Broker) -> None:
    """Waits until the broker has seen that the connections of the program are closed."""
    until = time.monotonic() + LEAVING_S_MAX
    while broker.lab.clients() and time.monotonic() < until:
        time.sleep(POLL_S)
