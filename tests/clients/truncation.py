"""The examination `truncation` of the programs of well-known clients: a consumer has read records that an unclean
election cuts off (KIP-320).

Only two rules count: a node that is killed closes connections, and their clients end nothing in good order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ottla import verdict_truncation
from ottla.testing import Broker
from ottla.traces.reading import read, text
from ottla.verdict_truncation import STEPS, Truncation

from ..support.poll import until
from .examinations import QUICK, SECONDS, Seen, end, running
from .examined.program import READ
from .verdict_page import TRUNCATION

POLL_SECONDS: Final = 0.1
RULES: Final = verdict_truncation.RULES
SETTINGS: Final[dict[str, object]] = {**QUICK, **verdict_truncation.SETTINGS, "num.partitions": 1}
EPOCH_ASKED: Final = "OffsetForLeaderEpoch"
FETCHES_AFTER: Final = 20
"""Of a client that has asked where its epoch ends: what it does about the answer."""
FETCHES_WITHOUT: Final = 200
"""After so many since the election a client that has not asked does not ask."""


class _Fetches:
    """What a trace has of a client: how often it has fetched in all, and since it asked for the end of an epoch."""

    def __init__(self, trace: Path) -> None:
        asked = [text(event, "api") for event in read(trace) if event["event"] == "request"]
        after = asked[asked.index(EPOCH_ASKED) :] if EPOCH_ASKED in asked else []
        self.all, self.after_asking = asked.count("Fetch"), after.count("Fetch")


def truncation(command: Sequence[str], directory: Path) -> Seen:
    """Lets the program of a client go through it. What is missed is that the client asks where its epoch ends."""
    log, trace = (directory / f"{TRUNCATION}.{kind}" for kind in ("log", "jsonl"))
    with Broker({**SETTINGS, "ottla.trace": str(trace)}) as broker, broker.lab.verdict("basic") as verdict:
        found = Truncation(broker, READ)
        killed, _ = found.replicas()
        stays = next(one for node, one in enumerate(broker.bootstrap_servers.split(","), 1) if node != killed)
        with running([*command, f"{TRUNCATION}={stays}"], log) as process:
            found.begin()
            try:
                until(lambda: len(found.done) == len(STEPS), "an unclean election", SECONDS, POLL_SECONDS)
            finally:
                found.end()
            before = _Fetches(trace)

            def is_over() -> bool:
                now = _Fetches(trace)
                return now.after_asking >= FETCHES_AFTER or now.all - before.all >= FETCHES_WITHOUT

            until(is_over, "the client fetches from the new leader", SECONDS, POLL_SECONDS)
            end(process, TRUNCATION, log)
        return Seen(verdict.clients, [] if _Fetches(trace).after_asking else [EPOCH_ASKED])
