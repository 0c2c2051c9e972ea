"""Servers and loads for the benchmarks: fresh brokers, topics, producers that flood and consumers that drain."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record

from ..support.wire import request_frame
from .sides import Server, dispose, fresh

PROGRAMS = Path(__file__).parents[1] / "clients" / "go"


Figures = dict[str, float]


MEGABYTE = bytes(1 << 20)


RECORD_1K, RECORD_100 = b"x" * 1024, b"y" * 100


def topic(server: Server, name: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers, "log_level": 0})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result()
    while len(admin.list_topics(name, timeout=10).topics[name].partitions) < partitions:
        continue


def warm_memory() -> None:
    """Takes two gigabytes of page cache and gives them back.

    A virtual machine gets memory from its host when it is first touched, which takes ten times as long as writing to
    it; who is measured first would pay for it.
    """
    with tempfile.TemporaryFile() as file:
        for _ in range(2048):
            file.write(MEGABYTE)


def clients() -> str | None:
    """The program with the Go clients, built again; None where there is no Go."""
    if shutil.which("go") is None:
        return None
    program = Path(tempfile.gettempdir()) / "ottla-bench-clients"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=PROGRAMS, check=True, timeout=600)
    return str(program)


def go_figures(program: str, server: Server, *arguments: object) -> list[float]:
    """What the Go clients measured against a server."""
    command = [program, server.bootstrap_servers, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    return [float(word) for word in done.stdout.split() if word[0].isdecimal()]


def produce_request(name: str, values: list[bytes], partitions: int = 1) -> bytes:
    r = m.ProduceRequest
    data = bytes(records.encode([Record(None, v, int(time.time() * 1000)) for v in values]))
    parts = [r.PartitionProduceData(index=i, records=data) for i in range(partitions)]
    return request_frame(
        "Produce", 9, r(acks=-1, timeout_ms=10_000, topic_data=[r.TopicProduceData(name=name, partition_data=parts)])
    )


def fetch_request(name: str, offset: int, wait_ms: int = 1000) -> Any:
    r = m.FetchRequest
    part = r.FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 20)
    return r(topics=[r.FetchTopic(topic=name, partitions=[part])], max_wait_ms=wait_ms, min_bytes=1, max_bytes=1 << 20)


def flood(server: Server, name: str, value: bytes, seconds: float, **settings: Any) -> float:
    """MB/s that one idempotent producer gets through."""
    producer = Producer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1 << 20,
            "log_level": 0,
            **settings,
        }
    )
    return saturate(producer, name, value, 1, seconds)


def saturate(producer: Producer, name: str, value: bytes, partitions: int, seconds: float) -> float:
    """MB/s that a producer gets through, to so many partitions in turn; without what is not written after a minute."""
    sent, began = 0, time.perf_counter()
    until = began + seconds
    while time.perf_counter() < until:
        for _ in range(500):
            try:
                producer.produce(name, value, partition=sent % partitions)
            except BufferError:
                producer.poll(0.01)
                continue
            sent += 1
        producer.poll(0)
    sent -= int(producer.flush(60))
    return sent * len(value) / 1e6 / (time.perf_counter() - began)


def drain(server: Server, name: str, size: int, count: int) -> float:
    """MB/s that one consumer reads."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 1 << 20,
            "queued.min.messages": 1_000_000,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(name, 0, 0)])
    got, began = 0, time.perf_counter()
    while got < count:
        got += len(consumer.consume(10_000, 1.0))
    took = time.perf_counter() - began
    consumer.close()
    return got * size / 1e6 / took


def perf_tool(server: Server, kind: str, *arguments: str) -> str:
    """The output of Kafka's own performance tools, whose loops are faster than Python's."""
    from ..oracle.kafka import tool

    return tool(kind, *arguments, timeout=300).stdout


def go(side: str) -> Figures:
    """Throughput of franz-go: one producer, one partition, acks=all, idempotent, uncompressed; then one consumer."""
    program = clients()
    if program is None:
        return {}
    found: Figures = {}
    for size, count, batch in ((1024, 600_000, 1_000_000), (100, 2_000_000, 16_384)):
        server = fresh(side)
        server.start()
        warm_memory()
        topic(server, "throughput")
        produced, consumed = go_figures(program, server, "throughput", "throughput", count, size, batch)
        found |= {f"franz-go produce {size} B, MB/s": produced, f"franz-go consume {size} B, MB/s": consumed}
        dispose(server)
    return found


def quantile(values: list[float], q: float) -> float:
    return sorted(values)[int(len(values) * q)]
