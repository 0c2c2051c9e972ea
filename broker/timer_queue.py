"""Timers in the order of their deadlines; those of one deadline in the order in which they were set."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush, nsmallest

CANCELLED_MAX = 64  # timers of the heap that may be cancelled, beyond as many as are not


class Timer:
    """Something to call once. `call` is None after that, or when it is cancelled."""

    __slots__ = ("_queue", "call")

    def __init__(self, queue: TimerQueue, call: Callable[[], None]) -> None:
        self._queue = queue
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        if self.call is not None:
            self.call = None
            self._queue.note_cancelled()


class TimerQueue:
    """Timers by deadline, in milliseconds. `last`: the number of the timer that was set last."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._cancelled = 0
        self.last = 0

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def add(self, deadline_ms: float, call: Callable[[], None]) -> Timer:
        self.last += 1
        timer = Timer(self, call)
        heappush(self._heap, (deadline_ms, self.last, timer))
        return timer

    def note_cancelled(self) -> None:
        """Removes the cancelled timers if they are more than half, so that the heap is in proportion to the others."""
        self._cancelled += 1
        if self._cancelled * 2 > len(self._heap) + CANCELLED_MAX:
            self._heap = [one for one in self._heap if one[2].call is not None]
            heapify(self._heap)
            self._cancelled = 0

    def next_ms(self) -> float:
        """Returns the earliest deadline; infinity if there is none."""
        heap = self._heap
        while heap and heap[0][2].call is None:
            heappop(heap)
            self._cancelled -= 1
        return heap[0][0] if heap else math.inf

    def pop(self, until_ms: float, last: int) -> Callable[[], None] | None:
        """Removes the first timer that is due at `until_ms`, and returns what it calls; None if there is none that is
        not newer than the timer numbered `last`.
        """
        if self.next_ms() > until_ms or not self._heap or self._heap[0][1] > last:
            return None
        timer = heappop(self._heap)[2]
        call, timer.call = timer.call, None
        return call

    def first(self, count: int) -> Iterator[tuple[float, Callable[[], None]]]:
        """Yields the next `count` deadlines, with what is called then."""
        live = ((deadline_ms, number, timer.call) for deadline_ms, number, timer in self._heap if timer.call)
        for deadline_ms, _, call in nsmallest(count, live):
            yield deadline_ms, call
