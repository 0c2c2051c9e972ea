"""The metrics as Prometheus wants them, made when they are asked for. Kafka's names where Kafka has one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from .group_metrics import groups
from .registry import apis
from .share_metrics import shares
from .transaction_metrics import transactions

if TYPE_CHECKING:
    from .server import Server

NS = 1e9
SHARD_STATES = ("initial", "loading", "active", "failed", "closed")


def render(server: Server) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Collector(server))
    return generate_latest(registry)


class _Collector:
    def __init__(self, server: Server) -> None:
        self.server = server

    def collect(self) -> Iterator[Metric]:
        yield from _requests(self.server)
        yield from _connections(self.server)
        yield from _partitions(self.server)
        yield from _shards(self.server)
        yield from groups(self.server.broker.groups)
        yield from shares(self.server.broker)
        yield from transactions(self.server.broker)
        yield from _cleaner(self.server)
        yield from _files(self.server)


def _requests(server: Server) -> Iterator[Metric]:
    metrics = server.broker.metrics
    count = CounterMetricFamily("kafka_network_RequestMetrics_Requests", "Requests by API and version.", labels=["request", "version"])
    parked = GaugeMetricFamily("ottla_parked_requests", "Requests that wait.", labels=["request"])
    times = CounterMetricFamily("ottla_request_seconds", "Time spent on requests by phase.", labels=["request", "phase"])
    by_name: dict[str, Any] = {}
    for (key, version), api in metrics.apis.items():
        name = apis()[key].name
        count.add_metric([name, str(version)], api.count)
        sums = by_name.setdefault(name, {"parse": 0, "handle": 0, "park": 0, "send": 0, "parked": 0})
        for phase in ("parse", "handle", "park", "send"):
            sums[phase] += getattr(api, f"{phase}_ns")
        sums["parked"] += api.parked
    for name, sums in by_name.items():
        parked.add_metric([name], sums.pop("parked"))
        for phase, ns in sums.items():
            times.add_metric([name, phase], ns / NS)
    errors = CounterMetricFamily("kafka_network_RequestMetrics_Errors", "Errors by API and code.", labels=["request", "error"])
    for (key, code), number in metrics.errors.items():
        errors.add_metric([apis()[key].name, str(code)], number)
    yield from (count, parked, times, errors)
    yield CounterMetricFamily("ottla_malformed_requests", "Requests that could not be parsed.", value=metrics.malformed)
    yield CounterMetricFamily("ottla_bugs", "Handlers that ended in an unexpected exception.", value=metrics.bugs)


def _connections(server: Server) -> Iterator[Metric]:
    metrics = server.broker.metrics
    yield GaugeMetricFamily("kafka_server_socket_server_metrics_connection_count", "Open connections.", value=len(server.connections))
    yield CounterMetricFamily("ottla_connections_opened", "Connections accepted.", value=metrics.connections_opened)
    yield CounterMetricFamily("kafka_server_BrokerTopicMetrics_BytesIn", "Bytes received.", value=metrics.bytes_in)
    yield CounterMetricFamily("kafka_server_BrokerTopicMetrics_BytesOut", "Bytes sent.", value=metrics.bytes_out)
    buffered = sum(c.buffered_bytes() for c in server.connections)
    yield GaugeMetricFamily("ottla_buffered_bytes", "Bytes in the buffers of connections.", value=buffered)
    yield GaugeMetricFamily("ottla_loop_lag_seconds_max", "The recent longest delay of the loop.", value=metrics.loop_lag_ms_max / 1000)


def _partitions(server: Server) -> Iterator[Metric]:
    names = {
        "kafka_log_Log_LogStartOffset": ("The first offset.", "start_offset"),
        "kafka_log_Log_LogEndOffset": ("The next offset to be written.", "end_offset"),
        "kafka_cluster_Partition_HighWatermark": ("Consumers may read below it.", "high_watermark"),
        "kafka_cluster_Partition_LastStableOffset": ("read_committed consumers may read below it.", "last_stable_offset"),
    }
    partitions = sorted(server.broker.partitions.by_name.items())
    for name, (text, attribute) in names.items():
        family = GaugeMetricFamily(name, text, labels=["topic", "partition"])
        for (topic, index), partition in partitions:
            family.add_metric([topic, str(index)], getattr(partition, attribute))
        yield family
    waiters = GaugeMetricFamily("ottla_partition_waiters", "Parked produces and listening fetches.", labels=["topic", "partition", "kind"])
    for (topic, index), partition in partitions:
        waiters.add_metric([topic, str(index), "produce"], len(partition.parked))
        waiters.add_metric([topic, str(index), "fetch"], len(partition.waiters))
    yield waiters


def _shards(server: Server) -> Iterator[Metric]:
    now = server.broker.schedule.monotonic_ms()
    described = {"__cluster_metadata-0": server.broker.metadata.runtime.describe(now)}
    described |= {host.partition.name: host.runtime.describe(now) for host in server.broker.hosts()}
    state = GaugeMetricFamily("ottla_shard_state", "1 for the state that a coordinator shard is in.", labels=["shard", "state"])
    for shard, found in described.items():
        for name in SHARD_STATES:
            state.add_metric([shard, name], float(found["state"] == name))
    yield state
    for field, text in (
        ("uncommitted_records", "Records above the high watermark."),
        ("parked_replies", "Replies that wait for the high watermark."),
        ("oldest_parked_ms", "How long the oldest of them has waited."),
    ):
        family = GaugeMetricFamily(f"ottla_shard_{field}", text, labels=["shard"])
        for shard, found in described.items():
            family.add_metric([shard], found[field])
        yield family


def _cleaner(server: Server) -> Iterator[Metric]:
    """By the names of Kafka's LogCleaner and LogCleanerManager. There is no buffer that fills, and there are no threads that die."""
    broker, cleaner = server.broker, server.broker.partitions.cleaner
    figures, now_ms = cleaner.figures, broker.schedule.monotonic_ms()
    for name, text, value in (
        ("LogCleanerManager_max_dirty_percent", "How much of the dirtiest log is dirty.", int(100 * figures.max_dirty_ratio)),
        ("LogCleanerManager_time_since_last_run_ms", "When the cleaner last looked for a log.", now_ms - figures.last_run_ms),
        ("LogCleaner_max_clean_time_secs", "How long the last compaction took.", figures.clean_time_ns // NS),
        ("LogCleaner_max_compaction_delay_secs", "How long the log was overdue that was compacted last.", figures.delay_ms // 1000),
        ("LogCleaner_cleaner_recopy_percent", "How much of what it read the last compaction wrote again.", int(100 * figures.recopy_ratio)),
    ):
        yield GaugeMetricFamily(f"kafka_log_{name}", text, value=value)
    left = [one.log for one in broker.partitions.by_name.values() if one.log is not None and not one.log.is_cleanable]
    count = GaugeMetricFamily("kafka_log_LogCleanerManager_uncleanable_partitions_count", "Logs that are left alone.", labels=["logDirectory"])
    size = GaugeMetricFamily("kafka_log_LogCleanerManager_uncleanable_bytes", "Their bytes.", labels=["logDirectory"])
    for directory in broker.directories:
        inside = [log for log in left if log.directory.startswith(f"{directory.path}/")]
        count.add_metric([directory.path], len(inside))
        size.add_metric([directory.path], sum(segment.size for log in inside for segment in log.segments))
    yield from (count, size)


def _files(server: Server) -> Iterator[Metric]:
    metrics = server.broker.metrics
    yield CounterMetricFamily("kafka_log_LogFlushStats_LogFlush", "Log flushes.", value=metrics.fsyncs)
    yield CounterMetricFamily("ottla_log_flush_seconds", "Time spent in log flushes.", value=metrics.fsync_ns / NS)
    yield CounterMetricFamily("ottla_log_cleanings", "Compactions.", value=metrics.cleanings)
    yield CounterMetricFamily("ottla_log_cleaning_seconds", "Time spent in compactions.", value=metrics.cleaning_ns / NS)
