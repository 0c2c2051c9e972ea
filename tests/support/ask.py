"""Short ways to ask a broker what most tests ask."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record, Template

from ottla.testing import Broker

from .wire import Wire


def create(wire: Wire, name: str, partitions: int = 1, **configs: str) -> bytes:
    """Makes a topic; returns its id."""
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    topic.configs = [r.CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
    (answer,) = wire.ask("CreateTopics", 7, r(topics=[topic], timeout_ms=10_000)).topics
    assert answer.error_code == 0, answer
    topic_id: bytes = answer.topic_id
    return topic_id


def batch(*values: bytes, now: int = 1, **template: Any) -> bytes:
    return bytes(records.encode([Record(None, v, now) for v in values], Template(**template)))


def produce_message(name: str, data: bytes | None, partition: int = 0, acks: int = -1, timeout_ms: int = 10_000) -> Any:
    r = m.ProduceRequest
    topic = r.TopicProduceData(name=name, partition_data=[r.PartitionProduceData(index=partition, records=data)])
    return r(acks=acks, timeout_ms=timeout_ms, topic_data=[topic])


def produce(
    wire: Wire, name: str, *values: bytes, partition: int = 0, acks: int = -1, timeout_ms: int = 10_000, **template: Any
) -> Any:
    """The answer for the one partition."""
    message = produce_message(name, batch(*values, **template), partition, acks, timeout_ms)
    return wire.ask("Produce", 9, message).responses[0].partition_responses[0]


def fetch_message(
    name: str, offset: int, partition: int = 0, wait_ms: int = 0, max_bytes: int = 1 << 20, isolation: int = 0
) -> Any:
    r = m.FetchRequest
    part = r.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    topic = r.FetchTopic(topic=name, partitions=[part])
    return r(topics=[topic], max_wait_ms=wait_ms, min_bytes=1, max_bytes=max_bytes, isolation_level=isolation)


def values(data: Any) -> list[bytes | None]:
    """The values of the complete batches in fetched bytes."""
    return [r.value for at in records.batches(data) for r in records.decode(data, at)]


def fetch(wire: Wire, name: str, offset: int = 0, partition: int = 0) -> list[bytes | None]:
    """Every value from `offset` to the high watermark."""
    found: list[bytes | None] = []
    while True:
        (answer,) = wire.ask("Fetch", 11, fetch_message(name, offset, partition)).responses[0].partitions
        assert answer.error_code == 0, answer
        if not len(answer.records):
            return found
        for at in records.batches(answer.records):
            for record in records.decode(answer.records, at):
                if record.offset >= offset:
                    found.append(record.value)
            offset = at.header.next_offset


def lab(broker: Broker, path: str, body: dict[str, Any] | None = None) -> Any:
    """Asks the lab; an error status becomes its number."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"{broker.lab_url}{path}", data, {"Content-Type": "application/json"}), timeout=60
        ) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def lab_text(broker: Broker, path: str) -> str:
    """Asks the lab for text."""
    with urllib.request.urlopen(f"{broker.lab_url}{path}", timeout=60) as answer:
        text: str = answer.read().decode()
    return text


def claimed(data: bytes, count: int) -> bytes:
    """A batch that claims another number of records."""
    out = bytearray(data)
    out[23:27] = (count - 1).to_bytes(4, "big", signed=True)
    out[57:61] = count.to_bytes(4, "big", signed=True)
    out[17:21] = records.computed_crc(out, 0, len(out)).to_bytes(4, "big")
    return bytes(out)
