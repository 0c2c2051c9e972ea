"""Metrics of clients: those that they have pushed, and those of Kafka's ClientMetricsManager (`client-metrics`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.samples import Sample

from ...storage.checkpoints import uuid_to_text
from ..telemetry.client_metrics_manager import Client, ClientMetricsManager
from ..telemetry.pushed_metrics import PushedMetrics, PushingClient, Series
from .served import Served

PREFIX = "kafka_server_client_metrics_"
INSTANCE = "client_instance_id"
COUNTER, GAUGE = "counter", "gauge"
OF_CLIENTS: tuple[tuple[str, str, str, Callable[[Client], float]], ...] = (
    (
        "throttle_count_total",
        COUNTER,
        "Requests of a client that came before its interval was over.",
        lambda client: client.throttled,
    ),
    (
        "plugin_export_count_total",
        COUNTER,
        "Pushes of a client that were taken.",
        lambda client: client.export_ms.count,
    ),
    ("plugin_error_count_total", COUNTER, "Pushes of a client that could not be read.", lambda client: client.failed),
    ("plugin_export_time_avg", GAUGE, "Mean time that a push took, in ms.", lambda client: client.export_ms.mean),
    ("plugin_export_time_max", GAUGE, "Longest time that a push took, in ms.", lambda client: client.export_ms.most),
)
Pushed = tuple[str, PushingClient, tuple[tuple[str, str], ...], Series]


class LongMetric(Metric):
    """A metric with many samples, which are made some at a time. `name`: that of its samples."""

    def __init__(self, name: str, text: str, kind: str, made: Iterable[Sample]) -> None:
        super().__init__(name.removesuffix("_total") if kind == COUNTER else name, text, kind)
        self._made = iter(made)

    def parts(self, size: int) -> Iterator[list[Sample]]:
        """Yields the samples, `size` at a time; an empty list if there are none."""
        part = list(islice(self._made, size))
        yield part
        while len(part) == size:
            part = list(islice(self._made, size))
            yield part


def client_metrics(server: Served) -> Iterator[Metric]:
    """Yields the metrics of clients that push metrics."""
    yield from _of_manager(server.broker.client_metrics)
    if server.broker.pushed_metrics is not None:
        yield from _pushed(server.broker.pushed_metrics)


def _of_manager(manager: ClientMetricsManager) -> Iterator[Metric]:
    yield GaugeMetricFamily(f"{PREFIX}instance_count", "Clients that push metrics.", value=len(manager.clients))
    yield CounterMetricFamily(
        f"{PREFIX}unknown_subscription_request_count",
        "Pushes for another subscription than that of the client.",
        value=manager.unknown_subscriptions,
    )
    clients = list(manager.clients.values())
    for end, kind, text, value in OF_CLIENTS:
        name = PREFIX + end
        yield LongMetric(name, text, kind, (Sample(name, {INSTANCE: one.instance.name}, value(one)) for one in clients))


def _pushed(found: PushedMetrics) -> Iterator[Metric]:
    families: dict[str, list[Pushed]] = {}
    for instance_id, client in found.clients.items():
        name = uuid_to_text(instance_id)
        for (metric, labels), series in client.series.items():
            families.setdefault(metric, []).append((name, client, labels, series))
    who = "ottla_pushing_client_info"
    yield LongMetric(who, "Clients whose metrics are here; always 1.", GAUGE, _infos(who, list(found.clients.items())))
    for metric, pushed in sorted(families.items()):
        kind = COUNTER if all(series.is_counter for _, _, _, series in pushed) else GAUGE
        yield LongMetric(metric, "Pushed by clients (KIP-714).", kind, _values(metric, pushed))


def _infos(metric: str, clients: list[tuple[bytes, PushingClient]]) -> Iterator[Sample]:
    for instance_id, client in clients:
        software, version = client.peer.software
        labels = {
            INSTANCE: uuid_to_text(instance_id),
            "client_id": client.client_id or "",
            "client_software_name": software,
            "client_software_version": version,
            "client_address": client.peer.host_address,
            "principal": client.peer.principal,
        }
        yield Sample(metric, labels, 1)


def _values(metric: str, pushed: list[Pushed]) -> Iterator[Sample]:
    for name, client, labels, series in pushed:
        yield Sample(metric, {**dict(labels), INSTANCE: name, "client_id": client.client_id or ""}, series.value)
