"""Which clients meet which releases that a broker emulates: some by default, all with OTTLA_RELEASES=1."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ottla.broker.config.config import RELEASES
from ottla.protocol.config_def import numbers_of

ALL = os.environ.get("OTTLA_RELEASES") == "1"
LATER = ("0.10.2", "0.11", "1.1", "2.1", "2.8", "3.9")  # the brokers that all earlier clients meet
Pair = tuple[str, str]


def since(release: str, before: str = "9") -> list[str]:
    """The releases from one on, before another."""
    return [one for one in RELEASES if numbers_of(release) <= numbers_of(one) < numbers_of(before)]


def pairs(clients: Iterable[str], chosen: Iterable[Pair], before: str = "4.0") -> list[Pair]:
    """Pairs of a client's release and a broker's: `chosen`, or all: each client with its own release and later ones.
    `before`: the first broker that knows the requests of the earliest clients no more.
    """
    if not ALL:
        return list(chosen)
    found = []
    for client in clients:
        later = [one for one in since(client) if one in LATER or one == client]
        limit = before if numbers_of(client) < (2, 1) else "9"
        found += [(client, one) for one in later if numbers_of(one) < numbers_of(limit) or one == client]
    return found
