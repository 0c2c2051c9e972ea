"""Clients go through the examinations of the verdict: each has a broker of its own, which provokes what does not occur
by itself, and a program of the client that goes on until all of it has come (`tests/clients/examined`).
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ottla.verdict.report import ClientReport

from ottla.lab_verdict import RunningVerdict
from ottla.testing import Broker

from ..support.poll import until
from ..support.sources import ROOT

QUICK: Final[dict[str, object]] = {  # heartbeats come soon
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 100,
    "group.share.min.heartbeat.interval.ms": 100,
    "group.initial.rebalance.delay.ms": 0,
    "num.partitions": 2,
}
SECONDS: Final = 120.0
QUIET_SECONDS: Final = 20.0
"""After so long without anything that was provoked, the rest does not come: the client has no occasion for it."""
LONGER_SECONDS: Final = 3.0
"""For what a client does about the last that was provoked."""


@dataclass
class Seen:
    """What was seen of a client in an examination. `missed`: what was provoked, and did not come to it."""

    clients: list[ClientReport]
    missed: list[str]


@contextmanager
def examined(examination: str, seed: int = 0) -> Iterator[tuple[Broker, RunningVerdict]]:
    with Broker(QUICK) as broker, broker.lab.verdict(examination, provokes=True, seed=seed) as verdict:
        yield broker, verdict


def missing(verdict: RunningVerdict) -> list[str]:
    """What was not provoked yet."""
    return [f"{one['api']} {one['nth']}" for one in verdict.provoked if not one["applied"]]


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[str]]:
    """A program of a client, which is told through its standard input that it is enough."""
    with log.open("w") as errors:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        process = subprocess.Popen(command, cwd=ROOT, text=True, **pipes)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def end(process: subprocess.Popen[str], examination: str, log: Path) -> None:
    """Tells a program that it is enough; it closes its client."""
    try:
        said, _ = process.communicate("enough\n", timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"the client does not end: {log.read_text()[-4000:]}") from error
    assert said.split() == [examination, "done"], log.read_text()[-4000:]


def wait_for_all(
    verdict: RunningVerdict, process: subprocess.Popen[str], log: Path, never: Sequence[str] | None
) -> list[str]:
    """Waits until all is provoked that comes to the client; returns what does not. `never`: see `examination`."""
    left, since = missing(verdict), time.monotonic()

    def is_over() -> bool:
        nonlocal left, since
        assert process.poll() is None, log.read_text()[-4000:]
        before, left = left, missing(verdict)
        if left != before:
            since = time.monotonic()
        waits = set(left) - set(never or ())
        if waits and never is not None:
            return False
        return time.monotonic() - since > (QUIET_SECONDS if waits else LONGER_SECONDS)

    until(is_over, "all that the examination provokes", SECONDS, every=0.1)
    return left


def examination(name: str, command: Sequence[str], directory: Path, never: Sequence[str] | None = None) -> Seen:
    """Lets the program of a client go through an examination; the client is gone at the end. `never`: the faults that
    do not come to it, if they are known; all others have to.
    """
    log = directory / f"{name}.log"
    with examined(name) as (broker, verdict):
        with running([*command, f"{name}={broker.bootstrap_servers}"], log) as process:
            missed = wait_for_all(verdict, process, log, never)
            end(process, name, log)
        until(lambda: not broker.lab.clients(), "the connections of the client are closed", SECONDS, every=0.05)
        return Seen(verdict.clients, missed)
