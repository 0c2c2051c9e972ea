"""The examination `connections` of the programs of well-known clients: idle connections are closed, and the broker that
they know is lost for a while (KIP-899).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ottla import verdict_connections
from ottla.testing import Broker
from ottla.verdict_connections import STEPS, Connections

from ..support.poll import until
from ..support.ports import free_run
from .examinations import QUICK, SECONDS, Seen, end, running
from .verdict_page import CONNECTIONS

RULES: Final = verdict_connections.RULES


def connections(command: Sequence[str], directory: Path) -> Seen:
    """Lets the program of a client go through it. What is missed is that it comes again after an idle connection."""
    log = directory / f"{CONNECTIONS}.log"
    port = free_run(2)
    settings = {**QUICK, **verdict_connections.settings("127.0.0.1", port)}
    with (
        Broker(settings) as broker,
        broker.lab.verdict("network") as verdict,
        running([*command, f"{CONNECTIONS}=127.0.0.1:{port}"], log) as process,
    ):
        found = Connections(broker)
        found.begin()
        try:
            until(lambda: STEPS[1] in found.done, "the broker that the client knows is lost", SECONDS, every=0.1)
        finally:
            found.end()
        end(process, CONNECTIONS, log)
        until(lambda: not broker.lab.clients(), "the connections of the client are closed", SECONDS, every=0.05)
        return Seen(verdict.clients, [] if STEPS[0] in found.done else ["Produce"])
