"""Timers as data: a shard's deadlines by key, in one heap. Moving a deadline costs a dict entry; old heap entries are skipped."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any


@dataclass(slots=True)
class Timer:
    """At `deadline_ms` (monotonic), `operation` is run as a write of the shard. A deadline of None cancels the key's timer.

    `retry`: whether it is run again a moment later when its records could not be appended.
    """

    key: Hashable
    deadline_ms: int | None
    operation: Callable[[int], Any] | None = None
    retry: bool = True


class Timers:
    """The timers of one shard."""

    def __init__(self) -> None:
        self._live: dict[Hashable, Timer] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, key: object) -> bool:
        return key in self._live

    def set(self, timer: Timer) -> None:
        """Replaces the key's timer."""
        if timer.deadline_ms is None:
            self._live.pop(timer.key, None)
            return
        before = self._live.get(timer.key)
        self._live[timer.key] = timer
        if before is None or before.deadline_ms is None or timer.deadline_ms < before.deadline_ms:
            self._push(timer)

    def _push(self, timer: Timer) -> None:
        assert timer.deadline_ms is not None
        self._count += 1
        heappush(self._heap, (timer.deadline_ms, self._count, timer.key))

    def next_deadline_ms(self) -> int | None:
        """When to call `due` next; it may find nothing then."""
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> list[Timer]:
        """Takes out the timers whose time has come, earliest first."""
        found = []
        while self._heap and self._heap[0][0] <= now_ms:
            _, _, key = heappop(self._heap)
            timer = self._live.get(key)
            if timer is None or timer.deadline_ms is None:
                continue
            if timer.deadline_ms > now_ms:
                self._push(timer)
                continue
            del self._live[key]
            found.append(timer)
        return found

    def clear(self) -> None:
        self._live.clear()
        self._heap.clear()
