"""The metrics of transactions by Kafka 4.4's names (`transaction-coordinator-metrics`, `TransactionMarkerChannelManager`,
`AddPartitionsToTxnManager`, and what `ReplicaManager` says of producers).

Kafka's rates are for Prometheus to compute from the counts, and its histogram is a summary here. There are no other brokers to send markers to,
so of its queues there are the completions whose records could not be appended yet, and the markers that wait for a partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

if TYPE_CHECKING:
    from .broker import Broker

COORDINATOR = "kafka_server_transaction_coordinator_metrics"
MARKERS = "kafka_coordinator_transaction_TransactionMarkerChannelManager"
VERIFICATION = "kafka_server_AddPartitionsToTxnManager"
REPLICAS = "kafka_server_ReplicaManager"
LATE_AFTER_MS = 300_000  # beyond the longest time that a transaction may take


def transactions(broker: Broker) -> Iterator[Metric]:
    """Everything about transactions, their coordinators, and the producers of partitions."""
    yield from _coordinators(broker)
    yield from _producers(broker)


def _coordinators(broker: Broker) -> Iterator[Metric]:
    from ..coordinator.transaction.state import NAMES

    family = broker.transactions
    hosts = list(family.hosts.values())
    loads = [host.load_ms for host in hosts] or [0]
    yield GaugeMetricFamily(f"{COORDINATOR}_partition_load_time_max", "The longest load of a shard, ms.", value=max(loads))
    yield GaugeMetricFamily(f"{COORDINATOR}_partition_load_time_avg", "The mean load of a shard, ms.", value=sum(loads) / len(loads))
    states = Counter(NAMES[one.state] for host in hosts for one in host.shard.transactions.values())
    by_state = GaugeMetricFamily("ottla_transactions", "Transactional ids by state.", labels=["state"])
    for name in NAMES.values():
        by_state.add_metric([name], states[name])
    yield by_state
    overdue = sum(host.shard.aborted_overdue for host in hosts)
    yield CounterMetricFamily("ottla_transactions_timed_out", "Transactions aborted because they took too long.", value=overdue)
    waiting = sum(1 for one in family.completions.values() if one.remaining and one.is_current)
    yield GaugeMetricFamily(f"{MARKERS}_UnknownDestinationQueueSize", "Transactions whose markers wait for a partition.", value=waiting)
    retrying = sum(1 for one in family.completions.values() if not one.remaining and one.is_current)
    yield GaugeMetricFamily(f"{MARKERS}_LogAppendRetryQueueSize", "Transactions whose completion is being written.", value=retrying)
    yield CounterMetricFamily(
        f"{VERIFICATION}_VerificationFailures", "Partitions that were not part of a transaction.", value=family.verification_failures
    )
    times = family.verification_ms
    yield SummaryMetricFamily(
        f"{VERIFICATION}_VerificationTimeMs", "Time to ask the coordinator, ms.", count_value=times.count, sum_value=times.total
    )


def _producers(broker: Broker) -> Iterator[Metric]:
    logs = [partition.log for partition in broker.partitions.by_name.values() if partition.log is not None]
    count = sum(len(log.producers.by_id) for log in logs)
    yield GaugeMetricFamily(f"{REPLICAS}_ProducerIdCount", "Producers that partitions remember.", value=count)
    oldest = broker.schedule.now_ms() - broker.value("transaction.max.timeout.ms") - LATE_AFTER_MS
    late = 0
    for log in logs:
        holder = next(iter(log.producers.open_transactions), None)
        late += holder is not None and 0 < log.producers.by_id[holder].last_timestamp < oldest
    yield GaugeMetricFamily(f"{REPLICAS}_PartitionsWithLateTransactionsCount", "Partitions with a transaction that should have ended.", value=late)
