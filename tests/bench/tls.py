"""TLS: handshakes per second, and records of 1 KB in both directions. `make bench ARGS="handshakes tls"`.

Handshakes are made by OpenSSL's s_time. The processor time of the broker says what a handshake costs it, whatever else
the machine does.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from ottla.testing import Broker

from ..support.tls import Listeners, TlsWire, client_context, make_certificates
from ..support.wire import request_frame
from .servers import RECORD_1K, Figures, fetch_request, produce_request, topic
from .sides import Server, dispose, fresh

SECONDS = 5
REQUESTS = 300


@contextmanager
def _served(side: str) -> Iterator[tuple[Server, Listeners, Path]]:
    folder = make_certificates(Path(tempfile.mkdtemp(prefix="bench-certs-")))
    listeners, server = Listeners(folder), fresh(side)
    server.settings = listeners.settings if isinstance(server, Broker) else listeners.of_kafka(server.controller_port)
    if not isinstance(server, Broker):
        server.port = listeners.ports["PLAINTEXT"]
    server.start()
    try:
        yield server, listeners, folder
    finally:
        dispose(server)
        shutil.rmtree(folder)


def _processor_seconds(server: Server) -> float:
    found = psutil.Process(server.pid).cpu_times()
    return float(found.user + found.system)


def _shaken(address: str, folder: Path, client: str | None, seconds: int) -> int:
    """How many handshakes a client makes, one after the other."""
    of = folder / "good"
    command = ["openssl", "s_time", "-connect", address, "-new", "-time", str(seconds), "-CAfile", str(of / "ca.crt")]
    if client is not None:
        command += ["-cert", str(of / f"{client}.crt"), "-key", str(of / f"{client}.key")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds * 10 + 30, check=False)
    found = re.search(r"(\d+) connections in \d+ real seconds", done.stdout)
    assert found is not None, done.stdout + done.stderr
    return int(found[1])


def handshakes(side: str) -> Figures:
    """Full handshakes of TLS 1.3 with keys of EC P-256, with and without a certificate of the client."""
    found: Figures = {}
    with _served(side) as (server, listeners, folder):
        for name, listener, client in (("", "OPEN", None), (" with a client's certificate", "NEEDED", "client")):
            _shaken(listeners.at(listener), folder, client, 4)  # Java compiles
            before, began = _processor_seconds(server), time.perf_counter()
            count = _shaken(listeners.at(listener), folder, client, SECONDS)
            took = time.perf_counter() - began
            found[f"handshakes/s{name}"] = count / took
            found[f"processor time of a handshake{name}, us"] = (_processor_seconds(server) - before) / count * 1e6
    return found


def tls(side: str) -> Figures:
    """Prepared requests of 1 MB with records of 1 KB, five in flight, then fetches of 1 MB."""
    with _served(side) as (server, listeners, folder):
        topic(server, "raw")
        frame = produce_request("raw", [RECORD_1K] * 900)
        fetch = fetch_request("raw", 0)
        found: Figures = {}
        with TlsWire(listeners.at("OPEN"), client_context(folder, None)) as wire:
            for count in (50, REQUESTS):  # once to warm up
                before, began, flying = _processor_seconds(server), time.perf_counter(), 0
                for _ in range(count):
                    wire.send(frame)
                    flying += 1
                    if flying == 5:
                        wire.read_frame()
                        flying -= 1
                for _ in range(flying):
                    wire.read_frame()
                took, cost = time.perf_counter() - began, _processor_seconds(server) - before
            megabytes = REQUESTS * 900 * 1024 / 1e6
            found["produce 1 KB over TLS, MB/s"] = megabytes / took
            found["processor time of a produced MB, us"] = cost / megabytes * 1e6
            fetch.max_bytes = fetch.topics[0].partitions[0].partition_max_bytes = 1 << 20
            data = request_frame("Fetch", 11, fetch)
            for count in (50, REQUESTS):
                before, began, size = _processor_seconds(server), time.perf_counter(), 0
                for _ in range(count):
                    wire.send(data)
                    size += len(wire.read_frame())
                took, cost = time.perf_counter() - began, _processor_seconds(server) - before
            found["consume 1 KB over TLS, MB/s"] = size / 1e6 / took
            found["processor time of a consumed MB, us"] = cost / (size / 1e6) * 1e6
        return found


SECTIONS = {"handshakes": handshakes, "tls": tls}
