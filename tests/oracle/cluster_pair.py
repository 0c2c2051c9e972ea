"""Three nodes of ottla and three brokers of Apache Kafka, which get the same requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla.testing import Broker

from ..support.poll import until
from ..support.wire import Wire
from .cluster import KafkaCluster

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
SETTINGS: dict[str, object] = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": 3,
}


class Nodes:
    """The cluster of ottla. A context manager. `racks`: of the nodes."""

    def __init__(self, settings: dict[str, object], racks: Sequence[str] = ()) -> None:
        of_racks: dict[str, object] = {"ottla.nodes.racks": ",".join(racks)} if racks else {}
        self.broker = Broker({"ottla.nodes": 3, **settings, **of_racks})

    def __enter__(self) -> Nodes:
        self.broker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.broker.close()

    def address(self, node: int) -> str:
        return self.broker.bootstrap_servers.split(",")[node - 1]

    def restart(self) -> None:
        """Stops the process, and starts it with all nodes."""
        self.broker.stop()
        self.broker.start()

    def happens(self, what: str, node: int) -> None:
        self.broker.lab.post(f"nodes/{node}", do=what)


Cluster = Nodes | KafkaCluster
Pair = tuple[Nodes, KafkaCluster]


def ask(cluster: Cluster, node: int, name: str, version: int, message: Any) -> Any:
    with Wire(cluster.address(node), timeout=20) as wire:
        return wire.ask(name, version, message)


def is_led(cluster: Cluster, name: str) -> bool:
    """Returns whether each partition of a topic that has a leader is served by it."""
    r, o = m.MetadataRequest, m.ListOffsetsRequest
    (topic,) = ask(cluster, 1, "Metadata", 12, r(topics=[r.MetadataRequestTopic(name=name)])).topics
    for one in topic.partitions:
        if one.leader_id < 0:
            continue
        wanted = o.ListOffsetsPartition(partition_index=one.partition_index, timestamp=-1)
        asked = o(replica_id=-1, topics=[o.ListOffsetsTopic(name=name, partitions=[wanted])])
        (answer,) = ask(cluster, one.leader_id, "ListOffsets", 7, asked).topics
        if answer.partitions[0].error_code:
            return False
    return bool(topic.partitions)


def create(cluster: Cluster, name: str, *placed: list[int], configs: dict[str, str] | None = None) -> None:
    """Creates a topic whose partitions have these replicas, and waits until each leader knows that it leads: Kafka's
    nodes hear of it after the reply.
    """
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    topic.assignments = [
        r.CreatableReplicaAssignment(partition_index=index, broker_ids=nodes) for index, nodes in enumerate(placed)
    ]
    topic.configs = [r.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]

    def created() -> bool:
        answer = ask(cluster, 1, "CreateTopics", 7, r(topics=[topic], timeout_ms=10_000)).topics[0]
        return answer.error_code in (0, Errors.TOPIC_ALREADY_EXISTS)

    until(created, f"topic {name}", within=30)
    until(lambda: is_led(cluster, name), f"the leaders of topic {name} know that they lead", within=30)
