"""Three nodes beside one: how soon they serve, and what one producer gets through with acks=all and 30 partitions.
`make bench ARGS=nodes`. How long clients wait when a node is killed is in `python -m tests.clients.history`.
"""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.wire import Wire
from .servers import RECORD_1K, Figures, dispose, fresh, saturate, warm_memory

PARTITIONS, SECONDS = 30, 6.0


def nodes(side: str) -> Figures:
    """One node and three of ottla; Kafka's other brokers are other processes, which are not compared."""
    if side != "ottla":
        return {}
    found: Figures = {}
    for count in (1, 3):
        server = fresh(side, ottla_nodes=count)
        assert isinstance(server, Broker)
        began = time.perf_counter()
        server.start()
        for address in server.bootstrap_servers.split(","):
            with Wire(address) as wire:
                wire.ask("Metadata", 12, m.MetadataRequest(topics=None))
        found[f"{count} nodes to Metadata, s"] = time.perf_counter() - began
        warm_memory()
        found[f"{count} nodes, acks=all, MB/s"] = _flood(server.bootstrap_servers, count)
        dispose(server)
    found["start, 3 nodes / 1"] = found["3 nodes to Metadata, s"] / found["1 nodes to Metadata, s"]
    found["produce, 3 nodes / 1"] = found["3 nodes, acks=all, MB/s"] / found["1 nodes, acks=all, MB/s"]
    return found


def _flood(servers: str, replicas: int) -> float:
    """MB/s of one idempotent producer to 30 partitions with so many replicas."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([NewTopic("wide", PARTITIONS, replicas)])["wide"].result()
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 0,
        }
    )
    return saturate(producer, "wide", RECORD_1K, PARTITIONS, SECONDS)


SECTIONS: dict[str, Any] = {"nodes": nodes}
