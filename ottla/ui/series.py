"""Time series from the text of /metrics."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

KEPT = 300  # points of a series


class Sample(NamedTuple):
    name: str
    labels: Mapping[str, str]
    value: float


def parse(text: str) -> list[Sample]:
    """The samples of a text in Prometheus' format. Raises ValueError."""
    return [
        Sample(one.name, one.labels, one.value)
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if math.isfinite(one.value)
    ]


class Series:
    """The points of the samples with one name, summed by a label. `is_rate`: of counters, what they grew by in a
    second. `most`: how many series are shown, those with the largest values.
    """

    def __init__(self, name: str, is_rate: bool, label: str, most: int) -> None:
        self._name, self._is_rate, self._label, self._most = name, is_rate, label, most
        self._points: dict[str, deque[list[float]]] = {}
        self._last: tuple[float, dict[str, float]] | None = None

    def add(self, at_ms: float, samples: Iterable[Sample]) -> None:
        """A point for each series. A counter that fell began again."""
        sums: dict[str, float] = {}
        for one in samples:
            if one.name == self._name:
                label = one.labels.get(self._label, "") if self._label else ""
                sums[label] = sums.get(label, 0.0) + one.value
        before, self._last = self._last, (at_ms, sums)
        if self._is_rate:
            if before is None or at_ms <= before[0]:
                return
            seconds = (at_ms - before[0]) / 1000
            sums = {label: max(0.0, value - before[1].get(label, 0.0)) / seconds for label, value in sums.items()}
        for label, value in sums.items():
            self._points.setdefault(label, deque(maxlen=KEPT)).append([at_ms, value])

    def points(self) -> dict[str, list[list[float]]]:
        """The largest series by label."""
        largest = sorted(self._points, key=lambda label: -max(value for _, value in self._points[label]))
        return {label or "all": list(self._points[label]) for label in largest[: self._most]}
