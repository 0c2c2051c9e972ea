"""Bounds how often secrets may be guessed: who was wrong too often in the last minute has to wait.

The wrong secrets of a guesser fill a bucket that empties at an even rate, once within a minute. A full bucket refuses
every secret, the right one too, because an answer would say which one that is. Guessers are remembered by a digest, as
names may be long, and those of longest ago are forgotten beyond `REMEMBERED_MAX`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

WINDOW_MS: Final = 60_000
REMEMBERED_MAX: Final = 10_000
ADDRESS_FACTOR: Final = 4
"""How many times as often as one client may be wrong, all clients of one address may."""


class Guesses:
    """`most`: how often a client of an address may be wrong within a minute. `now_ms`: returns monotonic time, which
    no clock of the lab changes.
    """

    def __init__(self, most: int, now_ms: Callable[[], int]) -> None:
        self._most = most
        self._now_ms = now_ms
        self._levels: dict[bytes, tuple[float, int]] = {}  # of buckets, and when they had that, the latest last

    def wait_ms(self, address: str, name: str) -> int:
        """Returns after how long another secret of a client is looked at; 0 if it is now."""
        return max(self._over_ms(bucket, most) for bucket, most in self._buckets(address, name))

    def wrong(self, address: str, name: str) -> None:
        """Notes that a client of this name had a wrong secret, or that there is no such client."""
        now = self._now_ms()
        for bucket, most in self._buckets(address, name):
            level = self._level(bucket, most, now) + 1
            self._levels.pop(bucket, None)
            self._levels[bucket] = level, now
        while len(self._levels) > REMEMBERED_MAX:
            del self._levels[next(iter(self._levels))]

    def _buckets(self, address: str, name: str) -> tuple[tuple[bytes, int], ...]:
        """Returns the buckets of a client and of its address, with what each holds."""
        client = blake2b(f"{address}\0{name}".encode("utf-8", "replace"), digest_size=16).digest()
        return (client, self._most), (address.encode(), self._most * ADDRESS_FACTOR)

    def _level(self, bucket: bytes, most: int, now: int) -> float:
        level, at = self._levels.get(bucket, (0.0, now))
        return max(0.0, level - (now - at) * most / WINDOW_MS)

    def _over_ms(self, bucket: bytes, most: int) -> int:
        over = self._level(bucket, most, self._now_ms()) - (most - 1)
        return math.ceil(over * WINDOW_MS / most) if over > 0 else 0
