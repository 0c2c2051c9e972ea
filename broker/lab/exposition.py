"""Exports the metrics in the Prometheus text format, on demand. Metrics that Kafka has use Kafka's names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.samples import Sample

from ..group.metrics import groups
from ..share.metrics import shares
from ..transaction.metrics import transactions
from .client_exposition import LongMetric, client_metrics
from .limit_metrics import limit_metrics
from .node_metrics import node_metrics
from .per_node import PerNode
from .quota_metrics import quota_metrics
from .served import Served

NS = 1e9
SHARD_STATES = ("initial", "loading", "active", "failed", "closed")


SAMPLES_PER_PIECE = 1000


class _One:
    """A registry with one metric."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self.metric


def render(server: Served) -> Iterator[bytes]:
    """Yields the text in pieces: one metric, or some samples of a metric with many."""
    for metric in _Collector(server).collect():
        for number, samples in enumerate(_parts(metric)):
            metric.samples = samples
            text = generate_latest(cast(CollectorRegistry, _One(metric)))
            yield (
                text
                if number == 0
                else b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"#"))
            )


def _parts(metric: Metric) -> Iterator[list[Sample]]:
    if isinstance(metric, LongMetric):
        return metric.parts(SAMPLES_PER_PIECE)
    samples = metric.samples
    starts = range(0, max(1, len(samples)), SAMPLES_PER_PIECE)
    return (samples[start : start + SAMPLES_PER_PIECE] for start in starts)


class _Collector:
    def __init__(self, server: Served) -> None:
        self.server = server

    def collect(self) -> Iterator[Metric]:
        yield from _requests(self.server)
        yield from _connections(self.server)
        yield from _partitions(self.server)
        yield from node_metrics(self.server)
        yield from _shards(self.server)
        yield from groups(self.server.broker.groups)
        yield from shares(self.server.broker.share_partitions, self.server.broker.share_states)
        yield from transactions(self.server.broker.transactions)
        yield from _cleaner(self.server)
        yield from _files(self.server)
        yield from limit_metrics(self.server)
        yield from quota_metrics(self.server)
        yield from client_metrics(self.server)


def _requests(server: Served) -> Iterator[Metric]:
    per_node, metrics = PerNode(server), server.broker.metrics
    count = per_node.counter(
        "kafka_network_RequestMetrics_Requests", "Requests by API and version.", "request", "version"
    )
    parked = GaugeMetricFamily("ottla_parked_requests", "Requests that wait for their reply.", labels=["request"])
    times = CounterMetricFamily(
        "ottla_request_seconds", "Time spent on requests by phase.", labels=["request", "phase"]
    )
    by_name: dict[str, dict[str, int]] = {}
    for broker, node in per_node.brokers():
        for (key, version), api in broker.metrics.apis.items():
            name = server.api(key).name
            count.add_metric([name, str(version), *node], api.count)
            sums = by_name.setdefault(name, {"parse": 0, "handle": 0, "park": 0, "send": 0, "parked": 0})
            for phase in ("parse", "handle", "park", "send"):
                sums[phase] += getattr(api, f"{phase}_ns")
            sums["parked"] += api.parked
    for name, sums in by_name.items():
        parked.add_metric([name], sums.pop("parked"))
        for phase, ns in sums.items():
            times.add_metric([name, phase], ns / NS)
    errors = per_node.counter("kafka_network_RequestMetrics_Errors", "Errors by API and code.", "request", "error")
    for broker, node in per_node.brokers():
        for (key, code), number in broker.metrics.errors.items():
            errors.add_metric([server.api(key).name, str(code), *node], number)
    yield from (count, parked, times, errors)
    yield CounterMetricFamily(
        "ottla_malformed_requests",
        "Requests that could not be decoded.",
        value=sum(broker.metrics.malformed for broker in server.broker.views()),
    )
    yield CounterMetricFamily("ottla_bugs", "Handlers that ended in an unexpected exception.", value=metrics.bugs)
    yield CounterMetricFamily(
        "ottla_request_log_dropped", "Lines that the request log dropped.", value=server.dropped_lines()
    )


