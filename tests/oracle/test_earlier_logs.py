"""Real brokers of earlier releases open the logs that ottla wrote while it emulated them, and their own consumers read
all that is in them.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from ottla.protocol import legacy
from ottla.protocol import messages as m
from ottla.protocol.compression import GZIP, LZ4, NONE, SNAPPY
from ottla.protocol.legacy import Message

from ottla.testing import Broker

from ..support.poll import until
from ..support.wire import Wire
from .old_kafka import OldKafka

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
RELEASES = {"0.8.2.2": "0.8.2", "0.10.2.2": "0.10.2"}
TOPICS = ("plain", "packed", "compacted")
SETTINGS: dict[str, object] = {
    "num.partitions": 1,
    "log.cleaner.enable": True,  # 0.8.2's default is false
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.delete.delay.ms": 0,
}
CONFIGS = {
    "plain": {"internal.segment.bytes": "20000", "index.interval.bytes": "1000"},
    "packed": {"internal.segment.bytes": "20000"},
    "compacted": {"cleanup.policy": "compact", "internal.segment.bytes": "4000"},
}
ROUNDS = 30
Row = tuple[int, bytes | None, bytes | None]


def ask_produce(wire: Wire, magic: int, topic: str, data: bytes) -> None:
    r = m.ProduceRequest
    part = r.PartitionProduceData(index=0, records=data)
    request = r(acks=-1, timeout_ms=5000, topic_data=[r.TopicProduceData(name=topic, partition_data=[part])])

    def is_taken() -> bool:  # a broker that has just started leads nothing yet
        (answer,) = wire.ask("Produce", 2 if magic else 0, request).responses[0].partition_responses
        return not answer.error_code

    until(is_taken, f"{topic} takes messages")


def fill(wire: Wire, magic: int, round_: int) -> None:
    """Writes to all topics: plain messages, sets of each codec, and keys that are written again and deleted."""
    now = int(time.time() * 1000)
    ask_produce(wire, magic, "plain", legacy.encode([Message(0, None, b"plain %d" % round_ + b"." * 900, magic, now)]))
    ask_produce(wire, magic, "plain", legacy.encode([Message(0, b"k", None, magic, now), Message(1, b"", b"", magic)]))
    codecs = (GZIP, SNAPPY, LZ4, NONE) if magic else (GZIP, SNAPPY, NONE)
    some = [Message(n, b"key %d" % n, b"packed %d %d" % (round_, n), magic, now + n) for n in range(20)]
    ask_produce(wire, magic, "packed", legacy.encode(some, codecs[round_ % len(codecs)]))
    keyed = [Message(n, b"key %d" % n, b"%d %d" % (round_, n) + b"." * 50, magic, now) for n in range(round_ % 7, 9)]
    keyed.append(Message(9, b"gone", b"v" if round_ < 9 else None, magic, now))
    ask_produce(wire, magic, "compacted", legacy.encode(keyed, codecs[round_ % len(codecs)]))


def fetched(servers: str, magic: int, topic: str) -> tuple[list[Row], bytes]:
    """All messages of a topic, and the bytes that came."""
    r, found, data, offset = m.FetchRequest, list[Row](), b"", 0
    with Wire(servers) as wire:
        while True:
            wanted = r.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
            request = r(replica_id=-1, max_wait_ms=0, topics=[r.FetchTopic(topic=topic, partitions=[wanted])])
            (part,) = wire.ask("Fetch", 2 if magic else 0, request).responses[0].partitions
            assert part.error_code == 0
            whole = bytes(part.records)
            rows = [(one.offset, one.key, one.value) for one in legacy.decode(whole)]
            if not rows:
                return found, data
            found += rows
            data += whole
            offset = rows[-1][0] + 1


def create(broker: Broker) -> None:
    """Makes the topics with their configurations, which the earliest releases have no request for."""
    r = m.CreateTopicsRequest
    topics = [
        r.CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[r.CreatableTopicConfig(name=key, value=value) for key, value in CONFIGS[name].items()],
        )
        for name in TOPICS
    ]
    with Wire(broker.bootstrap_servers) as wire:
        answer = wire.ask("CreateTopics", 7, r(topics=topics, timeout_ms=5000))
    assert {one.error_code for one in answer.topics} == {0}


def written(release: str, directory: Path) -> dict[str, tuple[list[Row], bytes]]:
    """Writes the logs with an ottla that emulates a release: it compacts, is killed, recovers a torn end, and goes on.
    Returns what it serves of each topic then.
    """
    magic = 1 if release == "0.10.2" else 0
    with Broker({}, directory=directory, lab=False) as broker:
        create(broker)
    data = broker.data_directory
    with Broker({"ottla.emulate": release, **SETTINGS}, directory=directory, lab=False) as broker:
        with Wire(broker.bootstrap_servers) as wire:
            for round_ in range(ROUNDS):
                fill(wire, magic, round_)
        servers = broker.bootstrap_servers
        until(lambda: len(fetched(servers, magic, "compacted")[0]) < 4 * ROUNDS, "the topic is compacted", every=0.1)
        broker.kill()
        for name in TOPICS:
            with max((data / f"{name}-0").glob("*.log")).open("ab") as torn:
                torn.write(b"\0" * 6 + b"torn")
        broker.start()
        with Wire(broker.bootstrap_servers) as wire:
            for round_ in range(ROUNDS, ROUNDS + 5):
                fill(wire, magic, round_)
    with Broker({"ottla.emulate": release, "log.cleaner.enable": False}, directory=directory, lab=False) as broker:
        return {name: fetched(broker.bootstrap_servers, magic, name) for name in TOPICS}


@pytest.fixture(scope="module", params=RELEASES)
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A release's own broker on a copy of what ottla wrote, and that."""
    ours = tmp_path_factory.mktemp("ours")
    truth = written(RELEASES[request.param], ours)
    kafka = OldKafka(request.param, {"log.retention.hours": 24 * 365})
    kafka.data_directory.mkdir()
    (kafka.data_directory / ".kafka_cleanshutdown").touch()  # so that it uses our indexes, and makes none
    for name in TOPICS:
        shutil.copytree(next(ours.rglob(f"{name}-0")), kafka.data_directory / f"{name}-0")
    with kafka:
        client = KazooClient(kafka.zookeeper)
        client.start()
        for name in TOPICS:
            client.ensure_path("/brokers/topics")
            client.create(f"/brokers/topics/{name}", json.dumps({"version": 1, "partitions": {"0": [1]}}).encode())
        client.stop()
        client.close()
        r = m.MetadataRequest
        asked = r(topics=[r.MetadataRequestTopic(name=name) for name in TOPICS])

        def are_led() -> bool:
            with Wire(kafka.bootstrap_servers) as wire:
                found = wire.ask("Metadata", 0, asked).topics
            return all(not t.error_code and t.partitions and t.partitions[0].leader_id == 1 for t in found)

        until(are_led, "the topics are led", every=0.1)
        yield kafka, truth


