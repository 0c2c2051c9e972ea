"""10,000 partitions: created, described, idle, stopped and started again. `make bench ARGS=partitions`."""

from __future__ import annotations

import statistics
import time
from typing import Any

import psutil
from ottla.protocol import messages as m

from ..support.wire import Wire, request_frame
from .servers import RECORD_100, Figures, produce_request
from .sides import Server, dispose_at_exit, fresh

TOPICS, PARTITIONS = 100, 100
TOPICS_PER_REQUEST = 10
ASKED = 20
IDLE_SECONDS = 10.0
NAMES = [f"topic-{number:03}" for number in range(TOPICS)]


def partitions(side: str) -> Figures:
    """All of it on one fresh server."""
    server = fresh(side)
    server.start()
    with Wire(server.bootstrap_servers, timeout=300) as wire:
        began, work = time.perf_counter(), _work_seconds(server)
        _create(wire)
        found = {"10,000 created, s": time.perf_counter() - began}
        _all_ready(wire)
        found["and all have logs, s"] = time.perf_counter() - began
        found["processor time for it, s"] = _work_seconds(server) - work
        everything = m.MetadataRequest(topics=None)
        found["Metadata of all, ms"] = _median_ms(wire, request_frame("Metadata", 12, everything))
        one = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=NAMES[50])])
        found["Metadata of one topic, ms"] = _median_ms(wire, request_frame("Metadata", 12, one))
        page = m.DescribeTopicPartitionsRequest(topics=[], response_partition_limit=2000)
        found["DescribeTopicPartitions of 2,000, ms"] = _median_ms(
            wire, request_frame("DescribeTopicPartitions", 0, page)
        )
    found |= _idle(server)
    began = time.perf_counter()
    server.stop()
    found["clean stop, s"] = time.perf_counter() - began
    began = time.perf_counter()
    server.start()
    with Wire(server.bootstrap_servers, timeout=300) as wire:
        _all_ready(wire)
    found["restart until all can be written, s"] = time.perf_counter() - began
    dispose_at_exit(server)
    return found


def _create(wire: Wire) -> None:
    r = m.CreateTopicsRequest
    for first in range(0, TOPICS, TOPICS_PER_REQUEST):
        some = [
            r.CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
            for name in NAMES[first : first + TOPICS_PER_REQUEST]
        ]
        reply = wire.ask("CreateTopics", 7, r(topics=some, timeout_ms=120_000))
        assert not any(one.error_code for one in reply.topics), reply


def _all_ready(wire: Wire) -> None:
    """Produces a record to every partition, until all have taken one."""
    for name in NAMES:
        frame = produce_request(name, [RECORD_100], PARTITIONS)
        while True:
            wire.send(frame)
            answer: Any = wire.reply("Produce", 9)
            if not any(one.error_code for one in answer.responses[0].partition_responses):
                break


def _median_ms(wire: Wire, frame: bytes) -> float:
    """The time of one request that is sent again and again, without the first two."""
    times = []
    for _ in range(ASKED):
        began = time.perf_counter()
        wire.send(frame)
        wire.read_frame()
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times[2:])


def _idle(server: Server) -> Figures:
    """Memory, and the share of a core when there are no requests, after what follows from the requests before."""
    time.sleep(IDLE_SECONDS)
    work = _work_seconds(server)
    time.sleep(IDLE_SECONDS)
    percent = (_work_seconds(server) - work) / IDLE_SECONDS * 100
    return {"idle, % of a core": percent, "memory, MB": psutil.Process(server.pid).memory_info().rss / 1e6}


def _work_seconds(server: Server) -> float:
    times = psutil.Process(server.pid).cpu_times()
    return float(times.user + times.system)


SECTIONS: dict[str, Any] = {"partitions": partitions}