AUTHENTICATIONS = {
    "successful_authentication": "Connections whose clients authenticated, by TLS alone or by SASL.",
    "successful_authentication_no_reauth": "Those whose clients cannot authenticate again (KIP-368).",
    "failed_authentication": "Connections whose clients failed to authenticate.",
    "successful_reauthentication": "Sessions in which a client authenticated again (KIP-368).",
    "failed_reauthentication": "Sessions in which a client failed to authenticate again.",
    "expired_connections_killed_count": "Connections closed because the client did not authenticate again.",
}


def _connections(server: Served) -> Iterator[Metric]:
    per_node = PerNode(server)
    now_open = per_node.gauge("kafka_server_socket_server_metrics_connection_count", "Open connections.")
    opened = per_node.counter("ottla_connections_opened", "Connections accepted.")
    refused = per_node.counter("ottla_connections_refused", "Connections refused because of a limit.")
    bytes_in = per_node.counter("kafka_server_BrokerTopicMetrics_BytesIn", "Bytes received.")
    bytes_out = per_node.counter("kafka_server_BrokerTopicMetrics_BytesOut", "Bytes sent.")
    for broker, node in per_node.brokers():
        metrics = broker.metrics
        now_open.add_metric(node, metrics.connections_opened - metrics.connections_closed)
        opened.add_metric(node, metrics.connections_opened)
        refused.add_metric(node, metrics.connections_refused)
        bytes_in.add_metric(node, metrics.bytes_in)
        bytes_out.add_metric(node, metrics.bytes_out)
    yield from (now_open, opened, refused)
    yield from _authentications(server, per_node)
    yield from (bytes_in, bytes_out)
    buffered = sum(c.buffered_bytes() for c in server.connections)
    yield GaugeMetricFamily("ottla_buffered_bytes", "Bytes in the buffers of connections.", value=buffered)
    yield GaugeMetricFamily(
        "ottla_loop_lag_seconds_max",
        "The longest recent delay of the event loop.",
        value=server.broker.metrics.loop_lag_ms_max / 1000,
    )


def _authentications(server: Served, per_node: PerNode) -> Iterator[Metric]:
    prefix = "kafka_server_socket_server_metrics_"
    listeners = [one.name for one in server.config.listeners]
    for kind, words in AUTHENTICATIONS.items():
        counter = per_node.counter(prefix + kind, words, "listener")
        for broker, node in per_node.brokers():
            for one in listeners:
                counter.add_metric([one, *node], broker.metrics.authentications[one, kind])
        yield counter
    mean = per_node.gauge(
        f"{prefix}reauthentication_latency_avg",
        "How many milliseconds clients took to authenticate again, on average since the start.",
        "listener",
    )
    most = per_node.gauge(f"{prefix}reauthentication_latency_max", "The longest of these times.", "listener")
    for broker, node in per_node.brokers():
        for one, taken in broker.metrics.reauthentication_ms.items():
            mean.add_metric([one, *node], taken.mean)
            most.add_metric([one, *node], taken.most)
    yield from (mean, most)


def _partitions(server: Served) -> Iterator[Metric]:
    names = {
        "kafka_log_Log_LogStartOffset": ("The log start offset.", "start_offset"),
        "kafka_log_Log_LogEndOffset": ("The log end offset: the offset of the next record.", "end_offset"),
        "kafka_cluster_Partition_HighWatermark": ("The high watermark: consumers can read below it.", "high_watermark"),
        "kafka_cluster_Partition_LastStableOffset": (
            "The last stable offset: read_committed consumers can read below it.",
            "last_stable_offset",
        ),
    }
    partitions = sorted(server.broker.partitions.by_name.items())
    for name, (text, attribute) in names.items():
        family = GaugeMetricFamily(name, text, labels=["topic", "partition"])
        for (topic, index), partition in partitions:
            family.add_metric([topic, str(index)], getattr(partition, attribute))
        yield family
    waiters = GaugeMetricFamily(
        "ottla_partition_waiters",
        "Produce and Fetch requests that wait for the partition.",
        labels=["topic", "partition", "kind"],
    )
    for (topic, index), partition in partitions:
        waiters.add_metric([topic, str(index), "produce"], len(partition.parked))
        waiters.add_metric([topic, str(index), "fetch"], len(partition.waiters))
    yield waiters


