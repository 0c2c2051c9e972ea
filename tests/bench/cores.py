"""What a second core could bring: four clients on one broker, and the same four on two brokers that know nothing of
each other, which is more than any division of one broker's work can reach. `make bench ARGS=cores`.

Each client is a process whose work is next to nothing: prepared requests, replies that are hardly looked at.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ottla.protocol import records

from ..support.wire import Wire
from .servers import (
    RECORD_1K,
    RECORD_100,
    Figures,
    fetch_request,
    produce_request,
    topic,
    warm_memory,
)
from .sides import Server, dispose, fresh

CLIENTS = 4
SECONDS = 5.0
FILL_REQUESTS = 300  # of 900 KB each: what the consumers read again and again
_CLIENT = "import sys; from tests.bench import cores; cores.client(*sys.argv[1:])"
_FRAMES: dict[str, Callable[[str], bytes]] = {
    "produce 1 KB in 1 MB": lambda name: produce_request(name, [RECORD_1K] * 900),
    "produce 100 B in 16 KiB": lambda name: produce_request(name, [RECORD_100] * 140),
    "produce one record": lambda name: produce_request(name, [RECORD_100]),
}
_IN_FLIGHT = 5
FAN_OUT = "consume 1 KB, all the same topic"


def client(servers: str, load: str, name: str, begins: str) -> None:
    """Runs one client from a moment of the monotonic clock on; prints how many bytes of records it got through."""
    until = float(begins) + SECONDS
    with Wire(servers) as wire:
        while time.monotonic() < float(begins):
            time.sleep(0.001)
        print(_consume(wire, name, until) if load == FAN_OUT else _produce(wire, _FRAMES[load](name), until))


def _produce(wire: Wire, frame: bytes, until: float) -> int:
    done = flying = 0
    while time.monotonic() < until:
        wire.send(frame)
        flying += 1
        if flying == _IN_FLIGHT:
            wire.read_frame()
            flying -= 1
            done += 1
    return done * len(frame)


def _consume(wire: Wire, name: str, until: float) -> int:
    offset = done = 0
    while time.monotonic() < until:
        data = wire.ask("Fetch", 11, fetch_request(name, offset)).responses[0].partitions[0].records
        done += len(data)
        for at in records.batches(data):
            offset = at.header.next_offset
        if offset >= FILL_REQUESTS * 900:
            offset = 0
    return done


@contextmanager
def _servers(count: int, **settings: Any) -> Iterator[list[Server]]:
    found = [fresh("ottla", **settings) for _ in range(count)]
    try:
        for server in found:
            server.start()
            topic(server, "shared")
            for n in range(CLIENTS):
                topic(server, f"own-{n}")
        yield found
    finally:
        for server in found:
            dispose(server)


def _fill(server: Server) -> None:
    frame = produce_request("shared", [RECORD_1K] * 900)
    with Wire(server.bootstrap_servers) as wire:
        for _ in range(FILL_REQUESTS):
            wire.send(frame)
            wire.read_frame()


def rate(servers: list[Server], load: str) -> float:
    """MB a second that the clients get through together, divided over the servers."""
    begins = time.monotonic() + 1.5  # by then all of them have begun
    programs = []
    for n in range(CLIENTS):
        name = "shared" if load == FAN_OUT else f"own-{n}"
        words = [servers[n % len(servers)].bootstrap_servers, load, name, str(begins)]
        programs.append(subprocess.Popen([sys.executable, "-c", _CLIENT, *words], stdout=subprocess.PIPE, text=True))
    return sum(int(one.communicate(timeout=60)[0]) for one in programs) / SECONDS / 1e6


def cores(side: str) -> Figures:
    if side != "ottla":
        return {}
    warm_memory()
    found: Figures = {}
    for count in (1, 2):
        with _servers(count, log_retention_bytes=1_000_000_000, log_segment_bytes=100_000_000) as servers:
            for server in servers:
                _fill(server)
            for load in (FAN_OUT, *_FRAMES):
                found[f"{load}, {count}, MB/s"] = rate(servers, load)
    for load in (FAN_OUT, *_FRAMES):
        found[f"{load}, 2 / 1"] = found[f"{load}, 2, MB/s"] / found[f"{load}, 1, MB/s"]
    return found


SECTIONS: dict[str, Any] = {"cores": cores}
