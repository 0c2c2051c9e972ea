"""The metrics of share groups with Kafka 4.4's names (`ShareGroupMetrics`, `SharePartitionMetrics`,
`ShareSessionCache`, `share-coordinator-metrics`).

Prometheus computes rates from the counts, and Kafka's histograms are summaries here: a count and a sum. In place of
Kafka's fetch lock, the metrics measure how long one fetch works on a share-partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from ..metrics import Summary

if TYPE_CHECKING:
    from .coordinators import ShareCoordinators
    from .share_partition_leader import SharePartitionLeader
    from .share_partition_manager import SharePartitionManager

GROUPS = "kafka_server_ShareGroupMetrics"
PARTITIONS = "kafka_server_SharePartitionMetrics"
SESSIONS = "kafka_server_ShareSessionCache"
COORDINATOR = "kafka_server_share_coordinator_metrics"
ACK_TYPES = ("Accept", "Release", "Reject", "Renew")  # their numbers begin at 1
LABELS = ["group", "topic", "partition"]


def shares(manager: SharePartitionManager, states: ShareCoordinators) -> Iterator[Metric]:
    """Yields the metrics of share groups except those of their members."""
    yield from _groups(manager)
    yield from _partitions(manager.partitions.values())
    yield from _sessions(manager)
    yield from _coordinator(states)


def _groups(manager: SharePartitionManager) -> Iterator[Metric]:
    letters = manager.dead_letters
    acknowledged = CounterMetricFamily(
        f"{GROUPS}_RecordAcknowledgements", "Acknowledged records by type of acknowledgement.", labels=["ackType"]
    )
    for number, name in enumerate(ACK_TYPES, 1):
        acknowledged.add_metric([name], manager.acknowledged[number])
    yield acknowledged
    load = SummaryMetricFamily(f"{GROUPS}_PartitionLoadTimeMs", "Time that share-partitions took to load their state.")
    load.add_metric([], manager.load_ms.count, manager.load_ms.total)
    yield load
    ratio = "Percentage of the fetched partitions that returned records."
    yield _summaries(
        f"{GROUPS}_RequestTopicPartitionsFetchRatio",
        ratio,
        ["group"],
        (([k], v) for k, v in manager.acquire_ratio.items()),
    )
    waited = "Time that share fetches waited for records."
    yield _summaries(
        f"{GROUPS}_TopicPartitionsAcquireTimeMs", waited, ["group"], (([k], v) for k, v in manager.acquire_ms.items())
    )
    for name, text, counts in (
        ("DeadLetterQueueRecordCount", "Records written to dead-letter queues.", letters.written),
        (
            "DeadLetterQueueTotalProduceRequests",
            "Batches sent to dead-letter queues.",
            letters.produced + letters.failed,
        ),
        (
            "DeadLetterQueueFailedProduceRequests",
            "Batches that could not be written to dead-letter queues.",
            letters.failed,
        ),
    ):
        family = CounterMetricFamily(f"{GROUPS}_{name}", text, labels=["group"])
        for group, count in counts.items():
            family.add_metric([group], count)
        yield family


def _partitions(found: Iterable[SharePartitionLeader]) -> Iterator[Metric]:
    rows = [([one.key.group_id, one.partition.topic, str(one.key.partition)], one) for one in found]
    messages = GaugeMetricFamily(f"{PARTITIONS}_InFlightMessageCount", "Records in flight.", labels=LABELS)
    batches = GaugeMetricFamily(f"{PARTITIONS}_InFlightBatchCount", "Batches in flight.", labels=LABELS)
    timeouts = CounterMetricFamily(
        f"{PARTITIONS}_AcquisitionLockTimeout", "Records whose acquisition lock timed out.", labels=LABELS
    )
    for labels, one in rows:
        messages.add_metric(labels, one.engine.window.in_flight_count)
        batches.add_metric(labels, len(one.engine.window.spans))
        timeouts.add_metric(labels, one.engine.lock_timeouts)
    yield from (messages, batches, timeouts)
    for name, text, attribute in (
        ("InFlightBatchMessageCount", "Records per acquired batch.", "batch_messages"),
        ("FetchLockTimeMs", "Time that a fetch held the lock of the share-partition.", "fetch_ms"),
        (
            "FetchLockRatio",
            "Percentage of the time in which a fetch held the lock of the share-partition.",
            "fetch_ratio",
        ),
    ):
        yield _summaries(
            f"{PARTITIONS}_{name}", text, LABELS, ((labels, getattr(one, attribute)) for labels, one in rows)
        )


def _summaries(name: str, text: str, labels: list[str], found: Iterable[tuple[list[str], Summary]]) -> Metric:
    family = SummaryMetricFamily(name, text, labels=labels)
    for values, one in found:
        family.add_metric(values, one.count, one.total)
    return family


def _sessions(manager: SharePartitionManager) -> Iterator[Metric]:
    sessions = manager.sessions
    yield GaugeMetricFamily(f"{SESSIONS}_ShareSessionsCount", "Share sessions.", value=len(sessions.sessions))
    yield GaugeMetricFamily(f"{SESSIONS}_SharePartitionsCount", "Partitions in share sessions.", value=sessions.entries)
    yield CounterMetricFamily(
        f"{SESSIONS}_ShareSessionEvictions",
        "Share sessions that were closed with their connection.",
        value=sessions.evictions,
    )


def _coordinator(states: ShareCoordinators) -> Iterator[Metric]:
    writes = sum(host.shard.counts["writes"] for host in states.hosts.values())
    yield CounterMetricFamily(f"{COORDINATOR}_write", "Writes of share-partition states.", value=writes)
    yield GaugeMetricFamily(
        f"{COORDINATOR}_write_latency_avg", "Mean time until a write is committed, in ms.", value=states.write_ms.mean
    )
    yield GaugeMetricFamily(
        f"{COORDINATOR}_write_latency_max",
        "Longest time until a write is committed, in ms.",
        value=states.write_ms.most,
    )
    pruned = GaugeMetricFamily(
        f"{COORDINATOR}_last_pruned_offset",
        "Offset up to which a partition of the state topic was last pruned.",
        labels=["topic", "partition"],
    )
    for name, offset in states.pruned_to.items():
        topic, _, index = name.rpartition("-")
        pruned.add_metric([topic, index], offset)
    yield pruned
