"""Streams groups, ottla and Apache Kafka side by side: settling, heartbeats, loading. Run by
`make bench ARGS="streams_settle streams_heartbeats streams_load"`.
"""

from __future__ import annotations

import heapq
import time
from pathlib import Path
from typing import Any

import psutil
from ottla.coordinator.group.format import GroupFormat
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Template

from ottla.testing import Broker

from ..support.stories.streams import R, joining, part
from ..support.wire import Wire
from .groups import ready
from .servers import Figures, quantile, topic
from .sides import dispose, fresh

THREADS, TASKS = 20, 100
MEMBERS = 500
WARM_ROUNDS, ROUNDS = 10, 10
LOADING = (14, 15, 16)  # Kafka's coordinator was elected and is not there yet
RECORDS = 100_000
PER_GROUP = 100  # members


class Thread:
    """A thread of an application, which beats when the broker asks for it, and at once when it has other tasks."""

    def __init__(self, wire: Wire, name: str, *parts: Any) -> None:
        self.wire, self.name, self.parts = wire, name, parts
        self.epoch = 0
        self.owned: dict[str, list[int]] = {}
        self.reported: dict[str, list[int]] = {}

    @property
    def count(self) -> int:
        return sum(map(len, self.owned.values()))

    def beat(self) -> float:
        """Returns the seconds until the next heartbeat."""
        reply = self.wire.ask("StreamsGroupHeartbeat", 1, self.request())
        while reply.error_code in LOADING:
            reply = self.wire.ask("StreamsGroupHeartbeat", 1, self.request())
        assert reply.error_code == 0, reply
        self.epoch, self.reported = reply.member_epoch, self.owned
        if reply.active_tasks is None:
            return float(reply.heartbeat_interval_ms) / 1000
        self.owned = {one.subtopology_id: one.partitions for one in reply.active_tasks}
        return 0.0 if self.owned != self.reported else float(reply.heartbeat_interval_ms) / 1000

    def request(self) -> Any:
        if self.epoch == 0:
            return joining("bench", *self.parts, member=self.name)
        request = R(group_id="bench", member_id=self.name, member_epoch=self.epoch)
        if self.owned != self.reported:
            request.active_tasks = [R.TaskIds(subtopology_id=k, partitions=v) for k, v in self.owned.items()]
            request.standby_tasks, request.warmup_tasks = [], []
        return request


