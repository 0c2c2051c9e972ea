"""The examination `fatal` of the programs of well-known clients: errors after which a client, or its transaction, has
to end.

Only these rules count. A program has a work for each kind of error (`ending-writes`, ...), which goes on until its
client can do no more, or until it is told that it is enough. It is run again as long as a run has met what none before
has met.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from ottla import verdict_fatal
from ottla.lab_verdict import RunningVerdict
from ottla.testing import Broker
from ottla.verdict_fatal import (
    BATCH_ASTRAY,
    BATCH_REFUSED,
    ENDINGS,
    INSTANCE_TAKEN,
    MEMBER_REFUSED,
    NOTHING_TO_END,
    PRODUCER_FENCED,
    Endings,
)

from ..support.poll import until
from .examinations import LONGER_EVENTS, QUICK, SECONDS, Seen, end, running

RULES: Final = verdict_fatal.RULES
WORKS: Final = {
    "ending-writes": (PRODUCER_FENCED, NOTHING_TO_END, BATCH_ASTRAY, BATCH_REFUSED),
    "ending-sends": (BATCH_REFUSED,),
    "ending-static": (INSTANCE_TAKEN,),
    "ending-member": (MEMBER_REFUSED,),
}
"""What comes to each work of a program."""
QUIET_EVENTS: Final = 5000
"""After so many without an error that is left the rest does not come. Records and fetches of a member are many more
than its heartbeats, the more so while the machine is busy.
"""
SETTLED_SECONDS: Final = 8.0
"""After an error a client may still send for five seconds what it had begun. A busy machine makes this longer."""
SILENT_SECONDS: Final = 15.0
"""A client that has sent nothing for so long sends nothing more, once it has begun."""


def endings(command: Sequence[str], directory: Path, lacks: Collection[str]) -> Seen:
    """Lets the program of a client go through it. `lacks`: works that the program does not have. What is missed is
    named by the request and its error.
    """
    missed: list[str] = []
    with Broker({**QUICK, **verdict_fatal.SETTINGS}) as broker, broker.lab.verdict() as verdict:
        for work, steps in WORKS.items():
            if work in lacks:
                missed += steps
            else:
                missed += _missed(work, Endings(broker, steps), (broker, verdict), command, directory)
        return Seen(verdict.clients, list(dict.fromkeys(map(_name, missed))))


def _name(step: str) -> str:
    """The last error of a step, which the newest versions have."""
    return [f"{one.api} {one.error}" for one in ENDINGS if one.what == step][-1]


def _missed(
    work: str, met: Endings, by: tuple[Broker, RunningVerdict], command: Sequence[str], directory: Path
) -> list[str]:
    broker, verdict = by
    log = directory / f"{work}.log"
    goes_on = True
    while goes_on:
        with running([*command, f"{work}={broker.bootstrap_servers}"], log) as process:
            _wait(process, met, verdict)
            end(process, work, log)
        until(lambda: not broker.lab.clients(), "the connections of the client are closed", SECONDS, every=0.05)
        goes_on = met.end_met()
    missed = met.left
    met.close()
    return missed


def _wait(process: subprocess.Popen[str], met: Endings, verdict: RunningVerdict) -> None:
    """Waits until a program ends, or its client has met all that comes to it and has shown what it does then."""
    found: list[str] = []
    begin = events = latest = verdict.view["events"]
    since = heard = time.monotonic()

    def is_over() -> bool:
        nonlocal found, events, latest, since, heard
        now = verdict.view["events"]
        if met.met() != found:
            found, events, since = met.met(), now, time.monotonic()
        if now != latest:
            latest, heard = now, time.monotonic()
        quiet = LONGER_EVENTS if set(met.left) <= set(found) else QUIET_EVENTS
        has_gone_on = now - events > quiet and time.monotonic() - since > SETTLED_SECONDS
        is_silent = latest > begin and time.monotonic() - heard > SILENT_SECONDS
        return process.poll() is not None or has_gone_on or is_silent

    until(is_over, "errors that end the client", 5 * SECONDS, every=0.1)
