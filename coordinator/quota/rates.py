"""Rates over sampled windows, and token buckets, with the arithmetic of Kafka's metrics, from which the throttle times
follow. The order of the operations is Kafka's too: times are rounded to whole ms.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Windows(NamedTuple):
    """How a rate is sampled: `quota.window.num` samples of `quota.window.size.seconds`."""

    samples: int
    size_ms: int


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.begin(now_ms)

    def begin(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """The sum of recorded values per second (`Rate` over a `WindowedSum`).

    There is one sample more than `windows.samples`: the oldest counts as long as it overlaps with the time measured.
    """

    __slots__ = ("_current", "_samples", "windows")

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Adds a value at a time; a negative value takes an earlier one back."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self.windows.size_ms:
            sample = self._next(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _next(self, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (self.windows.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].begin(now_ms)
        return self._samples[self._current]

    def measure(self, now_ms: int) -> float:
        """Returns the rate per second at a time."""
        length_ms = self.length_ms(now_ms)  # forgets samples that are too old
        return sum(sample.value for sample in self._samples) / (length_ms / 1000)

    def length_ms(self, now_ms: int) -> int:
        """Returns the time over which the rate is measured: since the oldest sample, and at least all whole windows."""
        samples, size_ms = self.windows
        for sample in self._samples:
            if now_ms - sample.last_ms >= samples * size_ms:
                sample.begin(now_ms)
        elapsed_ms = now_ms - min((sample.start_ms for sample in self._samples), default=now_ms)
        missing = samples - 1 - elapsed_ms // size_ms
        return max(elapsed_ms + max(missing, 0) * size_ms, 1)

    def excess_ms(self, bound: float, now_ms: int) -> int:
        """Returns after how many ms without further values the rate is `bound`; 0 if it is not above it (KIP-13)."""
        rate = self.measure(now_ms)
        return rounded_ms((rate - bound) / bound * self.length_ms(now_ms)) if rate > bound else 0


class TokenBucket:
    """Tokens that come at a rate, up to as many as come in all windows together (KIP-599)."""

    __slots__ = ("_last_ms", "tokens", "windows")

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.tokens = math.inf  # full, whatever the bound is
        self._last_ms = 0

    def measure(self, bound: float, now_ms: int) -> float:
        """Returns the tokens at a time; less than 0 if more were taken than there were. `bound`: tokens per second."""
        windows = self.windows
        burst = windows.samples * (windows.size_ms / 1000) * bound
        self.tokens = min(burst, self.tokens + bound * ((now_ms - self._last_ms) / 1000))
        self._last_ms = now_ms
        return self.tokens

    def take(self, count: float, bound: float, now_ms: int) -> None:
        self.tokens = self.measure(bound, now_ms) - count

    def owed_ms(self, bound: float, now_ms: int) -> int | None:
        """Returns after how many ms no token is owed any more; None if none is."""
        tokens = self.measure(bound, now_ms)
        return rounded_ms(-tokens / bound * 1000) if tokens < 0 else None


class Average:
    """The mean of the values of the last minute (Kafka's `Avg` with its default of two samples of 30 s)."""

    __slots__ = ("_count", "_sum")

    def __init__(self) -> None:
        self._sum, self._count = Rate(DEFAULT_WINDOWS), Rate(DEFAULT_WINDOWS)

    def record(self, value: float, now_ms: int) -> None:
        self._sum.record(value, now_ms)
        self._count.record(1, now_ms)

    def measure(self, now_ms: int) -> float:
        """Returns the mean; NaN if there was no value."""
        count = self._count.measure(now_ms)
        return self._sum.measure(now_ms) / count if count else math.nan


DEFAULT_WINDOWS = Windows(2, 30_000)
THROTTLE_MS_MAX = 2**31 - 1


def rounded_ms(value: float) -> int:
    """Returns a throttle time as Java rounds it, within an int32. A quota of NaN throttles no client."""
    return 0 if math.isnan(value) else math.floor(min(value, THROTTLE_MS_MAX) + 0.5)
