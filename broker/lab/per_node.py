"""Metrics that each node has: with several nodes they have the label `node`."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from ..broker import Broker
from .served import Served

Family = CounterMetricFamily | GaugeMetricFamily


class PerNode:
    """Adds the node to the labels of metrics."""

    def __init__(self, server: Served) -> None:
        self._broker = server.broker
        self._label = ["node"] if len(self._broker.nodes) > 1 else []

    def gauge(self, name: str, text: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(name, text, labels=[*labels, *self._label])

    def counter(self, name: str, text: str, *labels: str) -> CounterMetricFamily:
        return CounterMetricFamily(name, text, labels=[*labels, *self._label])

    def brokers(self) -> Iterator[tuple[Broker, list[str]]]:
        """Yields the broker as each node sees it, with the values of the label."""
        for broker in self._broker.views():
            yield broker, [str(broker.config.node_id)] if self._label else []
