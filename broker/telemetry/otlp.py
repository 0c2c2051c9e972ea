"""Reads the metrics that clients push: MetricsData of OpenTelemetry's protocol (OTLP), as Prometheus names them.

Java's clients push gauges and sums; histograms and summaries become their counts and sums. Imported when the first
client is asked for metrics, because the library takes a tenth of a second to import.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, MetricsData, NumberDataPoint

from ...protocol.errors import MalformedMessage

ELEMENTS_MAX = 20_000  # of a push that are looked at: values, and arrays of metrics
NAME_CHARACTERS_MAX = 256
LABELS_CHARACTERS_MAX = 2048
KAFKA = "org_apache_kafka_"
OTHERS = "client_"  # before the names of other metrics, so that none has the name of one of the broker
_OUTSIDE = re.compile(r"[^a-zA-Z0-9_]")
Labels = tuple[tuple[str, str], ...]
"""Names and values, by name."""


class Point(NamedTuple):
    """A value. `is_delta`: it is the change since the last push. `is_counter`: it never becomes less."""

    name: str
    labels: Labels
    value: float
    is_delta: bool = False
    is_counter: bool = False


def points(data: bytes) -> Iterator[Point | None]:
    """Returns the values of a push, without those whose names are too long, and None for each array that they are in.
    Raises MalformedMessage for data that is not OTLP.
    """
    parsed = MetricsData()
    try:
        parsed.ParseFromString(data)
    except DecodeError as error:
        raise MalformedMessage("metrics", str(error)) from None
    return islice(_points(parsed), ELEMENTS_MAX)


def _points(parsed: MetricsData) -> Iterator[Point | None]:
    for resource in parsed.resource_metrics:
        of_resource = _texts(resource.resource.attributes)
        yield None
        for scope in resource.scope_metrics:
            yield None
            for metric in scope.metrics:
                yield None
                name = exposed(metric.name)
                if name:
                    yield from _of_metric(metric, name, of_resource)


def _of_metric(metric: Metric, name: str, outer: dict[str, str]) -> Iterator[Point | None]:
    kind = metric.WhichOneof("data")
    if kind == "gauge":
        for number in metric.gauge.data_points:
            labels = _labels(number.attributes, outer)
            yield None if labels is None else Point(name, labels, _value(number))
    elif kind == "sum":
        total, is_counter = metric.sum, metric.sum.is_monotonic
        name = _total(name) if is_counter else name
        for number in total.data_points:
            labels = _labels(number.attributes, outer)
            is_delta = _is_delta(total.aggregation_temporality)
            yield None if labels is None else Point(name, labels, _value(number), is_delta, is_counter)
    elif kind in ("histogram", "exponential_histogram", "summary"):
        many = getattr(metric, kind)
        is_delta = kind != "summary" and _is_delta(many.aggregation_temporality)
        for one in many.data_points:
            labels = _labels(one.attributes, outer)
            yield None if labels is None else Point(_total(f"{name}_count"), labels, float(one.count), is_delta, True)
            yield None if labels is None else Point(f"{name}_sum", labels, one.sum, is_delta)


def _is_delta(temporality: int) -> bool:
    return temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA


def _value(number: NumberDataPoint) -> float:
    return float(number.as_int) if number.WhichOneof("value") == "as_int" else number.as_double


def exposed(name: str) -> str:
    """Returns the name of a metric in Prometheus; none if it is too long or empty."""
    if not 0 < len(name) <= NAME_CHARACTERS_MAX:
        return ""
    found = _OUTSIDE.sub("_", name)
    return found if found.startswith(KAFKA) else OTHERS + found


def _total(name: str) -> str:
    return name if name.endswith("_total") else f"{name}_total"


def _labels(own: Iterable[KeyValue], outer: dict[str, str]) -> Labels | None:
    """Returns the labels of a value, with those of its resource; None if they are too long."""
    found = {**outer, **_texts(own)}
    if sum(len(name) + len(value) for name, value in found.items()) > LABELS_CHARACTERS_MAX:
        return None
    return tuple(sorted(found.items()))


def _texts(attributes: Iterable[KeyValue]) -> dict[str, str]:
    """Returns attributes as labels, up to the length that those of a value may have."""
    found: dict[str, str] = {}
    room = LABELS_CHARACTERS_MAX
    for one in attributes:
        kind = one.value.WhichOneof("value")
        value = str(getattr(one.value, kind)) if kind in ("string_value", "bool_value", "int_value") else ""
        found[_label(one.key)] = value
        room -= len(one.key) + len(value) + 1
        if room < 0:
            break
    return found


def _label(key: str) -> str:
    name = _OUTSIDE.sub("_", key)
    return name if name[:1].isalpha() else f"label_{name}"
