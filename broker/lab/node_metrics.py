"""Metrics of nodes, of each with the label `node`, and of what elections lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ...coordinator.metadata.state import NO_LEADER
from .served import Served

FAMILIES = {
    "kafka_server_ReplicaManager_LeaderCount": "Partitions that a node leads.",
    "kafka_server_ReplicaManager_PartitionCount": "Replicas of a node.",
    "kafka_server_ReplicaManager_UnderReplicatedPartitions": (
        "Partitions that a node leads and that have replicas out of sync."
    ),
    "kafka_server_ReplicaManager_UnderMinIsrPartitionCount": (
        "Partitions that a node leads and that have fewer replicas in sync than min.insync.replicas."
    ),
}


def node_metrics(server: Served) -> Iterator[Metric]:
    broker = server.broker
    leads, has, under, too_few = (Counter[int]() for _ in FAMILIES)
    offline = 0
    for state in broker.image.partitions.values():
        has.update(state.replicas)
        if state.leader == NO_LEADER:
            offline += 1
            continue
        leads[state.leader] += 1
        under[state.leader] += len(state.isr) < len(state.replicas)
        partition = broker.partitions.by_id.get((state.topic_id, state.index))
        too_few[state.leader] += partition is not None and partition.is_under_min_isr
    for (name, words), counts in zip(FAMILIES.items(), (leads, has, under, too_few), strict=True):
        family = GaugeMetricFamily(name, words, labels=["node"])
        for node in broker.nodes.by_id:
            family.add_metric([str(node)], counts[node])
        yield family
    fenced = GaugeMetricFamily(
        "ottla_node_fenced", "1 for a node that may lead nothing, 0 for others.", labels=["node"]
    )
    for one in broker.nodes:
        fenced.add_metric([str(one.id)], float(broker.node_lives.is_fenced(one)))
    yield fenced
    yield GaugeMetricFamily(
        "kafka_controller_KafkaController_OfflinePartitionsCount", "Partitions without a leader.", value=offline
    )
    leaders = broker.replicas.leaders
    yield CounterMetricFamily(
        "ottla_records_cut", "Offsets that logs lost when replicas with less were elected.", value=leaders.records_cut
    )
    yield CounterMetricFamily(
        "ottla_committed_records_cut", "Those that were committed.", value=leaders.committed_records_cut
    )
