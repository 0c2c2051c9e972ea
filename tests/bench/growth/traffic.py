"""Producers, and consumers of one topic."""

from __future__ import annotations

import selectors
import statistics
import time
from collections.abc import Iterator

from ...support.wire import Wire, request_frame
from ..groups import pump
from ..servers import RECORD_100, fetch_request, produce_request, topic
from ..sides import dispose, fresh
from . import Curve, Point
from .probes import processor_us

PRODUCERS = (1, 5, 20, 100, 500)
CONSUMERS = (1, 5, 20, 100, 500)
SECONDS = 3.0
PRODUCER_ROUNDS, PRODUCER_SECONDS = 5, 2.0
ROUNDS = 40
LONG_MS = 30_000


def producers(side: str) -> Iterator[Point]:
    """One server; each producer has a connection, and one request under way with one record. Medians of rounds through
    all counts, because what else the machine does changes meanwhile. `processor`: what the server needs of it.
    """
    server = fresh(side)
    server.start()
    topic(server, "wide", 100)
    frame = produce_request("wide", [RECORD_100])
    pump(server, [frame] * 5, SECONDS)
    times: dict[int, list[tuple[float, float]]] = {count: [] for count in PRODUCERS}
    for _ in range(PRODUCER_ROUNDS):
        for count in PRODUCERS:
            before = processor_us(server)
            request_us = 1e6 / pump(server, [frame] * count, PRODUCER_SECONDS)
            used_us = processor_us(server) - before
            times[count].append((request_us, used_us / (PRODUCER_SECONDS * 1e6) * request_us))
    for count, found in times.items():
        request_us, used_us = map(statistics.median, zip(*found, strict=True))
        yield count, {"request, us": request_us, "processor, us": used_us}
    dispose(server)


def consumers(side: str) -> Iterator[Point]:
    """One server; all consumers wait when a record comes. `each`: until the last one has it, for each."""
    server = fresh(side)
    server.start()
    topic(server, "fan")
    frame, end = produce_request("fan", [RECORD_100]), 0
    with Wire(server.bootstrap_servers) as wire:
        for count in CONSUMERS:
            selector, waiting = selectors.DefaultSelector(), [Wire(server.bootstrap_servers) for _ in range(count)]
            for one in waiting:
                selector.register(one.socket, selectors.EVENT_READ, one)
            took = []
            for _ in range(ROUNDS):
                asked = request_frame("Fetch", 11, fetch_request("fan", end, LONG_MS))
                for one in waiting:
                    one.send(asked)
                time.sleep(0.01 + count / 5000)  # all are parked by then
                began = time.perf_counter()
                wire.send(frame)
                left = count
                while left:
                    for key, _ in selector.select():
                        key.data.read_frame()
                        left -= 1
                took.append(time.perf_counter() - began)
                wire.read_frame()
                end += 1
            for one in waiting:
                one.close()
            yield count, {"each, us": sorted(took)[ROUNDS // 2] / count * 1e6}
    dispose(server)


CURVES = {"producers": Curve("producers", producers), "fan-out": Curve("consumers of one partition", consumers)}
