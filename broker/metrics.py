"""The broker's counters as plain numbers; `lab/exposition.py` adds names and types when metrics are read."""

from __future__ import annotations

from collections import Counter

from . import bugs


class ApiTimes:
    """Requests of one API: their number, and nanoseconds by phase."""

    __slots__ = ("count", "handle_ns", "park_ns", "parked", "parse_ns", "send_ns")

    def __init__(self) -> None:
        self.count = self.parked = 0
        self.parse_ns = self.handle_ns = self.park_ns = self.send_ns = 0


class _Apis(dict[tuple[int, int], ApiTimes]):
    """Times by API key and version; those of a pair that is missing are made."""

    def __missing__(self, key: tuple[int, int]) -> ApiTimes:
        made = self[key] = ApiTimes()
        return made


class Summary:
    """Measured values: their number, sum and maximum."""

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
        self.apis = _Apis()
        self.errors: Counter[tuple[int, int]] = Counter()  # (API key, error code)
        self.connections_opened = 0
        self.connections_closed = 0
        self.connections_refused = 0  # because of a limit
        self.io_errors = 0  # that did not take a log directory offline
        # ends of TLS handshakes, SASL exchanges and sessions, by listener and what Kafka's sensor is called
        self.authentications: Counter[tuple[str, str]] = Counter()
        self.reauthentication_ms: dict[str, Summary] = {}  # how long exchanges took in sessions, by listener
        self.bytes_in = 0
        self.bytes_out = 0
        self.malformed = 0
        self._bugs_before = bugs.count()
        self.fsyncs = 0
        self.fsync_ns = 0
        self.cleanings = 0
        self.cleaning_ns = 0
        self.loop_lag_ms_max = 0.0

    def authenticated(self, listener: str, can_again: bool) -> None:
        """Notes that a client has authenticated. `can_again`: whether it can do so again in the session (KIP-368)."""
        self.authentications[listener, "successful_authentication"] += 1
        if not can_again:
            self.authentications[listener, "successful_authentication_no_reauth"] += 1

    def authenticated_again(self, listener: str, took_ms: float) -> None:
        self.authentications[listener, "successful_reauthentication"] += 1
        self.reauthentication_ms.setdefault(listener, Summary()).add(took_ms)

    @property
    def bugs(self) -> int:
        """The number of unexpected exceptions."""
        return bugs.count() - self._bugs_before
