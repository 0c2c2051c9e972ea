"""The metrics of transactions with Kafka 4.4's names (`transaction-coordinator-metrics`,
`TransactionMarkerChannelManager`, `AddPartitionsToTxnManager`, and the producer metrics of `ReplicaManager`).

Prometheus computes rates from the counts, and Kafka's histogram is a summary here. Markers are not sent to other
brokers, so the only queues are completions whose records could not be appended yet,
and markers that wait for a partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from ..shards.metrics import load_times
from .coordinators import TransactionCoordinators

COORDINATOR = "kafka_server_transaction_coordinator_metrics"
MARKERS = "kafka_coordinator_transaction_TransactionMarkerChannelManager"
VERIFICATION = "kafka_server_AddPartitionsToTxnManager"
REPLICAS = "kafka_server_ReplicaManager"
LATE_AFTER_MS = 300_000  # after the longest allowed transaction timeout


def transactions(family: TransactionCoordinators) -> Iterator[Metric]:
    """Yields the metrics of transactions, their coordinators, and the producers of partitions."""
    yield from _coordinators(family)
    yield from _producers(family)


def _coordinators(family: TransactionCoordinators) -> Iterator[Metric]:
    from ...coordinator.transaction.state import NAMES

    hosts = list(family.hosts.values())
    yield from load_times(COORDINATOR, hosts)
    states = Counter(NAMES[one.state] for host in hosts for one in host.shard.transactions.values())
    by_state = GaugeMetricFamily("ottla_transactions", "Transactional ids by state.", labels=["state"])
    for name in NAMES.values():
        by_state.add_metric([name], states[name])
    yield by_state
    overdue = sum(host.shard.aborted_overdue for host in hosts)
    yield CounterMetricFamily(
        "ottla_transactions_timed_out", "Transactions aborted because they exceeded their timeout.", value=overdue
    )
    waiting = sum(1 for one in family.completions.values() if one.remaining and one.is_current)
    yield GaugeMetricFamily(
        f"{MARKERS}_UnknownDestinationQueueSize",
        "Transactions whose markers are not yet written to all partitions.",
        value=waiting,
    )
    retrying = sum(1 for one in family.completions.values() if not one.remaining and one.is_current)
    yield GaugeMetricFamily(
        f"{MARKERS}_LogAppendRetryQueueSize", "Transactions whose completion record is being written.", value=retrying
    )
    yield CounterMetricFamily(
        f"{VERIFICATION}_VerificationFailures",
        "Partitions that failed the verification that they belong to the transaction.",
        value=family.verification_failures,
    )
    times = family.verification_ms
    yield SummaryMetricFamily(
        f"{VERIFICATION}_VerificationTimeMs",
        "Time to verify a partition with the transaction coordinator, in ms.",
        count_value=times.count,
        sum_value=times.total,
    )


def _producers(family: TransactionCoordinators) -> Iterator[Metric]:
    logs = [partition.log for partition in family.partitions.by_name.values() if partition.log is not None]
    count = sum(len(log.producers.by_id) for log in logs)
    yield GaugeMetricFamily(
        f"{REPLICAS}_ProducerIdCount", "Producer ids in the producer state of partitions.", value=count
    )
    oldest = family.now_ms() - family.settings.value("transaction.max.timeout.ms") - LATE_AFTER_MS
    late = 0
    for log in logs:
        holder = next(iter(log.producers.open_transactions), None)
        late += holder is not None and 0 < log.producers.by_id[holder].last_timestamp < oldest
    yield GaugeMetricFamily(
        f"{REPLICAS}_PartitionsWithLateTransactionsCount",
        "Partitions with a transaction that is idle for longer than transaction.max.timeout.ms.",
        value=late,
    )
