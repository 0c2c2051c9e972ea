"""What the broker counts, cheaply: plain numbers here, names and types when somebody asks (`lab.py`)."""

from __future__ import annotations

from collections import Counter


class ApiTimes:
    """Requests of one API: how many, and nanoseconds by phase."""

    __slots__ = ("count", "handle_ns", "park_ns", "parked", "parse_ns", "send_ns")

    def __init__(self) -> None:
        self.count = self.parked = 0
        self.parse_ns = self.handle_ns = self.park_ns = self.send_ns = 0


class Summary:
    """Values that were measured: how many, their sum and the largest."""

    __slots__ = ("count", "most", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = self.most = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.most = max(self.most, value)

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


class Metrics:
    def __init__(self) -> None:
        self.apis: dict[tuple[int, int], ApiTimes] = {}
        self.errors: Counter[tuple[int, int]] = Counter()  # (API key, error code)
        self.connections_opened = 0
        self.connections_closed = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.malformed = 0
        self.bugs = 0
        self.fsyncs = 0
        self.fsync_ns = 0
        self.cleanings = 0
        self.cleaning_ns = 0
        self.loop_lag_ms_max = 0.0

    def api(self, key: int, version: int) -> ApiTimes:
        found = self.apis.get((key, version))
        if found is None:
            found = self.apis[key, version] = ApiTimes()
        return found
