"""A broker of Apache Kafka that is registered in the same ZooKeeper, under the same path.

Those of 2.8 and 3.9 take part with OTTLA_RELEASES=1.
"""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from typing import Any

import pytest
from kafka import KafkaConsumer
from ottla.protocol import messages as m

from ottla.testing import BrokerFailed

from ..oracle.old_kafka import OldKafka
from ..oracle.zookeeper import ZooKeeperServer, tool
from ..support.poll import until
from ..support.wire import Wire
from .zookeeper_brokers import LONG_MS, SHORT_MS, registered

pytestmark = pytest.mark.slow
LATER = (("2.8", "2.8.2"), ("3.9", "3.9.1")) if os.environ.get("OTTLA_RELEASES") == "1" else ()


def metadata(bootstrap_servers: str) -> dict[str, Any]:
    """Returns the ids of brokers, and the leaders of the partitions of each topic that is not a coordinator's."""
    with Wire(bootstrap_servers) as wire:
        found = wire.ask("Metadata", 0, m.MetadataRequest(topics=[]))
    topics = {one.name: [p.leader_id for p in one.partitions] for one in found.topics if one.name[:2] != "__"}
    return {"brokers": [one.node_id for one in found.brokers], "topics": topics}


def told_at(kafka: OldKafka) -> dict[str, Any]:
    """Returns what a broker of Kafka answers, which keeps brokers in no order."""
    found = metadata(kafka.bootstrap_servers)
    return {**found, "brokers": sorted(found["brokers"], reverse=True)}


def say(version: str, kafka: OldKafka, topic: str, text: str) -> None:
    """Writes with the console producer of the release, which begins at Kafka."""
    at_kafka: tuple[str, ...] = ("--broker-list", kafka.bootstrap_servers)
    if version == "3.9.1":  # its producer is idempotent: Kafka asks the controller, which is ottla, for producer ids
        at_kafka = ("--bootstrap-server", kafka.bootstrap_servers)
    tool(version, "tools.ConsoleProducer", *at_kafka, "--topic", topic, given=text)


def read_at(kafka: OldKafka, release: str) -> None:
    """Reads what was written, alone and in a group, with consumers that begin at Kafka."""
    known = {"api_version": tuple(map(int, release.split("."))), "auto_offset_reset": "earliest"}
    groups = (None,) if release == "0.8.2" else (None, "g")  # whose Java consumers have no groups
    for group in groups:
        consumer = KafkaConsumer("own", group_id=group, bootstrap_servers=kafka.bootstrap_servers, **known)
        read = until(partial(consumer.poll, 1000), f"group {group} reads")
        assert [one.value for some in read.values() for one in some] == [b"by way of Kafka"]
        if group is not None:
            consumer.commit()
        consumer.close()


@pytest.mark.parametrize(("release", "version"), [("0.8.2", "0.8.2.2"), ("1.1", "1.1.1"), *LATER])
def test_a_broker_of_kafka_is_left_alone_and_gets_no_partitions(
    zookeeper: ZooKeeperServer, release: str, version: str
) -> None:
    at = f"/beside-{release}"
    as_ottla: dict[str, object] = {"zookeeper.session.timeout.ms": LONG_MS, "offsets.topic.num.partitions": 1}
    kafka = OldKafka(version, as_ottla, f"{zookeeper.address}{at}")

    def create(name: str, broker: int) -> None:
        """As tools do that know ZooKeeper, and as a broker does with `auto.create.topics.enable`."""
        value = json.dumps({"version": 1, "partitions": {"0": [broker]}})
        zookeeper.client.create(f"{at}/brokers/topics/{name}", value.encode())

    def controller() -> int:
        return int(json.loads(zookeeper.value(f"{at}/controller") or '{"brokerid":-1}')["brokerid"])

    def leader(topic: str) -> int:
        state = zookeeper.value(f"{at}/brokers/topics/{topic}/partitions/0/state")
        return int(json.loads(state)["leader"]) if state else -1

    with registered(zookeeper, at, release, zookeeper_session_timeout_ms=SHORT_MS) as broker, kafka:
        until(lambda: zookeeper.value(f"{at}/brokers/ids/1"), "Kafka is registered", within=60)
        of_kafka, node = f"{at}/brokers/ids/1", zookeeper.value(f"{at}/brokers/ids/1")
        assert controller() == 7
        until(lambda: metadata(broker.bootstrap_servers)["brokers"] == [7, 1], "it is shown", within=20)
        create("own", 7)
        create("other", 1)
        until(lambda: leader("own") == 7, "one is led", within=20)
        assert metadata(broker.bootstrap_servers) == {"brokers": [7, 1], "topics": {"own": [7]}}
        told = {"brokers": [7, 1], "topics": {"own": [7]}}
        until(lambda: told_at(kafka) == told, "Kafka says the same", within=20)
        say(version, kafka, "own", "by way of Kafka\n")
        read_at(kafka, release)

        os.kill(broker.pid, signal.SIGSTOP)
        try:
            until(lambda: controller() == 1, "Kafka is elected", within=30, every=0.05)
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        until(lambda: zookeeper.value(f"{at}/brokers/ids/7"), "it is registered again", within=30, every=0.05)
        with Wire(broker.bootstrap_servers) as wire:
            r = m.MetadataRequest
            asked = r(topics=[r.MetadataRequestTopic(name="meanwhile")])
            until(lambda: not wire.ask("Metadata", 0, asked).topics[0].error_code, "a topic is made", within=20)
        assert controller() == 1
        assert zookeeper.value(of_kafka) == node
        assert not zookeeper.client.exists(f"{at}/brokers/topics/meanwhile")

        kafka.stop_broker()
        until(lambda: controller() == 7, "it is the controller again", within=30, every=0.05)
        until(lambda: leader("meanwhile") == leader("own") == 7, "and shows its topics", within=30, every=0.05)

        kafka.start_broker()
        broker.stop()
        until(lambda: controller() == 1, "Kafka is elected", within=30, every=0.05)
        with pytest.raises(BrokerFailed, match=r"exit code 7(.|\n)*broker 1 of another cluster is the controller"):
            broker.start()
        assert zookeeper.value(of_kafka)
