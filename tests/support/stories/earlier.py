"""Brokers of earlier releases for the stories, and what their clients ask: Kafka's own, which are started to write
transcripts only, and ottla, which emulates them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from ottla.protocol import legacy
from ottla.protocol import messages as m
from ottla.protocol.legacy import Message

from ottla.testing import Broker

from ...oracle.old_kafka import OldKafka
from .. import transcripts
from ..differential import Pair
from ..poll import until
from ..wire import Wire

VERSIONS = {
    "0.8.2": "0.8.2.2",
    "0.9": "0.9.0.1",
    "0.10.2": "0.10.2.2",
    "0.11": "0.11.0.3",
    "1.1": "1.1.1",
    "2.2": "2.2.2",
    "2.4": "2.4.1",
    "2.7": "2.7.2",
    "2.8": "2.8.2",
    "3.2": "3.2.3",
    "3.9": "3.9.1",
}
SETTINGS: dict[str, object] = {"num.partitions": 2, "message.max.bytes": 10_000}
T = 1_700_000_000_000


def earlier_brokers(releases: tuple[str, ...], settings: Mapping[str, object] = SETTINGS) -> tuple[Any, ...]:
    """A module's fixtures `release`, `kafka`, `ours` and `settled`, for each of the releases."""

    @pytest.fixture(scope="module", params=releases)
    def release(request: pytest.FixtureRequest) -> str:
        found: str = request.param
        return found

    @pytest.fixture(scope="module")
    def kafka(release: str) -> Iterator[str]:
        """Kafka's address while transcripts are written; empty where they are played."""
        if transcripts.mode() != "record":
            yield ""
            return
        with OldKafka(VERSIONS[release], dict(settings)) as running:
            yield running.bootstrap_servers

    @pytest.fixture(scope="module")
    def ours(release: str) -> Iterator[Broker]:
        with Broker({"ottla.emulate": release, **settings}, lab=False) as broker:
            yield broker

    @pytest.fixture(scope="module")
    def settled(kafka: str) -> None:
        """Kafka answers before it knows that it is a broker; 0.8.2 knows it when there is a topic."""
        if kafka:
            r = m.MetadataRequest
            asked = r(topics=[r.MetadataRequestTopic(name="first")])
            with Wire(kafka) as wire:
                until(lambda: wire.ask("Metadata", 0, asked).brokers, "Kafka knows itself")

    return release, kafka, ours, settled


def topic(pair: Pair, name: str) -> None:
    """Lets both make a topic, and waits until both serve it."""
    r = m.MetadataRequest
    asked = r(topics=[r.MetadataRequestTopic(name=name)])
    pair.ask("Metadata", 0, asked)
    pair.until("Metadata", 0, asked, lambda reply: not reply.topics[0].error_code and led(reply.topics[0]))
    pair.ask("Metadata", 0, asked)


def led(found: Any) -> bool:
    return all(one.leader_id >= 0 and not one.error_code for one in found.partitions)


def sent(*values: bytes, magic: int = 0, codec: int = 0) -> bytes:
    return legacy.encode([Message(i, b"k%d" % i, value, magic, T + i) for i, value in enumerate(values)], codec)


def produce(pair: Pair, name: str, data: bytes, version: int = 0, partition: int = 0, acks: int = 1) -> Any:
    r = m.ProduceRequest
    part = r.PartitionProduceData(index=partition, records=data)
    request = r(acks=acks, timeout_ms=5000, topic_data=[r.TopicProduceData(name=name, partition_data=[part])])
    return pair.ask("Produce", version, request)[1]


def fetch(pair: Pair, name: str, offset: int, version: int = 0, partition: int = 0, bytes_max: int = 10_000) -> None:
    r = m.FetchRequest
    wanted = r.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=bytes_max)
    pair.ask("Fetch", version, r(replica_id=-1, max_wait_ms=0, topics=[r.FetchTopic(topic=name, partitions=[wanted])]))
