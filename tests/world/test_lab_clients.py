"""`/v1/clients`, and the metrics that clients push in `/metrics`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from ottla.broker.lab.exposition import render
from ottla.broker.telemetry import otlp, pushed_metrics
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.lab import LabWorld
from ..support.telemetry import CLIENT, alter, get, push
from ..support.world import World

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
RATE, SENT = "org.apache.kafka.producer.record.send.rate", "org.apache.kafka.producer.record.send.total"
NAME = "AAECAwQFBgcICQoLDA0ODw"


def attributes(**values: str) -> list[KeyValue]:
    return [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in values.items()]


def gauge(name: str, value: float, **labels: str) -> Metric:
    made = Metric(name=name)
    made.gauge.data_points.append(NumberDataPoint(as_double=value, attributes=attributes(**labels)))
    return made


def total(name: str, value: int, temporality: AggregationTemporality.ValueType = DELTA, **labels: str) -> Metric:
    point = NumberDataPoint(as_int=value, attributes=attributes(**labels))
    return Metric(name=name, sum=Sum(data_points=[point], is_monotonic=True, aggregation_temporality=temporality))


def otlp_of(*metrics: Metric, **resource: str) -> bytes:
    found = ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=metrics)])
    found.resource.attributes.extend(attributes(**resource))
    data: bytes = MetricsData(resource_metrics=[found]).SerializeToString()
    return data


@pytest.fixture
def site() -> LabWorld:
    world = World(ottla_lab_port="0")
    alter(world, "m", metrics="*", interval_ms="100")
    return LabWorld(world)


def pushed(site: LabWorld, *metrics: Metric, client: bytes = CLIENT, resource: Mapping[str, str] | None = None) -> int:
    site.world.pass_ms(100)
    wanted = get(site.world, client).subscription_id
    return push(site.world, wanted, otlp_of(*metrics, **(resource or {})), client)


def samples(site: LabWorld) -> Mapping[str, str]:
    """What /metrics has of clients, by name with labels."""
    text = b"".join(render(site.lab.server)).decode()
    lines = [line.rpartition(" ") for line in text.splitlines() if line.startswith(("org_", "client_"))]
    return {name: value for name, _, value in lines}


def series(site: LabWorld, name: str = NAME) -> dict[str, float | None]:
    return {one["name"]: one["value"] for one in site.ask(f"GET /v1/clients/{name}")["metrics"]}


def test_gauges_have_their_last_value_and_counters_the_sum_of_their_changes(site: LabWorld) -> None:
    for n in (1, 2, 3):
        assert pushed(site, gauge(RATE, n / 2, topic="t"), total(SENT, n), total("app.made", n, CUMULATIVE)) == 0
    whose = f'client_id="wire",client_instance_id="{NAME}"'
    found = samples(site)
    assert {name: value for name, value in found.items() if "made" in name or "record" in name} == {
        f'org_apache_kafka_producer_record_send_rate{{{whose},topic="t"}}': "1.5",
        f"org_apache_kafka_producer_record_send_total{{{whose}}}": "6.0",
        f"client_app_made_total{{{whose}}}": "3.0",
    }


def test_series_that_a_client_does_not_push_any_more_are_gone(site: LabWorld) -> None:
    store = site.world.broker.pushed_metrics
    assert store is not None
    assert pushed(site, gauge("a", 1, topic="old"), gauge("b", 1), total("c", 1)) == 0
    assert pushed(site, gauge("a", 2, topic="new"), total("c", 1)) == 0
    assert series(site) == {"client_a": 2.0, "client_c_total": 2.0}
    assert store.series == 2
    assert pushed(site) == 0
    assert (series(site), store.series) == ({}, 0)


def test_a_change_that_is_no_number_is_left_out(site: LabWorld) -> None:
    assert pushed(site, total("c", 1)) == 0
    wrong = total("c", 1)
    wrong.sum.data_points[0].as_double = math.nan
    assert pushed(site, wrong) == 0
    assert series(site) == {"client_c_total": 1.0}


def test_histograms_become_counts_and_sums(site: LabWorld) -> None:
    histogram = Histogram(data_points=[HistogramDataPoint(count=2, sum=5.0)], aggregation_temporality=DELTA)
    for _ in range(2):
        assert pushed(site, Metric(name="org.apache.kafka.time", histogram=histogram)) == 0
    assert series(site) == {"org_apache_kafka_time_count_total": 4.0, "org_apache_kafka_time_sum": 10.0}


def test_values_that_json_does_not_have_are_null(site: LabWorld) -> None:
    assert pushed(site, gauge("a", math.nan), gauge("b", math.inf), gauge("c", 1)) == 0
    assert series(site) == {"client_a": None, "client_b": None, "client_c": 1.0}
    assert [value for name, value in samples(site).items() if name.startswith("client_")] == ["NaN", "+Inf", "1.0"]


def test_a_name_is_a_counter_only_if_it_is_one_for_all_clients(site: LabWorld) -> None:
    assert pushed(site, total(SENT, 1)) == 0
    assert "# TYPE org_apache_kafka_producer_record_send_total counter" in exposition(site)
    assert pushed(site, gauge(SENT, 1), client=bytes([9]) * 16) == 0
    text = exposition(site)
    assert "# TYPE org_apache_kafka_producer_record_send_total gauge" in text
    assert text.count("# TYPE org_apache_kafka_producer_record_send_total") == 1


def exposition(site: LabWorld) -> str:
    return b"".join(render(site.lab.server)).decode()


def test_the_labels_of_the_resource_are_those_of_its_metrics(site: LabWorld) -> None:
    labels = {"group_id": "g", "client-rack": 'a"b\nc', "9": "x", "client_id": "forged", "": "y"}
    assert pushed(site, gauge("org.apache.kafka.a b", 1), resource=labels) == 0
    (name,) = (one for one in samples(site) if "_a_b" in one)
    assert name == (
        f'org_apache_kafka_a_b{{client_id="wire",client_instance_id="{NAME}",client_rack="a\\"b\\nc",'
        'group_id="g",label_="y",label_9="x"}'
    )


def test_what_is_not_otlp_changes_nothing(site: LabWorld) -> None:
    assert pushed(site, gauge(RATE, 1)) == 0
    for data in (b"\xff\xff\xff", b"\x0a\x05ab", otlp_of(gauge(RATE, 2))[:-1]):
        site.world.pass_ms(100)
        assert push(site.world, get(site.world).subscription_id, data) == Errors.INVALID_RECORD
    assert series(site) == {"org_apache_kafka_producer_record_send_rate": 1.0}
    (shown,) = site.ask("GET /v1/clients")["clients"]
    assert (shown["telemetry"]["pushes"], shown["telemetry"]["failed"]) == (1, 3)


def test_series_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushed_metrics, "SERIES_OF_CLIENT_MAX", 3)
    world = World(ottla_lab_port="0", ottla_client_metrics_series_max="5")
    alter(world, "m", metrics="*", interval_ms="100")
    site = LabWorld(world)
    many = [gauge(f"org.apache.kafka.m{n}", n) for n in range(9)]
    for client in (CLIENT, bytes([9]) * 16):
        assert pushed(site, *many, client=client) == 0
    assert len(series(site)) == 3
    store = world.broker.pushed_metrics
    assert store is not None
    assert (store.series, sum(len(one.series) for one in store.clients.values())) == (5, 5)
    assert world.broker.limits.counts["client-series"] == 6 + 7
    world.pass_ms(60_000)
    assert (store.series, store.clients) == (0, {})


def test_what_is_long_is_left_out_and_large_pushes_are_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    long = [gauge("n" * 300, 1), gauge("", 1), gauge("a", 1, label="x" * 3000), gauge("b", 1, **{"y" * 3000: ""})]
    assert names_in(otlp_of(*long, gauge("c", 1))) == ["client_c"]
    monkeypatch.setattr(otlp, "ELEMENTS_MAX", 8)
    assert len(names_in(otlp_of(*(gauge(f"m{n}", n) for n in range(20))))) == 3  # each is two, in two arrays
    assert not names_in(b"\x0a\x00" * 1000 + otlp_of(gauge("m", 1)))


def names_in(data: bytes) -> list[str]:
    return [one.name for one in otlp.points(data) if one is not None]


def test_a_large_push_is_read_in_steps(site: LabWorld) -> None:
    site.world.pass_ms(100)
    data = otlp_of(*(gauge(f"m{n}", n) for n in range(300)))
    request = m.PushTelemetryRequest(client_instance_id=CLIENT, metrics=data)
    request.subscription_id = get(site.world).subscription_id
    answer = site.world.send("PushTelemetry", 0, request)
    assert not answer.done
    assert 0 < len(series(site)) < 300
    site.world.pass_ms(1)
    assert answer.reply.error_code == 0
    assert len(series(site)) == 300


def test_a_client_is_shown_until_its_metrics_expire(site: LabWorld) -> None:
    assert pushed(site, gauge(RATE, 1)) == 0
    (shown,) = site.ask("GET /v1/clients")["clients"]
    assert (shown["id"], shown["connected"], shown["client_id"], shown["requests"]) == (NAME, False, "wire", {})
    telemetry: Any = shown["telemetry"]
    assert telemetry["requested_metrics"] == ["*"]
    assert (telemetry["push_interval_ms"], telemetry["pushes"], telemetry["series"]) == (100, 1, 1)
    site.world.pass_ms(60_000)
    assert site.ask("GET /v1/clients") == {"clients": [], "next": None}
    assert site.refused(f"GET /v1/clients/{NAME}") == (404, f"there is no client {NAME}")


def test_clients_come_in_pages(site: LabWorld) -> None:
    for number in range(5):
        assert pushed(site, gauge(RATE, 1), client=bytes([number + 1]) * 16) == 0
    after, names = "", []
    while True:
        page = json_of(site, f"limit=2{after}")
        names += [one["id"] for one in page["clients"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert names == sorted(names)
    assert len(names) == 5


def json_of(site: LabWorld, query: str) -> Any:
    status, found = site.reply("GET /v1/clients", query=query)
    assert status == 200
    return found
