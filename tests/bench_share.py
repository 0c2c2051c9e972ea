"""Share groups, ottla and Apache Kafka side by side: how fast a queue is read, how soon, and what it costs. Run by `make bench ARGS="share …"`."""

from __future__ import annotations

import time
from typing import Any

import psutil
from ottla.protocol import messages as m

from .ask import create, produce
from .bench import Figures, Server, clients, dispose, fresh, go_figures
from .wire import Wire

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


def configure(wire: Wire, group: str, name: str, value: str) -> None:
    r = m.IncrementalAlterConfigsRequest
    change = r.AlterableConfig(name=name, config_operation=0, value=value)
    wire.ask("IncrementalAlterConfigs", 1, r(resources=[r.AlterConfigsResource(resource_type=32, resource_name=group, configs=[change])]))


class Session:
    """A share session on all partitions of a topic."""

    def __init__(self, wire: Wire, group: str, topic_id: bytes, partitions: int) -> None:
        self.wire = wire
        self.group = group
        self.topic_id = topic_id
        self.partitions = range(partitions)
        self.epoch = 0
        configure(wire, group, "share.auto.offset.reset", "earliest")
        h = m.ShareGroupHeartbeatRequest(group_id=group, member_id="m", member_epoch=0, subscribed_topic_names=[group])
        d = m.DescribeShareGroupOffsetsRequest
        asked = d(groups=[d.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)])
        until = time.monotonic() + 60
        while sum(len(t.partitions) for t in wire.ask("DescribeShareGroupOffsets", 1, asked).groups[0].topics) < partitions:
            assert time.monotonic() < until, "the share-partitions are not initialised"
            wire.ask("ShareGroupHeartbeat", 1, h)

    def fetch(self) -> int:
        """How many records a fetch acquires."""
        r = m.ShareFetchRequest
        request = r(group_id=self.group, member_id="m", share_session_epoch=self.epoch, max_wait_ms=500, min_bytes=1, max_bytes=1 << 28)
        request.max_records, request.batch_size = 1 << 20, 500
        if self.epoch == 0:
            request.topics = [r.FetchTopic(topic_id=self.topic_id, partitions=[r.FetchPartition(partition_index=p) for p in self.partitions])]
        self.epoch += 1
        reply = self.wire.ask("ShareFetch", 2, request)
        assert reply.error_code == 0, reply.error_code
        return sum(a.last_offset - a.first_offset + 1 for t in reply.responses for p in t.partitions for a in p.acquired_records)

    def acknowledge(self, partition: int, first: int, last: int, types: list[int]) -> None:
        r = m.ShareAcknowledgeRequest
        row = r.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        topics = [
            r.AcknowledgeTopic(topic_id=self.topic_id, partitions=[r.AcknowledgePartition(partition_index=partition, acknowledgement_batches=[row])])
        ]
        request = r(group_id=self.group, member_id="m", share_session_epoch=self.epoch, topics=topics)
        self.epoch += 1
        reply = self.wire.ask("ShareAcknowledge", 2, request)
        assert [p.error_code for t in reply.responses for p in t.partitions] == [0]


def queue(server: Server, wire: Wire, name: str, partitions: int) -> Session:
    topic_id = create(wire, name, partitions)
    now = int(time.time() * 1000)
    for partition in range(partitions):
        for _ in range(LOCKS // 500):
            produce(wire, name, *[b"v"] * 500, partition=partition, acks=1, now=now)
    return Session(wire, name, topic_id, partitions)


def memory(side: str) -> Figures:
    """2,000 records in flight in each of 200 share-partitions, and again when every second one of them has been accepted; ottla alone."""
    if side != "ottla":
        return {}
    server = started(side)
    process = psutil.Process(server.pid)
    with Wire(server.bootstrap_servers, timeout=60) as wire:
        session = queue(server, wire, "flight", PARTITIONS)
        before = process.memory_info().rss
        count = 0
        while count < PARTITIONS * LOCKS:
            count += session.fetch()
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
                count += session.fetch()
            began = time.perf_counter()
            for offset in range(150):
                session.acknowledge(0, offset, offset, [1])
            found[f"an acknowledgement with {locks:,} in flight, us"] = (time.perf_counter() - began) / 150 * 1e6
    dispose(server)
    return found


SECTIONS: dict[str, Any] = {"share": speed, "share-latency": latency, "share-memory": memory, "share-flight": flight}
