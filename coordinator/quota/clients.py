"""Measures what clients use and how long they must wait: byte rates and request percentages (KIP-13, KIP-124), and
mutations of the metadata (KIP-599).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from .limits import Limits, Tags
from .rates import Average, Rate, TokenBucket, Windows

SENSORS_MAX = 10_000  # of one kind; the one that was not used for the longest time goes (Kafka: after an hour)
INACTIVE_MS = 3_600_000
UNLIMITED = 2.0**63  # the bound of clients without a limit: their bucket fills at once


class RateSensor:
    """What the clients with the same tags used, and how long they were throttled."""

    __slots__ = ("last_ms", "rate", "throttle")

    def __init__(self, windows: Windows) -> None:
        self.rate = Rate(windows)
        self.throttle = Average()
        self.last_ms = 0


class MutationSensor(RateSensor):
    __slots__ = ("bucket",)

    def __init__(self, windows: Windows) -> None:
        super().__init__(windows)
        self.bucket = TokenBucket(windows)


S = TypeVar("S", bound=RateSensor)


class Quota(Generic[S]):
    """One kind of quota: its limits, and the sensors of the clients that were measured."""

    def __init__(self, windows: Windows, limits: Limits, make: Callable[[Windows], S]) -> None:
        self.windows = windows
        self.limits = limits
        self._make = make
        self._sensors: dict[Tags, S] = {}  # the one used last is the last

    def sensor(self, tags: Tags, now_ms: int) -> S:
        """Returns the sensor of the clients with these tags."""
        found = self._sensors.pop(tags, None)
        if found is None:
            found = self._make(self.windows)
            if len(self._sensors) >= SENSORS_MAX:
                del self._sensors[next(iter(self._sensors))]
        self._sensors[tags] = found
        found.last_ms = now_ms
        return found

    def sensors(self, now_ms: int) -> Iterator[tuple[Tags, S]]:
        """Yields the sensors that were used within the last hour; drops the others."""
        for tags, sensor in list(self._sensors.items()):
            if now_ms - sensor.last_ms > INACTIVE_MS:
                del self._sensors[tags]
            else:
                yield tags, sensor

    def throttled(self, user: str, client_id: str, throttle_ms: int, now_ms: int) -> None:
        """Notes that a client was throttled."""
        self.sensor(self.limits.tags(user, client_id), now_ms).throttle.record(throttle_ms, now_ms)


class RateQuota(Quota[RateSensor]):
    """A quota of a rate. `throttle_ms_max`: the longest time that a client waits for it."""

    def __init__(self, windows: Windows, limits: Limits, throttle_ms_max: int | None = None) -> None:
        super().__init__(windows, limits, RateSensor)
        self._throttle_ms_max = throttle_ms_max

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Adds what a client used; returns how many ms it must wait."""
        if not self.limits.are_used:
            return 0
        tags = self.limits.tags(user, client_id)
        rate = self.sensor(tags, now_ms).rate
        rate.record(value, now_ms)
        bound = self.limits.bound(tags)
        if bound is None:
            return 0
        throttle_ms = rate.excess_ms(bound, now_ms)
        return throttle_ms if self._throttle_ms_max is None else min(throttle_ms, self._throttle_ms_max)

    def record_unchecked(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Adds what a client used, or takes it back (if it is negative), without a decision."""
        if self.limits.are_used:
            self.sensor(self.limits.tags(user, client_id), now_ms).rate.record(value, now_ms)

    def most(self, user: str, client_id: str) -> float | None:
        """Returns the greatest value after which a client need not wait if it used nothing before; None for any."""
        bound = self.limits.bound(self.limits.tags(user, client_id))
        return None if bound is None else bound * (self.windows.samples - 1) * (self.windows.size_ms // 1000)


class MutationQuota(Quota[MutationSensor]):
    """The quota of created and deleted partitions."""

    def __init__(self, windows: Windows, limits: Limits) -> None:
        super().__init__(windows, limits, MutationSensor)

    def take(self, user: str, client_id: str, count: float, now_ms: int, is_strict: bool) -> int | None:
        """Takes tokens for some partitions. Returns how many ms the client must wait; None if tokens are left.

        `is_strict`: takes no tokens while some are owed.
        """
        if not self.limits.are_used:
            return None
        tags = self.limits.tags(user, client_id)
        sensor, limit = self.sensor(tags, now_ms), self.limits.bound(tags)
        bound = UNLIMITED if limit is None else limit
        if is_strict:
            owed_ms = sensor.bucket.owed_ms(bound, now_ms)
            if owed_ms is not None:
                return owed_ms
        sensor.rate.record(count, now_ms)
        sensor.bucket.take(count, bound, now_ms)
        return None if is_strict else sensor.bucket.owed_ms(bound, now_ms)
