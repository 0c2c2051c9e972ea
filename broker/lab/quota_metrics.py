"""Metrics of quotas: what clients use, for how long they are throttled, and rates of connections, by Kafka's names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from prometheus_client.core import GaugeMetricFamily, Metric

from ...coordinator.quota.clients import MutationQuota, Quota, RateSensor
from .per_node import PerNode
from .served import Served

S = TypeVar("S", bound=RateSensor)
CLIENT = ["user", "client_id"]
RATES = {
    "Produce": ("byte_rate", "Bytes per second that clients produce."),
    "Fetch": ("byte_rate", "Bytes per second that clients fetch."),
    "Request": ("request_time", "Percentage of the loop's time that requests of clients take."),
}
THROTTLED = "Mean throttle time of clients, in ms."
SOCKETS = "kafka_server_socket_server_metrics"


def quota_metrics(server: Served) -> Iterator[Metric]:
    """Yields the metrics of clients that have quotas, and of connections."""
    now_ms, per_node = server.broker.schedule.monotonic_ms(), PerNode(server)
    for kind, (name, text) in RATES.items():
        quotas = [(getattr(broker.quotas, kind.lower()), node) for broker, node in per_node.brokers()]
        rate = per_node.gauge(f"kafka_server_{kind}_{name}", text, *CLIENT)
        yield _of_clients(rate, quotas, now_ms, lambda s: s.rate.measure(now_ms))
        throttled = per_node.gauge(f"kafka_server_{kind}_throttle_time", THROTTLED, *CLIENT)
        yield _of_clients(throttled, quotas, now_ms, lambda s: s.throttle.measure(now_ms))
    yield from _mutations(server.broker.quotas.mutations, now_ms)
    exempt = per_node.gauge(
        "kafka_server_Request_exempt_request_time",
        "Percentage of the loop's time that requests without a quota take.",
    )
    for broker, node in per_node.brokers():
        exempt.add_metric(node, broker.quotas.exempt.measure(now_ms))
    yield exempt
    yield from _connections(per_node, now_ms)


def _mutations(quota: MutationQuota, now_ms: int) -> Iterator[Metric]:
    """Yields the metrics of the controller, which measures what clients change."""
    for name, text, value in (
        ("mutation_rate", "Partitions per second that clients create and delete.", lambda s: s.rate.measure(now_ms)),
        ("tokens", "Partitions that clients may create or delete now.", lambda s: s.bucket.tokens),
        ("throttle_time", THROTTLED, lambda s: s.throttle.measure(now_ms)),
    ):
        family = GaugeMetricFamily(f"kafka_server_ControllerMutation_{name}", text, labels=CLIENT)
        yield _of_clients(family, [(quota, [])], now_ms, value)


def _of_clients(
    found: GaugeMetricFamily, quotas: Sequence[tuple[Quota[S], list[str]]], now_ms: int, value: Callable[[S], float]
) -> Metric:
    for quota, node in quotas:
        for tags, sensor in quota.sensors(now_ms):
            measured = value(sensor)
            if not math.isnan(measured):
                found.add_metric([tags.user, tags.client_id, *node], measured)
    return found


def _connections(per_node: PerNode, now_ms: int) -> Iterator[Metric]:
    of_broker = per_node.gauge(f"{SOCKETS}_broker_connection_accept_rate", "Connections per second of all listeners.")
    accepted = per_node.gauge(f"{SOCKETS}_connection_accept_rate", "Connections per second of a listener.", "listener")
    throttled = per_node.gauge(
        f"{SOCKETS}_connection_accept_throttle_time",
        "Mean time that connections beyond the rate of the broker or listener waited, in ms.",
        "listener",
    )
    refused = per_node.gauge(
        f"{SOCKETS}_ip_connection_accept_throttle_time",
        "Mean time after which connections beyond the rate of their address were closed, in ms.",
        "listener",
    )
    of_addresses = per_node.gauge(
        f"{SOCKETS}_ip_connection_accept_rate", "Connections per second of an address with a quota.", "ip"
    )
    for broker, node in per_node.brokers():
        rates = broker.connection_rates
        of_broker.add_metric(node, rates.broker.measure(now_ms))
        for name, line in rates.lines.items():
            accepted.add_metric([name, *node], line.rate.measure(now_ms))
            for family, mean in ((throttled, line.throttle), (refused, line.address_throttle)):
                measured = mean.measure(now_ms)
                if not math.isnan(measured):
                    family.add_metric([name, *node], measured)
        for address, rate in rates.addresses(now_ms):
            of_addresses.add_metric([address, *node], rate)
    yield from (of_broker, accepted, throttled, refused, of_addresses)
