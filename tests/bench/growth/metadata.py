"""Partitions and connections."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator

from ottla.protocol import messages as m

from ...support.wire import Wire, request_frame
from ..servers import RECORD_100, produce_request, topic
from ..sides import dispose, dispose_at_exit, fresh
from . import Curve, Point
from .probes import asking, idle_percent, median_us, memory_kib, seconds

PER_TOPIC = 100
PARTITIONS = (10, 100, 1000, 10_000)
CONNECTIONS = (100, 1000, 4000, 10_000)
SETTLE_SECONDS = 2.0


def partitions(side: str) -> Iterator[Point]:
    """Each point is a server of its own. `poll`: of an incremental fetch session over all partitions, none of which has
    news.
    """
    for count in PARTITIONS:
        server = fresh(side)
        server.start()
        before = memory_kib(server)
        sizes = [min(PER_TOPIC, count - first) for first in range(0, count, PER_TOPIC)]
        names = [f"topic-{number:03}" for number in range(len(sizes))]
        with Wire(server.bootstrap_servers, timeout=300) as wire:
            created = seconds(lambda wire=wire, names=names, sizes=sizes: _create(wire, names, sizes))  # type: ignore[misc]
            all_of_it = request_frame("Metadata", 12, m.MetadataRequest(topics=None))
            metadata_us = median_us(asking(wire, all_of_it))
            poll_us = _session_poll_us(wire, names, sizes)
        time.sleep(SETTLE_SECONDS)
        used_kib, idle = memory_kib(server) - before, idle_percent(server)
        server.stop()

        def again() -> None:
            server.start()  # noqa: B023
            with Wire(server.bootstrap_servers, timeout=300) as wire:  # noqa: B023
                _write_all(wire, names, sizes)  # noqa: B023

        restarted = seconds(again)
        dispose_at_exit(server)
        yield (
            count,
            {
                "create, us": created / count * 1e6,
                "Metadata, us": metadata_us / count,
                "memory, KiB": used_kib / count,
                "restart and write, us": restarted / count * 1e6,
                "poll of all, us": poll_us,
                "idle, % of a core": idle,
            },
        )


def _create(wire: Wire, names: list[str], sizes: list[int]) -> None:
    r = m.CreateTopicsRequest
    some = [
        r.CreatableTopic(name=name, num_partitions=size, replication_factor=1)
        for name, size in zip(names, sizes, strict=True)
    ]
    for first in range(0, len(some), 10):
        reply = wire.ask("CreateTopics", 7, r(topics=some[first : first + 10], timeout_ms=120_000))
        assert not any(one.error_code for one in reply.topics), reply
    _write_all(wire, names, sizes)


def _write_all(wire: Wire, names: list[str], sizes: list[int]) -> None:
    """Writes a record to every partition, as soon as each takes one."""
    for name, size in zip(names, sizes, strict=True):
        frame = produce_request(name, [RECORD_100], size)
        while True:
            wire.send(frame)
            if not any(one.error_code for one in wire.reply("Produce", 9).responses[0].partition_responses):
                break


def _session_poll_us(wire: Wire, names: list[str], sizes: list[int]) -> float:
    r = m.FetchRequest
    topics = [
        r.FetchTopic(
            topic=name,
            partitions=[
                r.FetchPartition(partition=i, fetch_offset=1, partition_max_bytes=1 << 20) for i in range(size)
            ],
        )
        for name, size in zip(names, sizes, strict=True)
    ]
    first = r(topics=topics, session_epoch=0, max_wait_ms=0, max_bytes=1 << 20)
    session = wire.ask("Fetch", 11, first).session_id
    epoch = 0

    def poll() -> None:
        nonlocal epoch
        epoch += 1
        asked = r(session_id=session, session_epoch=epoch, max_wait_ms=0, max_bytes=1 << 20)
        asking(wire, request_frame("Fetch", 11, asked))()

    return median_us(poll, 100)


def connections(side: str) -> Iterator[Point]:
    """One server; connections stay open. `request`: one record on one of them, while all others are idle."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    server = fresh(side)
    server.start()
    topic(server, "one")
    host, _, port = server.bootstrap_servers.rpartition(":")
    hello = request_frame("ApiVersions", 3, m.ApiVersionsRequest(client_software_name="b", client_software_version="1"))
    opened: list[socket.socket] = []
    before = memory_kib(server)

    def more(count: int) -> None:
        for _ in range(count):
            one = socket.create_connection((host, int(port)))
            one.sendall(hello)
            one.recv(1 << 16)
            opened.append(one)

    with Wire(server.bootstrap_servers) as wire:
        produce = asking(wire, produce_request("one", [RECORD_100]))
        for count in CONNECTIONS:
            if count + 100 > limit:
                print(f"only {limit} descriptors")
                break
            new = count - len(opened)
            took = seconds(lambda new=new: more(new))  # type: ignore[misc]
            figures = {
                "open, us": took / new * 1e6,
                "memory, KiB": (memory_kib(server) - before) / count,
                "request, us": median_us(produce, 500),
                "idle, % of a core": idle_percent(server),
            }
            yield count, figures
    for one in opened:
        one.close()
    dispose(server)


CURVES = {"partitions": Curve("partitions", partitions), "connections": Curve("connections", connections)}
