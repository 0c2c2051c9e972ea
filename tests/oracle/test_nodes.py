"""Nodes of ottla and brokers of Apache Kafka go through the same history: who leads, in which epoch, what is in sync
and what is eligible is the same after each step.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.poll import until
from ..support.ports import free_run
from .cluster import KafkaCluster
from .cluster_pair import SETTINGS, Cluster, Nodes, Pair, ask, create

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
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
    "a_crash_and_a_restart": "kill 2, stop 1, stop 3, restart, stop 1, start 1",
    "a_crash_among_stops": "stop 1, kill 2, stop 3, restart, kill 3, start 3",
    "a_restart": "stop 3, stop 1, stop 2, restart, kill 1, start 1",
}
NODES = (1, 2, 3)
State = dict[tuple[str, int], tuple[int, int, list[int], list[int], list[int]]]


@pytest.fixture
def pair() -> Iterator[Pair]:
    listeners = f"PLAINTEXT://127.0.0.1:{free_run(len(NODES))}"  # which no client takes during a restart
    with Nodes({**SETTINGS, "listeners": listeners}) as ours, KafkaCluster(SETTINGS) as kafka:
        for one in (ours, kafka):
            for name, placed in TOPICS.items():
                create(one, name, *placed, configs=CONFIGS.get(name))
        yield ours, kafka


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


def same(pair: Pair, node: int, after: str) -> None:
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
def test_the_same_history_has_the_same_leaders(history: str, pair: Pair) -> None:
    running = set(NODES)
    same(pair, 1, "the start")
    for step in HISTORIES[history].split(", "):
        what, _, number = step.partition(" ")
        for one in pair:
            if what == "restart":
                one.restart()
            else:
                one.happens(what, int(number))
        running = set(NODES) if what == "restart" else running ^ {int(number)}
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
