"""Metrics of clients (KIP-714): pushes that are large, deep or compressed beyond measure; clients without number."""

from __future__ import annotations

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from ottla.broker.telemetry.client_metrics_manager import INSTANCES_MAX
from ottla.protocol import compression
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import lab_text
from ..support.wire import Wire
from .harness import Site, attack
from .limits import reached

BYTES_MAX = 1 << 20
EMPTY = b"\x0a\x00" * (BYTES_MAX // 2)  # ResourceMetrics without anything


def push(wire: Wire, client: int, data: bytes, codec: int = 0) -> int:
    """Pushes metrics of a new client; returns the error code."""
    instance_id = client.to_bytes(16, "big")
    asked = m.GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
    wanted = wire.ask("GetTelemetrySubscriptions", 0, asked).subscription_id
    request = m.PushTelemetryRequest(client_instance_id=instance_id, subscription_id=wanted)
    request.compression_type, request.metrics = codec, data
    return int(wire.ask("PushTelemetry", 0, request).error_code)


def points(count: int, label: str = "") -> bytes:
    """A push with so many time series of one metric."""
    made = [
        NumberDataPoint(
            as_double=n,
            attributes=[
                KeyValue(key="n", value=AnyValue(string_value=f"{n}")),
                KeyValue(key="label", value=AnyValue(string_value=label)),
            ],
        )
        for n in range(count)
    ]
    metric = Metric(name="org.apache.kafka.attack", gauge=Gauge(data_points=made))
    found = MetricsData(resource_metrics=[ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=[metric])])])
    data: bytes = found.SerializeToString()
    return data


def nested(depth: int) -> bytes:
    value = AnyValue(string_value="x")
    for _ in range(depth):
        outer = AnyValue()
        outer.array_value.values.append(value)
        value = outer
    found = ResourceMetrics()
    found.resource.attributes.append(KeyValue(key="k", value=value))
    data: bytes = MetricsData(resource_metrics=[found]).SerializeToString()
    return data


@attack(lab=True, quick=True)
def pushes_that_are_hard_to_read(site: Site) -> None:
    """As much as a push may have: of empty elements, of values, nested, and many times that when it is decompressed."""
    with site.wire() as wire:
        assert push(wire, 2, EMPTY) == 0
        assert push(wire, 3, EMPTY + EMPTY[:2]) == Errors.TELEMETRY_TOO_LARGE
        assert push(wire, 4, points(20_000)) == 0
        assert push(wire, 5, points(400, "x" * 2000)) == 0
        assert push(wire, 6, nested(40)) == 0
        for codec in range(1, 5):
            assert push(wire, 10 + codec, compression.compress(codec, EMPTY), codec) == 0
            bomb = compression.compress(codec, bytes(16 << 20))
            assert push(wire, 20 + codec, bomb, codec) == Errors.INVALID_RECORD
    assert len(lab_text(site.broker, "/metrics")) > 400 * 2000


@attack(lab=True, quick=True, memory_mib_max=250)
def time_series_without_number(site: Site) -> None:
    """Of many clients: new series are not kept, and those that are there can be read."""
    data = points(5000, "x" * 150)
    with site.wire() as wire:
        for client in range(2, 12):
            assert push(wire, client, data) == 0
    assert reached(site, "client-series") == 6 * 5000
    assert lab_text(site.broker, "/metrics").count("\norg_apache_kafka_attack{") == 20_000


@attack(lab=True, quick=True)
def clients_without_number(site: Site) -> None:
    """Each request comes from a new client: the one that was silent for longest is forgotten."""
    with site.wire() as wire:
        for _ in range(INSTANCES_MAX + 100):
            assert wire.ask("GetTelemetrySubscriptions", 0, m.GetTelemetrySubscriptionsRequest()).error_code == 0
    assert reached(site, "client-instances") == 100
