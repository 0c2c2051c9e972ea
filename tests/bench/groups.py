"""Groups, ottla and Apache Kafka side by side: settling, commits, heartbeats, loading, memory. Run by `make bench
ARGS="settle commits …"`.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from pathlib import Path
from typing import Any

import psutil
from ottla.coordinator.group.format import GroupFormat
from ottla.coordinator.hashing import partition_for
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Template

from ottla.testing import Broker

from ..support.wire import Wire, request_frame
from .servers import Figures, clients, go_figures, quantile, topic
from .sides import Server, dispose, fresh

MEMBERS = 1000
STRICT: dict[str, object] = {"group_initial_rebalance_delay_ms": 0}


def ready(server: Server) -> None:
    """The coordinator of every group answers."""
    with Wire(server.bootstrap_servers) as wire:
        for group in ("g", "bench"):
            find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
            while wire.ask("FindCoordinator", 4, find).coordinators[0].error_code:
                continue
        while wire.ask("ListGroups", 4, m.ListGroupsRequest()).error_code:
            continue


def settle(side: str) -> Figures:
    """50 franz-go consumers on 100 partitions, from their start until everyone has their part."""
    program = clients()
    if program is None:
        return {}
    server = fresh(side, **STRICT)
    server.start()
    ready(server)
    found = {}
    for kind, label in (
        ("classic", "50 members settled, classic, ms"),
        ("consumer", "50 members settled, KIP-848, ms"),
    ):
        (found[label],) = go_figures(program, server, "settle", kind, kind)
    dispose(server)
    return found


def commit_frame(group: str, name: str, offset: int) -> bytes:
    r = m.OffsetCommitRequest
    parts = [
        r.OffsetCommitRequestPartition(partition_index=i, committed_offset=offset, committed_metadata="")
        for i in range(10)
    ]
    return request_frame(
        "OffsetCommit", 8, r(group_id=group, topics=[r.OffsetCommitRequestTopic(name=name, partitions=parts)])
    )


def pump(server: Server, frames: list[bytes], seconds: float) -> float:
    """Requests per second that connections get answered, each with one request under way."""
    sockets = []
    host, _, port = server.bootstrap_servers.rpartition(":")
    selector = selectors.DefaultSelector()
    for frame in frames:
        one = socket.create_connection((host, int(port)))
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(one, selectors.EVENT_READ, frame)
        sockets.append(one)
        one.sendall(frame)
    done, began = 0, time.perf_counter()
    until = began + seconds
    while time.perf_counter() < until:
        for key, _ in selector.select(1):
            data = key.fileobj.recv(65536)  # type: ignore[union-attr]
            (size,) = struct.unpack_from(">i", data)
            assert len(data) == size + 4, "a reply in pieces"
            done += 1
            key.fileobj.sendall(key.data)  # type: ignore[union-attr]
    took = time.perf_counter() - began
    for one in sockets:
        one.close()
    return done / took


def commits(side: str) -> Figures:
    """OffsetCommit of 10 partitions over 8 connections: of one group, as its members commit, and of eight."""
    server = fresh(side)
    server.start()
    topic(server, "committed", 10)
    ready(server)
    found = {}
    for groups, label in ((1, "OffsetCommit of one group, /s"), (8, "OffsetCommit of 8 groups, /s")):
        frames = [commit_frame(f"bench-{n % groups}", "committed", n) for n in range(8)]
        pump(server, frames, 3.0)
        found[label] = pump(server, frames, 4.0)
    dispose(server)
    return found


def heartbeats(side: str) -> Figures:
    """Heartbeats of a consumer group of 1,000 members, and what a group of one member costs in memory."""
    server = fresh(side)
    server.start()
    topic(server, "beaten", 8)
    ready(server)
    r = m.ConsumerGroupHeartbeatRequest
    times = []
    with Wire(server.bootstrap_servers, timeout=60) as wire:
        epochs = {}
        for n in range(MEMBERS):
            join = r(
                group_id="many",
                member_id=f"m{n}",
                member_epoch=0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=["beaten"],
                topic_partitions=[],
            )
            epochs[n] = wire.ask("ConsumerGroupHeartbeat", 1, join).member_epoch
        for round_ in range(3):
            for n in range(MEMBERS):
                beat = r(
                    group_id="many",
                    member_id=f"m{n}",
                    member_epoch=epochs[n],
                    topic_partitions=[] if round_ == 0 else None,
                )
                began = time.perf_counter()
                answer = wire.ask("ConsumerGroupHeartbeat", 1, beat)
                if round_ == 2:
                    times.append(time.perf_counter() - began)
                epochs[n] = answer.member_epoch
        process = psutil.Process(server.pid)
        before = process.memory_info().rss
        for n in range(5000):
            join = r(
                group_id=f"one-{n}",
                member_id="m",
                member_epoch=0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=["beaten"],
                topic_partitions=[],
            )
            wire.ask("ConsumerGroupHeartbeat", 1, join)
        per_group = (process.memory_info().rss - before) / 5000 / 1024
    dispose(server)
    return {
        "heartbeat of 1,000 members p50, us": quantile(times, 0.5) * 1e6,
        "heartbeat of 1,000 members p99, us": quantile(times, 0.99) * 1e6,
        "a group of one member, KiB": per_group,
    }


def _write_log(directory: Path, name: str, count: int, distinct: int) -> None:
    """The first segment of a partition, full of commits."""
    encode = GroupFormat().encode
    path = directory / name / "00000000000000000000.log"
    out, offset = bytearray(), 0
    key, value = m.OffsetCommitKey, m.OffsetCommitValue
    while offset < count:
        some = []
        for n in range(offset, min(offset + 500, count)):
            at = n % distinct
            k = key(group=f"load-{at // 1000}", topic="loaded", partition=at % 1000)
            some.append(encode((k, value(offset=n, metadata="", commit_timestamp=int(time.time() * 1000)))))
            some[-1].timestamp = 1_700_000_000_000
        out += records.encode(some, Template(base_offset=offset, leader_epoch=0))
        offset += len(some)
    path.write_bytes(out)


def load(side: str) -> Figures:
    """From the start to the first answer of a coordinator whose partition holds 1,000,000 records."""
    found: Figures = {}
    for label, distinct in (("99 % superseded", 10_000), ("all surviving", 1_000_000)):
        server = fresh(side, offsets_topic_num_partitions=1)
        server.start()
        topic(server, "loaded", 1)
        ready(server)
        server.stop()
        _write_log(server.data_directory, "__consumer_offsets-0", 1_000_000, distinct)
        for stale in (server.data_directory / "__consumer_offsets-0").glob("*.*index"):
            stale.unlink()
        for mark in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", ".kafka_cleanshutdown"):
            (server.data_directory / mark).unlink(missing_ok=True)
        assert partition_for("load-0", 1) == 0
        if not isinstance(server, Broker):
            server.formatted = True
        server.start()
        q = m.OffsetFetchRequest
        asked = q.OffsetFetchRequestGroup(
            group_id="load-0", topics=[q.OffsetFetchRequestTopics(name="loaded", partition_indexes=[1])]
        )
        other: list[float] = []
        with Wire(server.bootstrap_servers, timeout=120) as wire, Wire(server.bootstrap_servers) as beside:
            began = time.perf_counter()
            while True:
                answer = wire.ask("OffsetFetch", 8, q(groups=[asked])).groups[0]
                at = time.perf_counter()
                beside.ask(
                    "ApiVersions", 3, m.ApiVersionsRequest(client_software_name="b", client_software_version="1")
                )
                other.append(time.perf_counter() - at)
                if answer.error_code == 0 and answer.topics[0].partitions[0].committed_offset > 0:
                    break
            found[f"loading 1,000,000 records, {label}, s"] = time.perf_counter() - began
            found[f"ApiVersions meanwhile p99, {label}, us"] = quantile(other, 0.99) * 1e6
        dispose(server)
    return found


SECTIONS: dict[str, Any] = {"settle": settle, "commits": commits, "heartbeats": heartbeats, "load": load}
