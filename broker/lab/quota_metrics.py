"""Metrics of quotas: what clients use, for how long they are throttled, and rates of connections, by Kafka's names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeVar

from prometheus_client.core import GaugeMetricFamily, Metric

from ...coordinator.quota.clients import Quota, RateSensor
from .served import Served

S = TypeVar("S", bound=RateSensor)
CLIENT = ["user", "client_id"]
RATES = {
    "Produce": ("byte_rate", "Bytes per second that clients produce."),
    "Fetch": ("byte_rate", "Bytes per second that clients fetch."),
    "Request": ("request_time", "Percentage of the loop's time that requests of clients take."),
}
SOCKETS = "kafka_server_socket_server_metrics"


def quota_metrics(server: Served) -> Iterator[Metric]:
    """Yields the metrics of clients that have quotas, and of connections."""
    quotas, now_ms = server.broker.quotas, server.broker.schedule.monotonic_ms()
    for kind, quota in (("Produce", quotas.produce), ("Fetch", quotas.fetch), ("Request", quotas.request)):
        name, text = RATES[kind]
        yield _of_clients(f"kafka_server_{kind}_{name}", text, quota, now_ms, lambda s: s.rate.measure(now_ms))
        yield _throttle_times(kind, quota, now_ms)
    mutations = quotas.mutations
    yield _of_clients(
        "kafka_server_ControllerMutation_mutation_rate",
        "Partitions per second that clients create and delete.",
        mutations,
        now_ms,
        lambda s: s.rate.measure(now_ms),
    )
    yield _of_clients(
        "kafka_server_ControllerMutation_tokens",
        "Partitions that clients may create or delete now.",
        mutations,
        now_ms,
        lambda s: s.bucket.tokens,
    )
    yield _throttle_times("ControllerMutation", mutations, now_ms)
    yield GaugeMetricFamily(
        "kafka_server_Request_exempt_request_time",
        "Percentage of the loop's time that requests without a quota take.",
        value=quotas.exempt.measure(now_ms),
    )
    yield from _connections(server, now_ms)


def _of_clients(name: str, text: str, quota: Quota[S], now_ms: int, value: Callable[[S], float]) -> Metric:
    found = GaugeMetricFamily(name, text, labels=CLIENT)
    for tags, sensor in quota.sensors(now_ms):
        measured = value(sensor)
        if not math.isnan(measured):
            found.add_metric([tags.user, tags.client_id], measured)
    return found


def _throttle_times(kind: str, quota: Quota[S], now_ms: int) -> Metric:
    text = "Mean throttle time of clients, in ms."
    name = f"kafka_server_{kind}_throttle_time"
    return _of_clients(name, text, quota, now_ms, lambda s: s.throttle.measure(now_ms))


def _connections(server: Served, now_ms: int) -> Iterator[Metric]:
    rates = server.broker.connection_rates
    yield GaugeMetricFamily(
        f"{SOCKETS}_broker_connection_accept_rate",
        "Connections per second, over all listeners.",
        value=rates.broker.measure(now_ms),
    )
    accepted = GaugeMetricFamily(
        f"{SOCKETS}_connection_accept_rate", "Connections per second of a listener.", labels=["listener"]
    )
    throttled = GaugeMetricFamily(
        f"{SOCKETS}_connection_accept_throttle_time",
        "Mean time that connections beyond the rate of the broker or listener waited, in ms.",
        labels=["listener"],
    )
    refused = GaugeMetricFamily(
        f"{SOCKETS}_ip_connection_accept_throttle_time",
        "Mean time after which connections beyond the rate of their address were closed, in ms.",
        labels=["listener"],
    )
    for name, line in rates.lines.items():
        accepted.add_metric([name], line.rate.measure(now_ms))
        for family, mean in ((throttled, line.throttle), (refused, line.address_throttle)):
            measured = mean.measure(now_ms)
            if not math.isnan(measured):
                family.add_metric([name], measured)
    of_addresses = GaugeMetricFamily(
        f"{SOCKETS}_ip_connection_accept_rate", "Connections per second of an address with a quota.", labels=["ip"]
    )
    for address, rate in rates.addresses(now_ms):
        of_addresses.add_metric([address], rate)
    yield from (accepted, throttled, refused, of_addresses)
