"""The examination `addresses` of the programs of well-known clients: only one address of the broker's name is served
(KIP-302). Each program is run twice, with a file of hosts of its own.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ottla import verdict_addresses
from ottla.testing import Broker
from ottla.verdict_addresses import BEGINNINGS, LISTENERS, STEPS, Arrivals, unserved

from ..support.hosts import with_hosts
from ..support.poll import until
from ..support.ports import free_run
from .examinations import QUICK, SECONDS, Seen, end, running

RULES: Final = verdict_addresses.RULES
NAME: Final = "two.test"
HOSTS: Final = ("127.0.0.1", "127.0.0.2")
WORK: Final = "basic"
"""What the programs do."""
COMES_WITHIN_SECONDS: Final = 40.0
"""Four times what the rule gives a client: one that has not come by then does not come."""


def addresses(command: Sequence[str], directory: Path) -> Seen:
    """Lets the program of a client go through it. What is missed is that it comes to an address."""
    alone = with_hosts(directory, NAME, HOSTS)
    port = free_run(len(LISTENERS))
    settings = {**QUICK, **verdict_addresses.settings(NAME, port, HOSTS)}
    with unserved(port, HOSTS), Broker(settings) as broker, broker.lab.verdict("network") as verdict:
        arrivals = Arrivals(broker)
        for step, beginning in zip(STEPS, BEGINNINGS, strict=True):
            log = directory / f"{verdict_addresses.NAME}-{beginning}.log"
            at = f"{WORK}={HOSTS[0]}:{port + beginning}"
            with running([*alone, *command, at], log) as process:
                _wait(process, arrivals, step, log)
                end(process, WORK, log)
            until(lambda: not broker.lab.clients(), "the connections of the client are closed", SECONDS, every=0.05)
        return Seen(verdict.clients, [step for step in STEPS if step not in arrivals.done])


def _wait(process: subprocess.Popen[str], arrivals: Arrivals, step: str, log: Path) -> None:
    latest = time.monotonic() + COMES_WITHIN_SECONDS

    def is_over() -> bool:
        assert process.poll() is None, log.read_text()[-4000:]
        return step in arrivals.done or time.monotonic() > latest

    until(is_over, f"the client comes, because {step}", SECONDS, every=0.1)
