"""Clients go through the examinations of the verdict: each has a broker of its own, which provokes what does not occur
by itself, and a program of the client that goes on until all of it has come (`tests/clients/examined`).
"""

from __future__ import annotations

import subprocess
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
QUIET_EVENTS: Final = 1000
"""After so many requests and replies without any that a fault waits for, the rest does not come: the client has no
occasion for it. Events are counted and not seconds, so that a busy machine changes nothing.
"""
LONGER_EVENTS: Final = 200
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


@dataclass
class Progress:
    """How far an examination has come. `left`: what was not provoked yet; `matched`: how many requests came that the
    faults of these wait for; `events`: requests and replies of all kinds.
    """

    left: list[str]
    matched: int
    events: int


def progress(verdict: RunningVerdict) -> Progress:
    view = verdict.view
    left = [one for one in view["provoked"] if not one["applied"]]
    names = [f"{one['api']} {one['nth']}" for one in left]
    return Progress(names, sum(one["matched"] for one in left), view["events"])


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


def wait_for_all(verdict: RunningVerdict, process: subprocess.Popen[str], log: Path, never: Sequence[str]) -> list[str]:
    """Waits until all is provoked that comes to the client; returns what does not. `never`: see `examination`."""
    before = progress(verdict)  # when the latest request came that a fault waited for

    def is_over() -> bool:
        nonlocal before
        assert process.poll() is None, log.read_text()[-4000:]
        now = progress(verdict)
        if (now.left, now.matched) != (before.left, before.matched):
            before = now
        return now.events - before.events > (QUIET_EVENTS if set(now.left) - set(never) else LONGER_EVENTS)

    until(is_over, "all that the examination provokes", 5 * SECONDS, every=0.1)
    return before.left


def examination(name: str, command: Sequence[str], directory: Path, never: Sequence[str] = ()) -> Seen:
    """Lets the program of a client go through an examination; the client is gone at the end. `never`: the faults of
    which it is known that they do not come to it, so that they are not waited for.
    """
    log = directory / f"{name}.log"
    with examined(name) as (broker, verdict):
        with running([*command, f"{name}={broker.bootstrap_servers}"], log) as process:
            missed = wait_for_all(verdict, process, log, never)
            end(process, name, log)
        until(lambda: not broker.lab.clients(), "the connections of the client are closed", SECONDS, every=0.05)
        return Seen(verdict.clients, missed)
