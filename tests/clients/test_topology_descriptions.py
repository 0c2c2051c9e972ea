"""The consumer of Kafka 4.4, on which Kafka Streams 4.4 stands, sends the description of its topology when a heartbeat
asks for it (KIP-1331).
"""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ottla.testing import Broker

from ..oracle.kafka import Kafka, program

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
SETTINGS: dict[str, object] = {
    "group.streams.topology.description.plugin.class": (
        "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
    ),
    "offsets.topic.num.partitions": 1,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.min.heartbeat.interval.ms": 50,
    "group.streams.heartbeat.interval.ms": 200,
}


def test_a_member_describes_its_topology_when_it_is_asked(tmp_path: Path) -> None:
    """On both brokers, which then say the same."""
    command = program("broker", "DescribingMember", tmp_path)

    def said(servers: str) -> str:
        done = subprocess.run([*command, servers], capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout

    with Broker(SETTINGS) as broker, Kafka(SETTINGS) as kafka, ThreadPoolExecutor() as pool:
        mine, theirs = pool.map(said, (broker.bootstrap_servers, kafka.bootstrap_servers))
    assert mine == theirs
    assert mine.startswith(
        "StreamsGroupTopologyDescription(subtopologies=[Subtopology(id=0, nodes=[Source(name=source,"
    )