def test_it_serves_the_same_bytes(old: Any) -> None:
    kafka, truth = old
    for name, (rows, data) in truth.items():
        found, bytes_ = fetched(kafka.bootstrap_servers, 0 if kafka.version == "0.8.2.2" else 1, name)
        assert found == rows, name
        assert bytes_ == data, name


def test_its_own_consumer_reads_all(old: Any) -> None:
    kafka, truth = old
    found = [value for rows, _ in truth.values() for _, _, value in rows]
    values = sorted("null" if value is None else value.decode() for value in found)
    shown = kafka.tool(
        "kafka.tools.ConsoleConsumer",
        *("--zookeeper", kafka.zookeeper, "--whitelist", ".*", "--from-beginning", "--max-messages", str(len(values))),
    )
    assert sorted(shown.splitlines()) == values


def test_its_dump_finds_all_messages(old: Any) -> None:
    kafka, truth = old
    for name, (rows, _) in truth.items():
        logs = sorted((kafka.data_directory / f"{name}-0").glob("*.log"))
        shown = kafka.tool("kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join(map(str, logs)))
        offsets = [int(line.split()[1]) for line in shown.splitlines() if line.startswith("offset: ")]
        assert offsets == [offset for offset, _, _ in rows], name
        assert "isvalid: false" not in shown
