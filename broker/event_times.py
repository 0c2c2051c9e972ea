"""Durations of coordinator events, with the names of Kafka's CoordinatorRuntimeMetrics, and rates of their counters.

An event is a write of a shard. It has no queue: it is processed when its request is read. Its reply is in purgatory
until the high watermark has passed its records. A batch lingers from its first write to the end of the turn; then it is
appended, which is a flush.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping

WINDOW_MS = 60_000  # Kafka's default: metrics.num.samples times metrics.sample.window.ms
BUCKETS = 64
MICROSECONDS = 1000.0


class Times:
    """A histogram of durations in microseconds, with a bucket per power of two:
    adding a value costs one index operation.
    """

    __slots__ = ("buckets", "most")

    def __init__(self) -> None:
        self.buckets = [0] * BUCKETS
        self.most = 0

    def add(self, microseconds: int) -> None:
        self.buckets[microseconds.bit_length()] += 1
        if microseconds > self.most:  # noqa: PLR1730  # this runs for every write, and `max` is a call
            self.most = microseconds

    @property
    def count(self) -> int:
        return sum(self.buckets)

    def quantile_ms(self, share: float) -> float:
        """Returns a quantile in milliseconds, overestimated by a factor of at most two."""
        wanted, seen = share * self.count, 0
        for bits, count in enumerate(self.buckets):
            seen += count
            if count and seen >= wanted:
                return min((1 << bits) - 1, self.most) / MICROSECONDS
        return 0.0


def merged(all_times: Iterable[Times]) -> Times:
    """Several histograms as one."""
    found = Times()
    for one in all_times:
        found.buckets = [a + b for a, b in zip(found.buckets, one.buckets, strict=True)]
        found.most = max(found.most, one.most)
    return found


class Event:
    """The writes of one name: how long they took, how long their replies waited,
    and how many of them ended in an error.
    """

    __slots__ = ("errors", "processing", "purgatory")

    def __init__(self) -> None:
        self.processing = Times()
        self.purgatory = Times()
        self.errors = 0

    def ended(self, waited_ms: int, is_error: bool) -> None:
        """A write was answered, which waited for so long."""
        if waited_ms:
            self.purgatory.add(waited_ms * 1000)
        else:
            self.purgatory.buckets[0] += 1
        if is_error:
            self.errors += 1


class _Events(dict[str, Event]):
    """Events by the name of the write; one that is missing is made."""

    def __missing__(self, name: str) -> Event:
        made = self[name] = Event()
        return made


class EventTimes:
    """The durations of one family of coordinators."""

    __slots__ = ("batch_flush", "batch_linger", "events")

    def __init__(self) -> None:
        self.events = _Events()
        self.batch_linger = Times()
        self.batch_flush = Times()

    @property
    def processing(self) -> Times:
        return merged(event.processing for event in self.events.values())

    @property
    def purgatory(self) -> Times:
        return merged(event.purgatory for event in self.events.values())


class Rates:
    """Rates per second of counters over the last minute, computed from the times of the calls."""

    def __init__(self, now_ms: int) -> None:
        self._seen: deque[tuple[int, Mapping[str, int]]] = deque([(now_ms, {})])

    def of(self, counts: Counter[str], now_ms: int) -> dict[str, float]:
        """Returns the current rates of all counters."""
        while len(self._seen) > 1 and self._seen[1][0] <= now_ms - WINDOW_MS:
            self._seen.popleft()
        since_ms, before = self._seen[0]
        self._seen.append((now_ms, dict(counts)))
        seconds = max(now_ms - since_ms, 1) / 1000
        return {name: (count - before.get(name, 0)) / seconds for name, count in counts.items()}
