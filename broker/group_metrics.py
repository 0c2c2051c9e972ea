"""The metrics of the group coordinator by Kafka 4.4's names (`group-coordinator-metrics`, `GroupMetadataManager`).

Kafka's rates are for Prometheus to compute from the counts. Its threads and their queues have no counterpart: there is one loop, whose
delay is `ottla_loop_lag_seconds_max`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from .coordinators import GroupCoordinators

PREFIX = "kafka_server_group_coordinator_metrics"
MANAGER = "kafka_coordinator_group_GroupMetadataManager"
CLASSIC_STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
CONSUMER_STATES = ("empty", "assigning", "reconciling", "stable", "dead")
SHARE_STATES = ("empty", "stable", "dead")
LOADED_STATES = ("loading", "active", "failed")
COUNTS = {
    "offset_commit_count": ("offset_commits", "Offsets committed."),
    "offset_expiration_count": ("offset_expirations", "Offsets that expired."),
    "offset_deletion_count": ("offset_deletions", "Offsets deleted on request."),
    "group_completed_rebalance_count": ("classic_rebalances", "Rebalances of classic groups that came to their end."),
    "consumer_group_rebalance_count": ("consumer_rebalances", "Rebalances of consumer groups."),
    "share_group_rebalance_count": ("share_rebalances", "Rebalances of share groups."),
}


def groups(coordinators: GroupCoordinators) -> Iterator[Metric]:
    """Everything about groups, offsets and the shards that hold them."""
    from ..coordinator.group.classic import ClassicGroup
    from ..coordinator.group.share import ShareGroup

    hosts = list(coordinators.hosts.values())
    classic: Counter[str] = Counter()
    consumer: Counter[str] = Counter()
    share: Counter[str] = Counter()
    offsets = 0
    for host in hosts:
        offsets += sum(len(of) for of in host.shard.offsets.by_group.values())
        for group in host.shard.groups.values():
            if isinstance(group, ClassicGroup):
                classic[group.state.value] += 1
            else:
                (share if isinstance(group, ShareGroup) else consumer)[group.state().lower()] += 1
    yield GaugeMetricFamily(f"{MANAGER}_NumOffsets", "Committed offsets.", value=offsets)
    yield GaugeMetricFamily(f"{MANAGER}_NumGroups", "Groups of all kinds.", value=classic.total() + consumer.total() + share.total())
    for state in CLASSIC_STATES:
        yield GaugeMetricFamily(f"{MANAGER}_NumGroups{state}", f"Classic groups in the state {state}.", value=classic[state])
    by_protocol = {"classic": classic.total(), "consumer": consumer.total(), "share": share.total()}
    yield _by("group_count", "Groups by protocol.", "protocol", by_protocol)
    yield _by("consumer_group_count", "Consumer groups by state.", "state", {state: consumer[state] for state in CONSUMER_STATES})
    yield _by("share_group_count", "Share groups by state.", "state", {state: share[state] for state in SHARE_STATES})
    states = Counter(host.runtime.state.value for host in hosts)
    yield _by("num_partitions", "Partitions of __consumer_offsets by the state of their shards.", "state", {s: states[s] for s in LOADED_STATES})
    for name, (counter, text) in COUNTS.items():
        yield CounterMetricFamily(f"{PREFIX}_{name}", text, value=sum(host.shard.counts[counter] for host in hosts))
    loads = [host.load_ms for host in hosts] or [0]
    yield GaugeMetricFamily(f"{PREFIX}_partition_load_time_max", "The longest load of a shard, ms.", value=max(loads))
    yield GaugeMetricFamily(f"{PREFIX}_partition_load_time_avg", "The mean load of a shard, ms.", value=sum(loads) / len(loads))


def _by(name: str, text: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
