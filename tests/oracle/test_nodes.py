"""Nodes of ottla and brokers of Apache Kafka go through the same history: who leads, in which epoch, what is in sync
and what is eligible is the same after each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla.testing import Broker

from ..support.ask import batch, produce_message
from ..support.poll import until
from ..support.wire import Wire
from .cluster import KafkaCluster

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
SETTINGS: dict[str, object] = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": 3,
}
TOPICS: dict[str, tuple[list[int], ...]] = {
    "t": ([1, 2, 3], [2, 3, 1], [3, 1, 2]),
    "safe": ([1, 2, 3],),
    "one": ([3], [2]),
    "two": ([3, 2], [1, 3]),
}
CONFIGS = {"safe": {"min.insync.replicas": "2"}}
HISTORIES = {
    "rolling": "stop 1, start 1, stop 2, start 2, stop 3, start 3",
    "crashes": "kill 1, start 1, kill 3, start 3",
    "all_of_them": "stop 3, stop 2, start 2, start 3, stop 1, kill 3, start 1, start 3",
    "the_last": "stop 1, stop 2, stop 3, start 1, start 3, start 2",
}
State = dict[tuple[str, int], tuple[int, int, list[int], list[int], list[int]]]


class Nodes:
    """The cluster of ottla."""

    def __init__(self) -> None:
        self.broker = Broker({"ottla.nodes": 3, **SETTINGS})

    def __enter__(self) -> Nodes:
        self.broker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.broker.close()

    def address(self, node: int) -> str:
        return self.broker.bootstrap_servers.split(",")[node - 1]

    def happens(self, what: str, node: int) -> None:
        self.broker.lab.post(f"nodes/{node}", do=what)


Cluster = Nodes | KafkaCluster


@pytest.fixture
def pair() -> Iterator[tuple[Nodes, KafkaCluster]]:
    with Nodes() as ours, KafkaCluster(SETTINGS) as kafka:
        for one in (ours, kafka):
            create(one)
        yield ours, kafka


def ask(cluster: Cluster, node: int, name: str, version: int, message: Any) -> Any:
    with Wire(cluster.address(node), timeout=20) as wire:
        return wire.ask(name, version, message)


def create(cluster: Cluster) -> None:
    r = m.CreateTopicsRequest
    for name, placed in TOPICS.items():
        topic = r.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
        topic.assignments = [
            r.CreatableReplicaAssignment(partition_index=index, broker_ids=nodes) for index, nodes in enumerate(placed)
        ]
        topic.configs = [r.CreatableTopicConfig(name=key, value=value) for key, value in CONFIGS.get(name, {}).items()]

        def created(topic: Any = topic) -> bool:
            answer = ask(cluster, 1, "CreateTopics", 7, r(topics=[topic], timeout_ms=10_000)).topics[0]
            return answer.error_code in (0, Errors.TOPIC_ALREADY_EXISTS)

        until(created, f"topic {name}", within=30)


def state(cluster: Cluster, node: int) -> State:
    r = m.DescribeTopicPartitionsRequest
    found = ask(cluster, node, "DescribeTopicPartitions", 0, r(topics=[r.TopicRequest(name=name) for name in TOPICS]))
    return {
        (topic.name, one.partition_index): (
            one.leader_id,
            one.leader_epoch,
            sorted(one.isr_nodes),
            sorted(one.eligible_leader_replicas or []),
            sorted(one.last_known_elr or []),
        )
        for topic in found.topics
        for one in topic.partitions
    }


def names(cluster: Cluster, node: int) -> list[int]:
    found = ask(cluster, node, "Metadata", 12, m.MetadataRequest(topics=[]))
    return sorted(one.node_id for one in found.brokers)


def same(pair: tuple[Nodes, KafkaCluster], node: int, after: str) -> None:
    """Kafka needs a while; ottla may need one for a session that expires."""
    ours, kafka = pair
    try:
        until(lambda: state(ours, node) == state(kafka, node), f"the same state after {after}", within=30)
        until(lambda: names(ours, node) == names(kafka, node), f"the same nodes after {after}", within=30)
    except AssertionError:
        assert state(ours, node) == state(kafka, node), after
        raise


def produced(cluster: Cluster, node: int, topic: str, index: int) -> tuple[object, ...]:
    """The answer to a Produce with acks=all: its error, and the leader that it names."""
    message = produce_message(topic, batch(b"v"), index)
    response = ask(cluster, node, "Produce", 10, message)
    one = response.responses[0].partition_responses[0]
    leader = one.current_leader.leader_id, one.current_leader.leader_epoch
    return Errors(one.error_code).name, leader, [endpoint.node_id for endpoint in response.node_endpoints]


@pytest.mark.parametrize("history", HISTORIES)
def test_the_same_history_has_the_same_leaders(history: str, pair: tuple[Nodes, KafkaCluster]) -> None:
    running = {1, 2, 3}
    same(pair, 1, "the start")
    for step in HISTORIES[history].split(", "):
        what, _, number = step.partition(" ")
        node = int(number)
        for one in pair:
            one.happens(what, node)
        (running.add if what == "start" else running.discard)(node)
        if not running:
            continue
        at = min(running)
        same(pair, at, step)
        for topic, index in (("t", 0), ("t", 1), ("safe", 0), ("one", 0)):
            ours, kafka = pair
            asked = (topic, index)

            def is_same(at: int = at, asked: tuple[str, int] = asked) -> bool:
                return produced(ours, at, *asked) == produced(kafka, at, *asked)  # noqa: B023

            until(is_same, f"the same answer to a Produce to {topic}-{index} after {step}", within=30)
