"""Asks a broker for ApiVersions until standard input says something; prints the longest time that an answer took, in
milliseconds.

What the broker's loop and this process waited for a processor that others had is taken from it, where the system says
how long that was.
"""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path

from ottla.protocol import messages as m

from ..support.wire import Closed, Wire, request_frame

PAUSE_SECONDS = 0.002
PATIENCE_SECONDS = 120.0


def _queued_seconds(*threads: int) -> float:
    """How long threads were ready to run and did not, since they began."""
    try:
        return sum(int(Path(f"/proc/{one}/schedstat").read_text().split()[1]) for one in threads) / 1e9
    except OSError:  # not Linux, or the broker ended
        return 0.0


def main(bootstrap_servers: str, broker_pid: int) -> None:
    frame = request_frame(
        "ApiVersions", 3, m.ApiVersionsRequest(client_software_name="watcher", client_software_version="1")
    )
    longest = 0.0
    with Wire(bootstrap_servers, PATIENCE_SECONDS) as wire:
        wire.send(frame)
        wire.read_frame()
        print("watching", flush=True)
        threads = broker_pid, os.getpid()
        while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
            began, queued = time.perf_counter(), _queued_seconds(*threads)
            try:
                wire.send(frame)
                wire.read_frame()
            except (Closed, OSError):
                longest = float("inf")
                break
            longest = max(longest, time.perf_counter() - began - (_queued_seconds(*threads) - queued))
    print(longest * 1000)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
