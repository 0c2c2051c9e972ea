"""Metrics that the coordinators of all families have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from .host import S, ShardHost


def load_times(prefix: str, hosts: Sequence[ShardHost[S]]) -> Iterator[Metric]:
    """Yields how long loading the shards took, in ms."""
    loads = [host.load_ms for host in hosts] or [0]
    most, mean = max(loads), sum(loads) / len(loads)
    yield GaugeMetricFamily(f"{prefix}_partition_load_time_max", "The longest time to load a shard, in ms.", value=most)
    yield GaugeMetricFamily(f"{prefix}_partition_load_time_avg", "The mean time to load a shard, in ms.", value=mean)
