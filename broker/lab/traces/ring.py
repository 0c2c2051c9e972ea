"""The last events of a trace, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

from .events import Raw
from .recording import lines, without_large

EVENTS_MAX: Final = 10_000
BYTES_MAX: Final = 8 << 20
EVENT_BYTES_MAX: Final = 256 << 10  # of an event that is kept with its message


class Ring:
    """Keeps the last blocks of events. Each event has a number, from 1."""

    def __init__(self, events_max: int = EVENTS_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._blocks: deque[tuple[int, bytes]] = deque()  # with the number of events
        self._events = self._bytes = 0
        self.last = 0

    def add(self, block: bytes, count: int, is_large: bool = False) -> None:
        """Adds a block of so many events, and forgets the oldest block while the others have enough. `is_large`:
        whether a body may have more than EVENT_BYTES_MAX.
        """
        if is_large:
            block = without_large(block, EVENT_BYTES_MAX)
        self._blocks.append((count, block))
        self.last += count
        self._events += count
        self._bytes += len(block)
        while self._blocks and (self._bytes > self._bytes_max or self._events - self._blocks[0][0] >= self._events_max):
            count, oldest = self._blocks.popleft()
            self._events -= count
            self._bytes -= len(oldest)

    def after(self, number: int, limit: int, raw: Raw) -> tuple[int, int, Iterator[bytes]]:
        """Returns the number of the first event after `number` that is kept, how many there are from there, at most
        `limit`, and their lines.
        """
        forgotten = self.last - self._events
        first = max(number, forgotten) + 1
        count = max(0, min(limit, self.last + 1 - first))
        return first, count, _lines(list(self._blocks), first - 1 - forgotten, count, raw)


def _lines(blocks: list[tuple[int, bytes]], skipped: int, count: int, raw: Raw) -> Iterator[bytes]:
    for size, block in blocks:
        if skipped >= size:
            skipped -= size
            continue
        if not count:
            return
        yield from islice(lines(block, raw), skipped, skipped + count)
        count -= min(count, size - skipped)
        skipped = 0
