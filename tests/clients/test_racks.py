"""librdkafka reads from the replica in its rack, and from the leader when that replica is gone (KIP-392)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Broker

from ..support.poll import until

pytestmark = pytest.mark.slow
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"ottla.nodes": 3, "ottla.nodes.racks": "a,b,c", "replica.selector.class": SELECTOR}
    with Broker({**settings, "broker.session.timeout.ms": 1000, "auto.leader.rebalance.enable": "false"}) as made:
        yield made


class Reader:
    """A consumer in a rack. `reads_from`: the node that it fetches from, as its statistics say."""

    def __init__(self, broker: Broker, topic: str, rack: str) -> None:
        self.topic = topic
        self.reads_from = -1
        self.values: list[bytes | None] = []
        self.consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": f"g-{uuid.uuid4().hex[:8]}",
                "auto.offset.reset": "earliest",
                "client.rack": rack,
                "statistics.interval.ms": 100,
                "stats_cb": self._note,
                "topic.metadata.refresh.interval.ms": 500,
            }
        )
        self.consumer.subscribe([topic])

    def _note(self, text: str) -> None:
        found = json.loads(text)["topics"].get(self.topic, {}).get("partitions", {}).get("0")
        if found is not None and found["fetch_state"] == "active":
            self.reads_from = found["broker"]

    def poll(self) -> None:
        message = self.consumer.poll(0.1)
        if message is not None and message.error() is None:
            self.values.append(message.value())

    def has(self, values: list[bytes]) -> bool:
        self.poll()
        return self.values == values

    def is_at(self, node: int) -> bool:
        self.poll()
        return self.reads_from == node


def produce(broker: Broker, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "acks": "all"})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0


def create(broker: Broker) -> str:
    """Creates a topic whose leader is node 1."""
    name = f"racks-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, replica_assignment=[[1, 2, 3]])])[name].result(60)
    return name


@pytest.mark.parametrize(("rack", "node"), [("a", 1), ("b", 2), ("c", 3), ("elsewhere", 1)])
def test_it_reads_from_the_replica_in_its_rack(broker: Broker, rack: str, node: int) -> None:
    topic = create(broker)
    values = [b"%d" % number for number in range(100)]
    produce(broker, topic, *values)
    reader = Reader(broker, topic, rack)
    until(lambda: reader.has(values), "all records", within=60)
    until(lambda: reader.is_at(node), f"it reads from node {node}", within=60)
    produce(broker, topic, b"more")
    until(lambda: reader.has([*values, b"more"]), "what came later", within=60)
    assert reader.reads_from == node
    reader.consumer.close()


def test_it_goes_back_to_the_leader_when_its_replica_stops(broker: Broker) -> None:
    topic = create(broker)
    produce(broker, topic, b"1")
    reader = Reader(broker, topic, "c")
    until(lambda: reader.has([b"1"]), "the first record", within=60)
    until(lambda: reader.is_at(3), "it reads from node 3", within=60)
    broker.lab.post("nodes/3", do="stop")
    produce(broker, topic, b"2")
    until(lambda: reader.has([b"1", b"2"]), "the second record", within=60)
    broker.lab.post("nodes/3", do="start")
    produce(broker, topic, b"3")
    until(lambda: reader.has([b"1", b"2", b"3"]), "the third record", within=60)
    until(lambda: reader.is_at(3), "it reads from node 3 again", within=60)
    reader.consumer.close()