def _shards(server: Served) -> Iterator[Metric]:
    now = server.broker.schedule.monotonic_ms()
    described = {"__cluster_metadata-0": server.broker.metadata.runtime.describe(now)}
    described |= {host.partition.name: host.runtime.describe(now) for host in server.broker.hosts()}
    state = GaugeMetricFamily(
        "ottla_shard_state",
        "1 for the current state of a coordinator shard, 0 for the others.",
        labels=["shard", "state"],
    )
    for shard, found in described.items():
        for name in SHARD_STATES:
            state.add_metric([shard, name], float(found["state"] == name))
    yield state
    for field, text in (
        ("uncommitted_records", "Uncommitted records of a shard: those above the high watermark."),
        ("parked_replies", "Replies of a shard that wait for the high watermark."),
        ("oldest_parked_ms", "How long the oldest waiting reply has waited, in ms."),
    ):
        family = GaugeMetricFamily(f"ottla_shard_{field}", text, labels=["shard"])
        for shard, found in described.items():
            family.add_metric([shard], found[field])
        yield family


def _cleaner(server: Served) -> Iterator[Metric]:
    """Metrics of Kafka's LogCleaner and LogCleanerManager.
    ottla has no cleaner buffer and no cleaner threads to report.
    """
    broker, cleaner = server.broker, server.broker.replicas.cleaner
    figures = cleaner.figures
    for name, text, value in (
        (
            "LogCleanerManager_max_dirty_percent",
            "Percentage of the dirtiest log that is not compacted.",
            int(100 * figures.max_dirty_ratio),
        ),
        (
            "LogCleanerManager_time_since_last_run_ms",
            "Time since the cleaner last looked for a log to compact, in ms.",
            cleaner.idle_ms(),
        ),
        ("LogCleaner_max_clean_time_secs", "Duration of the last compaction, in seconds.", figures.clean_time_ns // NS),
        (
            "LogCleaner_max_compaction_delay_secs",
            "How long the last compaction was overdue, in seconds.",
            figures.delay_ms // 1000,
        ),
        (
            "LogCleaner_cleaner_recopy_percent",
            "Percentage of the bytes read by the last compaction that it wrote again.",
            int(100 * figures.recopy_ratio),
        ),
    ):
        yield GaugeMetricFamily(f"kafka_log_{name}", text, value=value)
    left = [one.log for one in broker.partitions.by_name.values() if one.log is not None and not one.log.is_cleanable]
    count = GaugeMetricFamily(
        "kafka_log_LogCleanerManager_uncleanable_partitions_count",
        "Logs that the cleaner skips after a failed compaction.",
        labels=["logDirectory"],
    )
    size = GaugeMetricFamily(
        "kafka_log_LogCleanerManager_uncleanable_bytes",
        "Bytes of the logs that the cleaner skips.",
        labels=["logDirectory"],
    )
    for directory in broker.log_directories.all:
        inside = [log for log in left if log.directory.startswith(f"{directory.path}/")]
        count.add_metric([directory.path], len(inside))
        size.add_metric([directory.path], sum(segment.size for log in inside for segment in log.segments))
    yield from (count, size)


def _files(server: Served) -> Iterator[Metric]:
    metrics = server.broker.metrics
    offline = sum(directory.failed for directory in server.broker.log_directories.all)
    yield GaugeMetricFamily(
        "kafka_log_LogManager_OfflineLogDirectoryCount", "Log directories that failed and are offline.", value=offline
    )
    yield CounterMetricFamily(
        "ottla_io_errors", "I/O errors that did not take a log directory offline.", value=metrics.io_errors
    )
    yield CounterMetricFamily("kafka_log_LogFlushStats_LogFlush", "Log flushes.", value=metrics.fsyncs)
    yield CounterMetricFamily("ottla_log_flush_seconds", "Time spent in log flushes.", value=metrics.fsync_ns / NS)
    yield CounterMetricFamily("ottla_log_cleanings", "Compactions.", value=metrics.cleanings)
    yield CounterMetricFamily(
        "ottla_log_cleaning_seconds", "Time spent in compactions.", value=metrics.cleaning_ns / NS
    )
