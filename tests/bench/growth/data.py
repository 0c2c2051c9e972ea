"""How long a log is, and how large its records are."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

from ottla.protocol import messages as m

from ottla.testing import Broker

from ...support.wire import Wire
from ..servers import RECORD_1K, fetch_request, produce_request, topic, warm_memory
from ..sides import Server, dispose, fresh
from . import Curve, Point
from .probes import asking, median_us, memory_kib, seconds

MEGABYTES = (64, 256, 1024, 4096)
BATCH_RECORDS = 900  # of 1 KiB
SIZES = (10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000)
SMALL_BYTES = 100_000
LARGE_BYTES = 1_000_000  # from here on it is the bytes that take the time, and not the request
PER_BYTE = frozenset(("produce, ns per B", "fetch, ns per B"))
LARGEST = {"message_max_bytes": 20_000_000, "socket_request_max_bytes": 100_000_000}


def log_size(side: str) -> Iterator[Point]:
    """One server, whose one partition grows. `kill`: the start after SIGKILL; `by time`: ListOffsets of a time in the
    middle; `memory`: of the process that has appended what is new.
    """
    server = fresh(side)
    server.start()
    warm_memory()
    topic(server, "long")
    frame, written = produce_request("long", [RECORD_1K] * BATCH_RECORDS), 0
    for megabytes in MEGABYTES:
        with Wire(server.bootstrap_servers) as wire:
            middle_ms = int(time.time() * 1000)
            wanted = megabytes * 1000 // BATCH_RECORDS
            took = seconds(lambda n=wanted - written, wire=wire: [asking(wire, frame)() for _ in range(n)])  # type: ignore[misc]
            write_s, new, written = took, wanted - written, wanted
        used = memory_kib(server) / 1024
        server.stop()
        clean = seconds(lambda: first_record(server, written * BATCH_RECORDS - 1))  # noqa: B023
        os.kill(server.pid, signal.SIGKILL)
        reap(server)
        killed = seconds(lambda: first_record(server, written * BATCH_RECORDS - 1))  # noqa: B023
        with Wire(server.bootstrap_servers) as wire:
            by_time = median_us(lambda wire=wire, at=middle_ms: offset_at(wire, at))  # type: ignore[misc]
        yield (
            megabytes,
            {
                "write, us per MB": write_s / (new * BATCH_RECORDS / 1000) * 1e6,
                "start to tail, s": clean,
                "kill to tail, s": killed,
                "by time, us": by_time,
                "memory, MB": used,
            },
        )
    dispose(server)


def reap(server: Server) -> None:
    """Waits for a process that was killed."""
    if isinstance(server, Broker):
        server.kill()
    else:
        server.stop(signal.SIGKILL)


def first_record(server: Server, offset: int, starts: bool = True) -> None:
    """Fetches the last record. `starts`: of a server that has to be started first."""
    if starts:
        server.start()
    with Wire(server.bootstrap_servers, timeout=120) as wire:
        while True:
            found = wire.ask("Fetch", 11, fetch_request("long", offset)).responses[0].partitions[0]
            if not found.error_code and found.records:
                return


def offset_at(wire: Wire, time_ms: int) -> None:
    r = m.ListOffsetsRequest
    partition = r.ListOffsetsPartition(partition_index=0, timestamp=time_ms)
    found = wire.ask("ListOffsets", 5, r(topics=[r.ListOffsetsTopic(name="long", partitions=[partition])]))
    assert not found.topics[0].partitions[0].error_code


def record_size(side: str) -> Iterator[Point]:
    """One record in a request, one request at a time. Memory that the machine gets from its host when it is first
    touched would be paid by the large ones, which write most.
    """
    for size in SIZES:
        server = fresh(side, **LARGEST)
        server.start()
        warm_memory()
        topic(server, "sized")
        times = 1000 if size <= SMALL_BYTES else max(20, SMALL_BYTES * 1000 // size)
        with Wire(server.bootstrap_servers) as wire:
            produced = median_us(asking(wire, produce_request("sized", [b"x" * size])), times)
            asked = fetch_request("sized", 0)
            asked.max_bytes = asked.topics[0].partitions[0].partition_max_bytes = 1
            fetched = median_us(lambda wire=wire, asked=asked: wire.ask("Fetch", 11, asked), times)  # type: ignore[misc]
        dispose(server)
        yield (
            size,
            {
                "produce, us": produced,
                "fetch, us": fetched,
                "produce, ns per B": produced * 1000 / size,
                "fetch, ns per B": fetched * 1000 / size,
            },
        )


CURVES = {
    "log-size": Curve("MB of one partition", log_size),
    "record-size": Curve("bytes of a record", record_size, PER_BYTE, LARGE_BYTES),
}
