"""Ports of loopback for servers whose port must be known before they start (`ottla.free_ports`)."""

from __future__ import annotations

import random

from ottla import free_ports as free

HOST = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Returns ports of loopback on which nothing listens."""
    chance = random.SystemRandom()  # another process that asks gets others
    found: list[int] = []
    while len(found) < count:
        port = chance.choice(free.RANGE)
        if port not in found and free.is_free(HOST, port):
            found.append(port)
    return found


def free_port() -> int:
    return free_run(1)


def free_run(count: int) -> int:
    """Returns the first of so many consecutive ports on which nothing listens."""
    return free.free_run(HOST, count)
