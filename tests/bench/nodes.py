"""Three nodes beside one: how soon they serve, and what one producer gets through with acks=all and 30 partitions.
`make bench ARGS=nodes`. How long clients wait when a node is killed is in `python -m tests.clients.history`.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.wire import Wire
from .servers import RECORD_1K, Figures, saturate, warm_memory
from .sides import dispose, fresh

PARTITIONS, SECONDS, ROUNDS = 30, 3.0, 4
QUEUED = 50_000  # records that a producer holds; they are written after the time, which counts


def nodes(side: str) -> Figures:
    """One node and three of ottla, in turn, so that neither always comes first. Kafka's other brokers are other
    processes, which are not compared.
    """
    if side != "ottla":
        return {}
    started: dict[int, list[float]] = {1: [], 3: []}
    produced: dict[int, list[float]] = {1: [], 3: []}
    for number in range(ROUNDS):
        for count in (1, 3) if number % 2 else (3, 1):
            server = fresh(side, ottla_nodes=count)
            assert isinstance(server, Broker)
            started[count].append(_start(server))
            warm_memory()
            produced[count].append(_flood(server.bootstrap_servers, count))
            dispose(server)
    found = {f"{count} nodes to Metadata, s": statistics.median(taken) for count, taken in started.items()}
    found |= {f"{count} nodes, acks=all, MB/s": statistics.median(rates) for count, rates in produced.items()}
    found["start, 3 nodes / 1"] = found["3 nodes to Metadata, s"] / found["1 nodes to Metadata, s"]
    found["produce, 3 nodes / 1"] = found["3 nodes, acks=all, MB/s"] / found["1 nodes, acks=all, MB/s"]
    return found


def _start(server: Broker) -> float:
    """Seconds until all nodes have answered."""
    began = time.perf_counter()
    server.start()
    for address in server.bootstrap_servers.split(","):
        with Wire(address) as wire:
            wire.ask("Metadata", 12, m.MetadataRequest(topics=None))
    return time.perf_counter() - began


def _flood(servers: str, replicas: int) -> float:
    """MB/s of one idempotent producer to 30 partitions with so many replicas."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([NewTopic("wide", PARTITIONS, replicas)])["wide"].result()
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": QUEUED,
            "log_level": 0,
        }
    )
    return saturate(producer, "wide", RECORD_1K, PARTITIONS, SECONDS)


SECTIONS: dict[str, Any] = {"nodes": nodes}
