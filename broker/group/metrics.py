"""The metrics of the group coordinator with Kafka 4.4's names (`group-coordinator-metrics`, `GroupMetadataManager`).

Kafka's threads and queues have no counterpart (`thread-idle-ratio`, `event-queue-size`, `event-queue-time-ms`,
`background-*`, `batch-buffer-cache-*`): there is one loop, whose delay is `ottla_loop_lag_seconds_max`. Times cover the
whole run; Kafka's cover the last minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ..event_times import MICROSECONDS, EventTimes
from ..shards.metrics import load_times

if TYPE_CHECKING:
    from ...coordinator.group.shard import GroupShard
    from ..shards.host import ShardHost
    from .coordinators import GroupCoordinators

PREFIX = "kafka_server_group_coordinator_metrics"
EVENTS = "ottla_group_coordinator_events"
MANAGER = "kafka_coordinator_group_GroupMetadataManager"
CLASSIC_STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
STATES = {
    "classic": CLASSIC_STATES,
    "consumer": ("Empty", "Assigning", "Reconciling", "Stable", "Dead"),
    "share": ("Empty", "Stable", "Dead"),
    "streams": ("Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead"),
}
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
LOADED_STATES = ("loading", "active", "failed")
COUNTS = {
    "offset_commit": ("offset_commits", "Offsets committed."),
    "offset_expiration": ("offset_expirations", "Offsets that expired."),
    "offset_deletion": ("offset_deletions", "Offsets deleted on request."),
    "group_completed_rebalance": ("classic_rebalances", "Completed rebalances of classic groups."),
    "consumer_group_rebalance": ("consumer_rebalances", "Rebalances of consumer groups."),
    "share_group_rebalance": ("share_rebalances", "Rebalances of share groups."),
    "streams_group_rebalance": ("streams_rebalances", "Rebalances of streams groups."),
    "streams_group_topology_description_cleanup_cycle": (
        "description_cleanups",
        "Rounds in which descriptions of unused topologies were deleted.",
    ),
    "streams_group_topology_description_cleanup_eligible": (
        "description_cleanup_groups",
        "Groups whose descriptions such rounds have found unused.",
    ),
    "streams_group_topology_description_delete_success": (
        "descriptions_deleted",
        "Deleted descriptions of topologies.",
    ),
    "streams_group_topology_description_delete_error": (
        "description_delete_errors",
        "Descriptions of topologies that could not be deleted.",
    ),
    "streams_group_topology_description_get_success": (
        "descriptions_got",
        "Descriptions of topologies that were looked up.",
    ),
    "streams_group_topology_description_get_error": (
        "description_get_errors",
        "Descriptions of topologies that could not be looked up.",
    ),
    "streams_group_topology_description_set_success": ("descriptions_set", "Stored descriptions of topologies."),
    "streams_group_topology_description_set_error": (
        "description_set_errors",
        "Descriptions of topologies that were refused.",
    ),
}


def groups(coordinators: GroupCoordinators) -> Iterator[Metric]:
    """Yields the metrics of groups, offsets and group shards."""
    hosts = list(coordinators.hosts.values())
    yield from _states(hosts)
    states = Counter(host.runtime.state.value for host in hosts)
    yield _by(
        "num_partitions",
        "Partitions of __consumer_offsets by the state of their shards.",
        "state",
        {s: states[s] for s in LOADED_STATES},
    )
    yield from _rates(coordinators)
    yield from _times(coordinators.times)
    yield from _events(coordinators.times)
    yield from load_times(PREFIX, hosts)


def _states(hosts: list[ShardHost[GroupShard]]) -> Iterator[Metric]:
    """The number of groups by kind and state, and of their offsets."""
    by_kind: dict[str, Counter[str]] = {kind: Counter() for kind in STATES}
    offsets = 0
    for host in hosts:
        offsets += sum(len(of) for of in host.shard.offsets.by_group.values())
        for group in host.shard.groups.values():
            by_kind[group.kind][group.state_name()] += 1
    by_protocol = {kind: found.total() for kind, found in by_kind.items()}
    yield GaugeMetricFamily(f"{MANAGER}_NumOffsets", "Committed offsets.", value=offsets)
    yield GaugeMetricFamily(f"{MANAGER}_NumGroups", "Groups of all kinds.", value=sum(by_protocol.values()))
    for state in CLASSIC_STATES:
        yield GaugeMetricFamily(
            f"{MANAGER}_NumGroups{state}", f"Classic groups in the state {state}.", value=by_kind["classic"][state]
        )
    yield GaugeMetricFamily(f"{PREFIX}_offset_count", "Committed offsets.", value=offsets)
    yield _by("group_count", "Groups by protocol.", "protocol", by_protocol)
    for kind, names in STATES.items():
        counts = {state: by_kind[kind][state] for state in names}
        yield _by(f"{kind}_group_count", f"{kind.capitalize()} groups by state.", "state", counts)


def _rates(coordinators: GroupCoordinators) -> Iterator[Metric]:
    coordinators.counts["batches"] = coordinators.times.batch_flush.count
    rates = coordinators.rates_now()
    for name, (counter, text) in COUNTS.items():
        yield CounterMetricFamily(f"{PREFIX}_{name}_count", text, value=coordinators.counts[counter])
        yield GaugeMetricFamily(
            f"{PREFIX}_{name}_rate", f"{text} Rate per second in the last minute.", value=rates.get(counter, 0.0)
        )
    yield GaugeMetricFamily(
        f"{PREFIX}_batch_flush_rate",
        "Appended batches. Rate per second in the last minute.",
        value=rates.get("batches", 0.0),
    )


def _times(times: EventTimes) -> Iterator[Metric]:
    for name, text, found in (
        ("event_processing_time_ms", "Processing time of coordinator writes.", times.processing),
        ("event_purgatory_time_ms", "Time that replies waited for the high watermark.", times.purgatory),
        ("batch_linger_time_ms", "Time that batches waited for more writes.", times.batch_linger),
        ("batch_flush_time_ms", "Time to append batches to the log.", times.batch_flush),
    ):
        for quantile, share in QUANTILES.items():
            yield GaugeMetricFamily(
                f"{PREFIX}_{name}_{quantile}",
                f"{text} Quantile {quantile}, overestimated by a factor of at most two.",
                value=found.quantile_ms(share),
            )
        yield GaugeMetricFamily(f"{PREFIX}_{name}_max", f"{text} Maximum.", value=found.most / MICROSECONDS)


def _events(times: EventTimes) -> Iterator[Metric]:
    """The writes by their names, which Kafka only logs."""
    writes = CounterMetricFamily(f"{EVENTS}", "Coordinator writes by name.", labels=["event"])
    errors = CounterMetricFamily(
        f"{EVENTS}_errors", "Coordinator writes that ended in an error, by name.", labels=["event"]
    )
    waited = GaugeMetricFamily(
        f"{EVENTS}_purgatory_time_ms_max", "Longest time that a reply waited, by name.", labels=["event"]
    )
    for name, event in times.events.items():
        writes.add_metric([name], event.processing.count)
        errors.add_metric([name], event.errors)
        waited.add_metric([name], event.purgatory.most / MICROSECONDS)
    yield from (writes, errors, waited)


def _by(name: str, text: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
