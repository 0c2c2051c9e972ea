"""The metrics of share groups by Kafka 4.4's names (`ShareGroupMetrics`, `SharePartitionMetrics`, `ShareSessionCache`, `share-coordinator-metrics`).

Kafka's rates are for Prometheus to compute from the counts, and its histograms are summaries here: a count and a sum. What Kafka's fetch
lock measures is how long one fetch has a share-partition for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from .metrics import Summary

if TYPE_CHECKING:
    from .broker import Broker
    from .share_partition import Shared

GROUPS = "kafka_server_ShareGroupMetrics"
PARTITIONS = "kafka_server_SharePartitionMetrics"
SESSIONS = "kafka_server_ShareSessionCache"
COORDINATOR = "kafka_server_share_coordinator_metrics"
ACK_TYPES = ("Accept", "Release", "Reject", "Renew")  # their numbers begin at 1
LABELS = ["group", "topic", "partition"]


def shares(broker: Broker) -> Iterator[Metric]:
    """Everything about share groups but their members."""
    yield from _groups(broker)
    yield from _partitions(broker.sharing.partitions.values())
    yield from _sessions(broker)
    yield from _coordinator(broker)


def _groups(broker: Broker) -> Iterator[Metric]:
    sharing, letters = broker.sharing, broker.sharing.dead_letters
    acknowledged = CounterMetricFamily(f"{GROUPS}_RecordAcknowledgements", "Records by the type of their acknowledgement.", labels=["ackType"])
    for number, name in enumerate(ACK_TYPES, 1):
        acknowledged.add_metric([name], sharing.acknowledged[number])
    yield acknowledged
    load = SummaryMetricFamily(f"{GROUPS}_PartitionLoadTimeMs", "How long share-partitions took to read their state.")
    load.add_metric([], sharing.load_ms.count, sharing.load_ms.total)
    yield load
    ratio = "Of how many percent of its partitions a fetch got records."
    yield _summaries(f"{GROUPS}_RequestTopicPartitionsFetchRatio", ratio, ["group"], (([k], v) for k, v in sharing.acquire_ratio.items()))
    waited = "How long fetches waited for records."
    yield _summaries(f"{GROUPS}_TopicPartitionsAcquireTimeMs", waited, ["group"], (([k], v) for k, v in sharing.acquire_ms.items()))
    for name, text, counts in (
        ("DeadLetterQueueRecordCount", "Records written to dead-letter queues.", letters.written),
        ("DeadLetterQueueTotalProduceRequests", "Batches sent to dead-letter queues.", letters.produced + letters.failed),
        ("DeadLetterQueueFailedProduceRequests", "Batches that dead-letter queues did not take.", letters.failed),
    ):
        family = CounterMetricFamily(f"{GROUPS}_{name}", text, labels=["group"])
        for group, count in counts.items():
            family.add_metric([group], count)
        yield family


def _partitions(found: Iterable[Shared]) -> Iterator[Metric]:
    rows = [([one.key.group_id, one.partition.topic, str(one.key.partition)], one) for one in found]
    messages = GaugeMetricFamily(f"{PARTITIONS}_InFlightMessageCount", "Records in flight.", labels=LABELS)
    batches = GaugeMetricFamily(f"{PARTITIONS}_InFlightBatchCount", "Batches in flight.", labels=LABELS)
    timeouts = CounterMetricFamily(f"{PARTITIONS}_AcquisitionLockTimeout", "Records of which the lock ran out.", labels=LABELS)
    for labels, one in rows:
        messages.add_metric(labels, one.engine.in_flight_count)
        batches.add_metric(labels, len(one.engine.spans))
        timeouts.add_metric(labels, one.engine.lock_timeouts)
    yield from (messages, batches, timeouts)
    for name, text, attribute in (
        ("InFlightBatchMessageCount", "Records in a batch that was acquired.", "batch_messages"),
        ("FetchLockTimeMs", "How long a fetch had the share-partition for itself.", "fetch_ms"),
        ("FetchLockRatio", "For how many percent of the time fetches had it.", "fetch_ratio"),
    ):
        yield _summaries(f"{PARTITIONS}_{name}", text, LABELS, ((labels, getattr(one, attribute)) for labels, one in rows))


def _summaries(name: str, text: str, labels: list[str], found: Iterable[tuple[list[str], Summary]]) -> Metric:
    family = SummaryMetricFamily(name, text, labels=labels)
    for values, one in found:
        family.add_metric(values, one.count, one.total)
    return family


def _sessions(broker: Broker) -> Iterator[Metric]:
    sessions = broker.sharing.sessions
    partitions = sum(len(one.entries) for one in sessions.sessions.values())
    yield GaugeMetricFamily(f"{SESSIONS}_ShareSessionsCount", "Share sessions.", value=len(sessions.sessions))
    yield GaugeMetricFamily(f"{SESSIONS}_SharePartitionsCount", "Partitions in share sessions.", value=partitions)
    yield CounterMetricFamily(f"{SESSIONS}_ShareSessionEvictions", "Share sessions that ended with their connection.", value=sessions.evictions)


def _coordinator(broker: Broker) -> Iterator[Metric]:
    states = broker.share_states
    writes = sum(host.shard.counts["writes"] for host in states.hosts.values())
    yield CounterMetricFamily(f"{COORDINATOR}_write", "Writes of share-partitions' states.", value=writes)
    yield GaugeMetricFamily(f"{COORDINATOR}_write_latency_avg", "The mean time of a write until it is committed, ms.", value=states.write_ms.mean)
    yield GaugeMetricFamily(f"{COORDINATOR}_write_latency_max", "The longest time of a write until it is committed, ms.", value=states.write_ms.most)
    pruned = GaugeMetricFamily(f"{COORDINATOR}_last_pruned_offset", "Where a state topic's partition was last cut.", labels=["topic", "partition"])
    for name, offset in states.pruned_to.items():
        topic, _, index = name.rpartition("-")
        pruned.add_metric([topic, index], offset)
    yield pruned
