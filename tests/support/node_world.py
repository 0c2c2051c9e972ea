"""A cluster in memory: three nodes, what happens to them, and what clients see."""

from __future__ import annotations

from typing import Any

from ottla.broker.later import drive
from ottla.coordinator.metadata.state import BROKER
from ottla.protocol import messages as m

from .ask import batch, fetch_message, produce_message, values
from .world import World

NODES = (1, 2, 3)
SMALL = {f"{name}_num_partitions": "3" for name in ("offsets_topic", "transaction_state_log")}
State = tuple[int, int, list[int], list[int], list[int]]


def cluster(**settings: str) -> World:
    """Three nodes with the topics `t` of two partitions with three replicas, `one` and `two` of one partition."""
    w = World(None, 0, **{"ottla_nodes": "3", **SMALL, **settings})
    for name, placed in {"t": ([1, 2, 3], [2, 3, 1]), "one": ([3],), "two": ([3, 2],)}.items():
        create(w, name, *placed)
    return w


def create(w: World, name: str, *placed: list[int], **configs: str) -> None:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    topic.assignments = [
        r.CreatableReplicaAssignment(partition_index=index, broker_ids=nodes) for index, nodes in enumerate(placed)
    ]
    topic.configs = [r.CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
    assert w.ask("CreateTopics", 7, r(topics=[topic], timeout_ms=1000)).topics[0].error_code == 0


def configure(w: World, kind: int, name: str, **values: str) -> None:
    r = m.IncrementalAlterConfigsRequest
    configs = [r.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in values.items()]
    resource = r.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    at = int(name) if kind == BROKER else 1
    answer = w.at(at, "IncrementalAlterConfigs", 1, r(resources=[resource])).responses[0]
    assert answer.error_code == 0, answer.error_message


def happens(w: World, what: str, node: int) -> object:
    """Lets something happen to a node, and time pass until it has."""
    lives = w.broker.node_lives
    done = drive(getattr(lives, what)(lives.find(node)))
    w.broker.turn.settle()
    for _ in range(3000):  # a controller may have to be elected
        if done.done:
            return done.get()
        w.pass_ms(1)
    raise AssertionError(f"node {node} does not {what} within 3 s")


def state(w: World, index: int = 0, name: str = "t", at: int = 1) -> State:
    """The leader, its epoch, the replicas in sync, the eligible ones, and those that were eligible last, as one node
    knows them.
    """
    wanted = m.DescribeTopicPartitionsRequest(topics=[m.DescribeTopicPartitionsRequest.TopicRequest(name=name)])
    found = w.at(at, "DescribeTopicPartitions", 0, wanted).topics[0].partitions[index]
    return (
        found.leader_id,
        found.leader_epoch,
        found.isr_nodes,
        found.eligible_leader_replicas or [],
        found.last_known_elr or [],
    )


def produce(w: World, node: int, partition: int = 0, value: bytes = b"v", topic: str = "t", acks: int = -1) -> Any:
    message = produce_message(topic, batch(value), partition, acks)
    return w.at(node, "Produce", 10, message).responses[0].partition_responses[0]


def records(w: World, node: int, partition: int = 0, topic: str = "t") -> list[bytes | None]:
    found = w.at(node, "Fetch", 11, fetch_message(topic, 0, partition)).responses[0].partitions[0]
    assert found.error_code == 0
    return values(found.records)
