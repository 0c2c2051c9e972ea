"""The examination `truncation` of the programs of well-known clients: a consumer has read records that an unclean
election cuts off (KIP-320).

A consumer that asks where its leader epoch ends goes on from there. Only its rule counts: a node that is killed closes
connections, and their clients end nothing in good order.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ottla import verdict_truncation
from ottla.testing import Broker
from ottla.traces.reading import read, text
from ottla.verdict_truncation import STEPS, Truncation

from ..support.poll import until
from .examinations import LONGER_SECONDS, QUICK, QUIET_SECONDS, SECONDS, Seen, end, running
from .examined.program import READ
from .verdict_page import TRUNCATION

POLL_SECONDS: Final = 0.1
RULE: Final = verdict_truncation.RULE
SETTINGS: Final[dict[str, object]] = {**QUICK, **verdict_truncation.SETTINGS, "num.partitions": 1}
EPOCH_ASKED: Final = "OffsetForLeaderEpoch"


def _has_fetched_after_asking(trace: Path) -> bool:
    """Whether the client has fetched since it asked for the end of an epoch."""
    asked = [text(event, "api") for event in read(trace) if event["event"] == "request"]
    return EPOCH_ASKED in asked and "Fetch" in asked[asked.index(EPOCH_ASKED) :]


def truncation(command: Sequence[str], directory: Path) -> Seen:
    """Lets the program of a client go through it. What is missed is that the client asks where its epoch ends."""
    log, trace = (directory / f"{TRUNCATION}.{kind}" for kind in ("log", "jsonl"))
    with Broker({**SETTINGS, "ottla.trace": str(trace)}) as broker, broker.lab.verdict("basic") as verdict:
        found = Truncation(broker, READ)
        leader, _ = found.replicas()
        stays = next(one for node, one in enumerate(broker.bootstrap_servers.split(","), 1) if node != leader)
        with running([*command, f"{TRUNCATION}={stays}"], log) as process:
            found.begin()
            try:
                until(lambda: len(found.done) == len(STEPS), "an unclean election", SECONDS, POLL_SECONDS)
            finally:
                found.end()
            missed: list[str] = []
            try:
                until(
                    lambda: _has_fetched_after_asking(trace),
                    "where the epoch ends is asked",
                    QUIET_SECONDS,
                    POLL_SECONDS,
                )
            except AssertionError:
                missed.append(EPOCH_ASKED)
            time.sleep(LONGER_SECONDS)
            end(process, TRUNCATION, log)
        return Seen(verdict.clients, missed)
