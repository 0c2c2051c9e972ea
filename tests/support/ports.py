"""Free ports for servers whose port must be known before they start.

A port that the system chooses (port 0) can be taken before the server listens: by a broker of another test, or by a
client's end of a connection. The ports here are below those that Linux and macOS choose.
"""

from __future__ import annotations

import random
import socket

RANGE = range(12_000, 32_768)


def free_ports(count: int) -> list[int]:
    """Returns ports of loopback on which nothing listens."""
    chance = random.SystemRandom()  # another process that asks gets others
    found: list[int] = []
    while len(found) < count:
        port = chance.choice(RANGE)
        if port not in found and _is_free(port):
            found.append(port)
    return found


def free_port() -> int:
    (port,) = free_ports(1)
    return port


def free_run(count: int) -> int:
    """Returns the first of so many consecutive ports on which nothing listens."""
    while True:
        (first,) = free_ports(1)
        if all(map(_is_free, range(first, first + count))):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
