"""One connection's p99 while others work the broker hard, and memory under ten minutes of mixed load. `make bench
ARGS="beside"`, `ARGS="mixed"`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import psutil
from confluent_kafka.admin import AdminClient, NewTopic
from ottla.protocol import records
from ottla.protocol.records import Record, Template

from ottla.testing import Broker

from ..support.wire import Closed, Wire, request_frame
from .servers import RECORD_1K, RECORD_100, Figures, produce_request, quantile, topic
from .sides import Server, dispose, fresh

SECONDS = 8.0
MIXED_SECONDS = 600
LOADER = (
    "import sys; from tests.bench.servers import *; flood(type('S', (), {'bootstrap_servers': sys.argv[1]})(), "
    "sys.argv[2], RECORD_1K, float(sys.argv[3]))"
)


def loader(server: Server, name: str, seconds: float) -> subprocess.Popen[bytes]:
    """A producer at full rate, in a process of its own."""
    return subprocess.Popen([sys.executable, "-c", LOADER, server.bootstrap_servers, name, str(seconds)])


def p99(server: Server, name: str, seconds: float) -> float:
    """Of one record at a time, in microseconds."""
    frame, times = produce_request(name, [RECORD_100]), []
    with Wire(server.bootstrap_servers) as wire:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            began = time.perf_counter()
            wire.send(frame)
            wire.read_frame()
            times.append((time.perf_counter() - began) * 1e6)
    return quantile(times[len(times) // 10 :], 0.99)


def _fill_compacted(server: Server, name: str) -> None:
    """A gigabyte with few keys."""
    from ottla.protocol import messages as m

    r = m.ProduceRequest
    rows = [Record(b"key-%d" % (n % 100), os.urandom(1024), int(time.time() * 1000)) for n in range(900)]
    part = r.PartitionProduceData(index=0, records=bytes(records.encode(rows, Template())))
    frame = request_frame(
        "Produce", 9, r(acks=1, timeout_ms=10_000, topic_data=[r.TopicProduceData(name=name, partition_data=[part])])
    )
    with Wire(server.bootstrap_servers) as wire:
        for _ in range(1100):
            wire.send(frame)
            wire.read_frame()


def beside(side: str) -> Figures:
    found: Figures = {}
    server = fresh(side, log_cleaner_backoff_ms=1000)
    server.start()
    topic(server, "one")
    topic(server, "busy")
    found["p99 while another produces at full rate, us"] = _while(server, loader(server, "busy", SECONDS + 3))
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers, "log_level": 0})
    config = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.bytes": "104857600",
        "max.compaction.lag.ms": "1000",
    }
    for future in admin.create_topics([NewTopic("compacted", 1, 1, config=config)]).values():
        future.result()
    topic_ready(server, "compacted")
    _fill_compacted(server, "compacted")
    found["p99 while 1 GB is compacted, us"] = p99(server, "one", SECONDS)
    topic(server, "many", 500)
    with Wire(server.bootstrap_servers) as wire:
        for _ in range(4):
            wire.send(produce_request("many", [RECORD_1K] * 50, 500))
            wire.read_frame()
    os.kill(server.pid, signal.SIGKILL)
    if isinstance(server, Broker):
        server.kill()
        server.start()
    else:
        server.formatted = True
        server.stop()
        server.start()
    topic_ready(server, "one")
    found["p99 while 500 partitions recover, us"] = p99(server, "one", 3.0)
    dispose(server)
    return found


def _while(server: Server, load: subprocess.Popen[bytes]) -> float:
    time.sleep(2)
    value = p99(server, "one", SECONDS)
    load.wait()
    return value


def topic_ready(server: Server, name: str) -> None:
    frame = produce_request(name, [RECORD_100])
    while True:
        try:
            with Wire(server.bootstrap_servers) as wire:
                wire.send(frame)
                code = wire.reply("Produce", 9).responses[0].partition_responses[0].error_code
        except (Closed, OSError):
            continue
        if code in (0, 87):  # a record without a key is refused by a compacted topic that is there
            return


def mixed(side: str) -> Figures:
    """Producers, group consumers that come and go, and new topics for ten minutes: memory after the first and after the
    last.
    """
    if side != "ottla":
        return {}
    server = fresh(
        side, log_retention_bytes=200_000_000, log_retention_check_interval_ms=5000, log_segment_bytes=20_000_000
    )
    server.start()
    topic(server, "mixed", 4)
    process = psutil.Process(server.pid)
    began = time.perf_counter()
    first = last = 0.0
    number = 0
    while time.perf_counter() - began < MIXED_SECONDS:
        number += 1
        load = subprocess.Popen([sys.executable, "-c", MIXED, server.bootstrap_servers, str(number)])
        load.wait()
        last = process.memory_info().rss / 1e6
        if time.perf_counter() - began >= 60 and not first:
            first = last
    dispose(server)
    return {"memory after a minute, MB": first, "memory after ten, MB": last, "of that after a minute": last / first}


MIXED = """
import sys, uuid
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
servers, number = sys.argv[1], int(sys.argv[2])
producer = Producer({"bootstrap.servers": servers, "log_level": 0, "linger.ms": 5, "compression.type": ("none", "lz4",
"zstd")[number % 3]})
for n in range(60_000):
    try:
        producer.produce("mixed", b"x" * 700, str(n % 1000).encode())
    except BufferError:
        producer.poll(0.1)
producer.flush(30)
admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
name = f"t-{number}"
admin.create_topics([NewTopic(name, 2, 1)])[name].result()
if number > 5:
    admin.delete_topics([f"t-{number - 5}"])[f"t-{number - 5}"].result()
for protocol in ("classic", "consumer"):
    consumer = Consumer({"bootstrap.servers": servers, "group.id": f"g-{number % 7}-{protocol}",
    "group.protocol": protocol,
                         "auto.offset.reset": "earliest", "log_level": 0})
    consumer.subscribe(["mixed"])
    seen = 0
    for _ in range(60):
        seen += len(consumer.consume(5000, 0.1))
        if seen > 30_000:
            break
    consumer.close()
"""
SECTIONS: dict[str, Any] = {"beside": beside, "mixed": mixed}
