"""Nodes of ottla and brokers of Apache Kafka go through the same history: who leads, in which epoch, what is in sync
and what is eligible is the same after each step.

What Kafka showed is in recorded/nodes.json. `OTTLA_ORACLE=live` asks it again; with `record` that is written down.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support import transcripts
from ..support.ask import batch, produce_message
from ..support.poll import until
from ..support.ports import free_run
from .cluster import KafkaCluster
from .cluster_pair import SETTINGS, Cluster, Nodes, ask, create

RECORDED = Path(__file__).parent / "recorded" / "nodes.json"
MODE = transcripts.mode()
pytestmark = [pytest.mark.slow, *([] if MODE == "recorded" else [pytest.mark.oracle])]
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
Shown = dict[str, object]
"""What a cluster shows after a step, as JSON has it."""


@pytest.fixture
def ours() -> Iterator[Nodes]:
    listeners = f"PLAINTEXT://127.0.0.1:{free_run(len(NODES))}"  # which no client takes during a restart
    with Nodes({**SETTINGS, "listeners": listeners}) as running:
        prepare(running)
        yield running


class Theirs:
    """What Kafka shows: a cluster that runs, or what one showed."""

    def __init__(self, history: str, cluster: KafkaCluster | None) -> None:
        self.cluster = cluster
        self._history = history
        told: dict[str, list[Shown]] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        self._told = told.get(history, [])
        self._seen: list[Shown] = []

    def look(self, what: str, of: Callable[[Cluster], object]) -> object:
        if self.cluster is not None:
            return of(self.cluster)
        return self._told[len(self._seen)][what]

    def keep(self, shown: Shown) -> None:
        """Both have shown this after a step."""
        self._seen.append(shown)

    def end(self) -> None:
        """Kafka shows what it once showed, unless that is written down now."""
        if MODE == "record":
            told = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
            told[self._history] = self._seen
            lines = (f"{json.dumps(name)}: [\n{_lines(steps)}\n]" for name, steps in sorted(told.items()))
            RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        else:
            assert self._seen == self._told


def _lines(steps: list[Shown]) -> str:
    return ",\n".join(json.dumps(step) for step in steps)


def prepare(cluster: Cluster) -> None:
    for name, placed in TOPICS.items():
        create(cluster, name, *placed, configs=CONFIGS.get(name))


def state(node: int, cluster: Cluster) -> object:
    """Of each partition: leader, epoch, who is in sync, who is eligible, and who was the last."""
    r = m.DescribeTopicPartitionsRequest
    found = ask(cluster, node, "DescribeTopicPartitions", 0, r(topics=[r.TopicRequest(name=name) for name in TOPICS]))
    return {
        f"{topic.name}-{one.partition_index}": [
            one.leader_id,
            one.leader_epoch,
            sorted(one.isr_nodes),
            sorted(one.eligible_leader_replicas or []),
            sorted(one.last_known_elr or []),
        ]
        for topic in found.topics
        for one in topic.partitions
    }


def names(node: int, cluster: Cluster) -> list[int]:
    found = ask(cluster, node, "Metadata", 12, m.MetadataRequest(topics=[]))
    return sorted(one.node_id for one in found.brokers)


def is_fenced(number: int, node: int, cluster: Cluster) -> bool:
    return number not in names(node, cluster)


def produced(node: int, topic: str, index: int, cluster: Cluster) -> object:
    """The answer to a Produce with acks=all: its error, the leader that it names, and the nodes."""
    message = produce_message(topic, batch(b"v"), index)
    response = ask(cluster, node, "Produce", 10, message)
    one = response.responses[0].partition_responses[0]
    leader = [one.current_leader.leader_id, one.current_leader.leader_epoch]
    return [Errors(one.error_code).name, leader, [endpoint.node_id for endpoint in response.node_endpoints]]


def same(ours: Nodes, theirs: Theirs, node: int, step: str) -> None:
    """Kafka needs a while; ottla may need one for a session that expires."""
    shown: Shown = {"after": step}
    looks: dict[str, Callable[[Cluster], object]] = {"state": partial(state, node), "nodes": partial(names, node)}
    looks |= {
        f"produce to {topic}-{index}": partial(produced, node, topic, index)
        for topic, index in (("t", 0), ("t", 1), ("safe", 0), ("one", 0))
    }
    for what, of in looks.items():

        def is_same(what: str = what, of: Callable[[Cluster], object] = of) -> bool:
            shown[what] = of(ours)
            return shown[what] == theirs.look(what, of)

        try:
            until(is_same, f"the same {what} after {step}", within=30)
        except AssertionError:
            assert shown[what] == theirs.look(what, of), f"{what} after {step}"
            raise
    theirs.keep(shown)


@pytest.mark.parametrize("history", HISTORIES)
def test_the_same_history_has_the_same_leaders(history: str, ours: Nodes) -> None:
    with ExitStack() as stack:
        kafka = None if MODE == "recorded" else stack.enter_context(KafkaCluster(SETTINGS))
        clusters: list[Cluster] = [ours] if kafka is None else [ours, kafka]
        if kafka is not None:
            prepare(kafka)
        theirs = Theirs(history, kafka)
        running = set(NODES)
        same(ours, theirs, 1, "the start")
        for step in HISTORIES[history].split(", "):
            what, _, number = step.partition(" ")
            for one in clusters:
                if what == "restart":
                    one.restart()
                else:
                    one.happens(what, int(number))
            running = set(NODES) if what == "restart" else running ^ {int(number)}
            if what == "kill" and running:  # what comes next may take longer or not than its session
                for one in clusters:
                    until(partial(is_fenced, int(number), min(running), one), f"node {number} is fenced", within=30)
            if running:
                same(ours, theirs, min(running), step)
        theirs.end()