def settle(side: str) -> Figures:
    """20 threads and 100 tasks with the brokers' own intervals and delays: until every thread has five."""
    server = fresh(side)
    server.start()
    topic(server, "in", TASKS)
    ready(server)
    with Wire(server.bootstrap_servers) as wire:
        threads = [Thread(wire, f"t{n}", part("0", "in")) for n in range(THREADS)]
        began = time.perf_counter()
        due = [(began, n) for n in range(THREADS)]
        while any(one.count != TASKS // THREADS for one in threads):
            at, n = heapq.heappop(due)
            time.sleep(max(0.0, at - time.perf_counter()))
            wait = threads[n].beat()
            heapq.heappush(due, (time.perf_counter() + wait, n))
        took = time.perf_counter() - began
    dispose(server)
    return {"20 members and 100 tasks settled, ms": took * 1000}


def heartbeats(side: str) -> Figures:
    """Heartbeats without news of a group of 500 members."""
    server = fresh(side, group_streams_initial_rebalance_delay_ms=0, group_streams_max_size=MEMBERS)
    server.start()
    topic(server, "beaten", MEMBERS)
    ready(server)
    times = []
    process = psutil.Process(server.pid)
    with Wire(server.bootstrap_servers, timeout=60) as wire:
        threads = [Thread(wire, f"t{n}", part("0", "beaten")) for n in range(MEMBERS)]
        settled, end = 0, time.perf_counter() + 120
        while settled < MEMBERS and time.perf_counter() < end:
            for one in threads:
                one.beat()
            settled = sum(one.count == 1 and one.owned == one.reported for one in threads)
        assert settled == MEMBERS, f"{settled} members are settled"
        for _ in range(WARM_ROUNDS):
            for one in threads:
                one.beat()
        before = process.cpu_times()
        for _ in range(ROUNDS):
            for one in threads:
                began = time.perf_counter()
                one.beat()
                times.append(time.perf_counter() - began)
        after = process.cpu_times()
    dispose(server)
    used = after.user + after.system - before.user - before.system
    return {
        "heartbeat of 500 streams members p50, us": quantile(times, 0.5) * 1e6,
        "heartbeat of 500 streams members p99, us": quantile(times, 0.99) * 1e6,
        "processor time per heartbeat, us": used / len(times) * 1e6,
    }


def _group_records(number: int, epoch: int) -> list[Any]:
    """A group with 100 members that have a task each."""
    group = f"load-{number}"
    t, d, c = (
        m.StreamsGroupTopologyValue,
        m.StreamsGroupTargetAssignmentMemberValue,
        m.StreamsGroupCurrentMemberAssignmentValue,
    )
    found: list[Any] = [
        (m.StreamsGroupMetadataKey(group_id=group), m.StreamsGroupMetadataValue(epoch=epoch)),
        (
            m.StreamsGroupTopologyKey(group_id=group),
            t(subtopologies=[t.Subtopology(subtopology_id="0", source_topics=["loaded"])]),
        ),
        (
            m.StreamsGroupTargetAssignmentMetadataKey(group_id=group),
            m.StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch),
        ),
    ]
    for n in range(PER_GROUP):
        name = f"m{n}"
        metadata = m.StreamsGroupMemberMetadataValue(
            client_id="c", client_host="/127.0.0.1", rebalance_timeout_ms=5000, process_id=f"p{n}", topology_epoch=0
        )
        current = c(member_epoch=epoch, previous_member_epoch=epoch - 1, state=1)
        current.active_tasks = [c.TaskIds(subtopology_id="0", partitions=[n], assignment_epochs=[epoch])]
        target = d(active_tasks=[d.TaskIds(subtopology_id="0", partitions=[n])])
        found.append((m.StreamsGroupMemberMetadataKey(group_id=group, member_id=name), metadata))
        found.append((m.StreamsGroupTargetAssignmentMemberKey(group_id=group, member_id=name), target))
        found.append((m.StreamsGroupCurrentMemberAssignmentKey(group_id=group, member_id=name), current))
    return found


def _write_log(directory: Path) -> None:
    """The first segment of the coordinator's partition: 33 groups, which were written ten times."""
    encode, out, offset = GroupFormat().encode, bytearray(), 0
    groups = RECORDS // 10 // (3 + 3 * PER_GROUP)
    while offset < RECORDS:
        for number in range(groups):
            some = [encode(one) for one in _group_records(number, 2 + offset * 10 // RECORDS)]
            for one in some:
                one.timestamp = 1_700_000_000_000
            out += records.encode(some, Template(base_offset=offset, leader_epoch=0))
            offset += len(some)
    (directory / "__consumer_offsets-0" / "00000000000000000000.log").write_bytes(out)


def load(side: str) -> Figures:
    """From the start to the first answer of a coordinator whose partition holds 100,000 records of streams groups."""
    server = fresh(side, offsets_topic_num_partitions=1)
    server.start()
    topic(server, "loaded", PER_GROUP)
    ready(server)
    server.stop()
    _write_log(server.data_directory)
    for stale in (server.data_directory / "__consumer_offsets-0").glob("*.*index"):
        stale.unlink()
    for mark in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", ".kafka_cleanshutdown"):
        (server.data_directory / mark).unlink(missing_ok=True)
    if not isinstance(server, Broker):
        server.formatted = True
    server.start()
    process = psutil.Process(server.pid)
    asked = m.StreamsGroupDescribeRequest(group_ids=["load-0"])
    with Wire(server.bootstrap_servers, timeout=120) as wire:
        before, began = process.cpu_times(), time.perf_counter()
        while len(wire.ask("StreamsGroupDescribe", 1, asked).groups[0].members) < PER_GROUP:
            continue
        took, after = time.perf_counter() - began, process.cpu_times()
    dispose(server)
    used = after.user + after.system - before.user - before.system
    return {"loading 100,000 streams records, s": took, "processor time of loading, s": used}


SECTIONS: dict[str, Any] = {
    "streams_settle": settle,
    "streams_heartbeats": heartbeats,
    "streams_load": load,
}
