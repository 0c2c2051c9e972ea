"""Free ports for brokers whose ports must be known before they start.

A port that the system chooses (port 0) can be taken before the broker listens, by a client's end of a connection. The
ports here are below those that Linux and macOS choose.
"""

from __future__ import annotations

import errno
import random
import socket
from typing import Final

RANGE: Final = range(12_000, 32_768)


def free_run(host: str, count: int) -> int:
    """Returns the first of so many consecutive ports of a host on which nothing listens. Raises OSError if the host is
    not of this machine.
    """
    chance = random.SystemRandom()  # another process that asks gets others
    while True:
        first = chance.randrange(RANGE.start, RANGE.stop - count)
        if all(is_free(host, port) for port in range(first, first + count)):
            return first


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen. Raises OSError as `free_run`."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        try:
            probe.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True
