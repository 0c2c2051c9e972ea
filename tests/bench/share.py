"""Share groups, ottla and Apache Kafka side by side: how fast a queue is read, how soon, and what it costs. Run by
`make bench ARGS="share …"`.
"""

from __future__ import annotations

import time
from typing import Any

import psutil
from ottla.protocol import messages as m

from ..support.ask import create, produce
from ..support.share_session import ShareSession, configure
from ..support.wire import Wire
from .servers import Figures, clients, go_figures
from .sides import Server, dispose, fresh

RECORDS = 200_000
EXPLICIT_RECORDS = 100_000
STRICT: dict[str, object] = {"group_share_assignment_interval_ms": 0}
PARTITIONS = 200
LOCKS = 2000


def started(side: str, **settings: object) -> Server:
    server = fresh(side, **STRICT, **settings)
    server.start()
    with Wire(server.bootstrap_servers) as wire:
        for kind, key in ((0, "g"), (2, f"g:{'A' * 22}:0")):
            find = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            while wire.ask("FindCoordinator", 6, find).coordinators[0].error_code:
                continue
    return server


def speed(side: str) -> Figures:
    """franz-go's share consumers on one partition, records of 100 bytes."""
    program = clients()
    if program is None:
        return {}
    server = started(side)
    found: Figures = {}
    for label, members, count, how in (
        ("1 share consumer, records/s", 1, RECORDS, "implicit"),
        ("10 share consumers on one partition, records/s", 10, RECORDS, "implicit"),
        ("each acknowledged, every tenth released, records/s", 1, EXPLICIT_RECORDS, "explicit"),
    ):
        (found[label],) = go_figures(program, server, "share-speed", f"speed-{members}-{how}", members, count, how)
    dispose(server)
    return found


def latency(side: str) -> Figures:
    """From producing a record until a waiting consumer has it, one at a time."""
    program = clients()
    if program is None:
        return {}
    server = started(side)
    (median,) = go_figures(program, server, "share-latency", "latency", 1000)
    dispose(server)
    return {"produce to delivery p50, ms": median}


def queue(server: Server, wire: Wire, name: str, partitions: int) -> ShareSession:
    topic_id = create(wire, name, partitions)
    now = int(time.time() * 1000)
    for partition in range(partitions):
        for _ in range(LOCKS // 500):
            produce(wire, name, *[b"v"] * 500, partition=partition, acks=1, now=now)
    return ShareSession(wire, name, topic_id, partitions)


def memory(side: str) -> Figures:
    """2,000 records in flight in each of 200 share-partitions, and again when every second one of them has been
    accepted; ottla alone.
    """
    if side != "ottla":
        return {}
    server = started(side)
    process = psutil.Process(server.pid)
    with Wire(server.bootstrap_servers, timeout=60) as wire:
        session = queue(server, wire, "flight", PARTITIONS)
        before = process.memory_info().rss
        count = 0
        while count < PARTITIONS * LOCKS:
            count += session.acquired()
        found: Figures = {"400,000 records in flight, MiB": (process.memory_info().rss - before) / 2**20}
        for partition in range(PARTITIONS):
            session.acknowledge(partition, 0, LOCKS - 1, [2, 1] * (LOCKS // 2))
        found["every second one accepted, MiB"] = (process.memory_info().rss - before) / 2**20
    dispose(server)
    return found


def flight(side: str) -> Figures:
    """The cost of one acknowledgement of one record, by how many are in flight; ottla alone."""
    if side != "ottla":
        return {}
    server = started(side)
    found: Figures = {}
    for locks in (200, LOCKS):
        with Wire(server.bootstrap_servers, timeout=60) as wire:
            session = queue(server, wire, f"ack-{locks}", 1)
            configure(wire, session.group, "share.partition.max.record.locks", str(locks))
            count = 0
            while count < locks:
                count += session.acquired()
            began = time.perf_counter()
            for offset in range(150):
                session.acknowledge(0, offset, offset, [1])
            found[f"an acknowledgement with {locks:,} in flight, us"] = (time.perf_counter() - began) / 150 * 1e6
    dispose(server)
    return found


SECTIONS: dict[str, Any] = {"share": speed, "share-latency": latency, "share-memory": memory, "share-flight": flight}
