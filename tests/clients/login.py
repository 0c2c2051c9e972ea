"""The examination `login` of the programs of well-known clients: they log in, and again before their session is over
(KIP-368).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ottla import verdict_login
from ottla.testing import Broker

from ..support.poll import until
from .examinations import LONGER_EVENTS, QUICK, SECONDS, Seen, end, running
from .verdict_page import LOGIN

RULES: Final = verdict_login.RULES
AGAIN: Final = RULES[0]
SESSIONS: Final = 3
"""After so many a client that has not come to the end of one does not come to it."""


def login(command: Sequence[str], directory: Path) -> Seen:
    """Lets the program of a client go through it. What is missed is that it authenticates again, or does not."""
    log = directory / f"{LOGIN}.log"
    listener = {"listeners": f"{verdict_login.PROTOCOL}://127.0.0.1:0"}
    with (
        Broker({**QUICK, **verdict_login.SETTINGS, **listener}) as broker,
        broker.lab.verdict("network") as verdict,
        running([*command, f"{LOGIN}={broker.bootstrap_servers}"], log) as process,
    ):
        latest = time.monotonic() + SESSIONS * verdict_login.SESSION_MS / 1000

        def has_ended() -> bool:
            """A session of the client has ended."""
            return verdict.outcomes()[AGAIN] != "not exercised"

        until(lambda: bool(verdict.clients), "a client logs in", SECONDS)
        until(lambda: has_ended() or time.monotonic() > latest, "a session ends", SECONDS, every=0.1)
        before = verdict.view["events"]
        latest = time.monotonic() + verdict_login.SESSION_MS / 1000  # one that the broker has closed may stand still

        def has_gone_on() -> bool:
            return verdict.view["events"] - before > LONGER_EVENTS or time.monotonic() > latest

        until(has_gone_on, "the client goes on", SECONDS, every=0.1)
        end(process, LOGIN, log)
        until(lambda: not broker.lab.clients(), "the connections of the client are closed", SECONDS, every=0.05)
        return Seen(verdict.clients, [] if has_ended() else ["SaslAuthenticate"])
