"""Time, timers and threads, injected: the machine's (`SystemSchedule`) and a virtual one for deterministic runs.

Wall time (`now_ms`) is for timestamps, retention and expiry; monotonic time (`monotonic_ms`) for everything that waits.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from heapq import heappop, heappush
from typing import Any, Protocol


class Cancellable(Protocol):
    def cancel(self) -> Any: ...


class Schedule(Protocol):
    """What the broker needs of its surroundings to wait and to work elsewhere."""

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...

    def later(self, delay_ms: float, call: Callable[[], None]) -> Cancellable: ...

    def soon(self, call: Callable[[], None]) -> None:
        """At the end of this turn, before anything waits."""

    def in_thread(self, work: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        """Runs `work` elsewhere and `done` back here with its result or its exception."""


class Alarm:
    """One timer that stands for many deadlines: it rings for the earliest it was told of, and then not before it is set again."""

    def __init__(self, schedule: Schedule, ring: Callable[[], None]) -> None:
        self._schedule = schedule
        self._call = ring
        self._deadline_ms = math.inf
        self._timer: Cancellable | None = None

    def set(self, deadline_ms: int | None) -> None:
        """To ring at a monotonic time, or earlier where it is set so already."""
        if deadline_ms is None or self._deadline_ms <= deadline_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._deadline_ms = deadline_ms
        self._timer = self._schedule.later(max(0, deadline_ms - self._schedule.monotonic_ms()), self._ring)

    def _ring(self) -> None:
        self._deadline_ms, self._timer = math.inf, None
        self._call()

    def end(self) -> None:
        """It rings no more, whatever it is set to."""
        self._deadline_ms = -math.inf
        if self._timer is not None:
            self._timer.cancel()


class SystemSchedule:
    """The event loop that runs now, and two threads for calls that let the interpreter go on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="ottla-file")

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def later(self, delay_ms: float, call: Callable[[], None]) -> Cancellable:
        return self._loop.call_later(delay_ms / 1000, call)

    def soon(self, call: Callable[[], None]) -> None:
        self._loop.call_soon(call)

    def in_thread(self, work: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        def back(future: Future[Any]) -> None:
            error = future.exception()
            result = None if error else future.result()
            self._loop.call_soon_threadsafe(done, result, error)

        self._threads.submit(work).add_done_callback(back)

    def close(self) -> None:
        self._threads.shutdown(wait=True)


class _Entry:
    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class VirtualSchedule:
    """Time that moves when it is told to. Threads are calls of their own, one millisecond later."""

    THREAD_MS = 1

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = start_ms
        self._elapsed_ms = 0.0
        self._heap: list[tuple[float, int, _Entry]] = []
        self._count = 0

    def now_ms(self) -> int:
        return self._start_ms + int(self._elapsed_ms)

    def monotonic_ms(self) -> int:
        return int(self._elapsed_ms)

    def later(self, delay_ms: float, call: Callable[[], None]) -> _Entry:
        entry = _Entry(call)
        self._count += 1
        heappush(self._heap, (self._elapsed_ms + max(0.0, delay_ms), self._count, entry))
        return entry

    def soon(self, call: Callable[[], None]) -> None:
        self.later(0, call)

    def in_thread(self, work: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        def run() -> None:
            try:
                result = work()
            except Exception as error:
                done(None, error)
            else:
                done(result, None)

        self.later(self.THREAD_MS, run)

    def advance(self, by_ms: float) -> None:
        """Runs what is due within the next `by_ms`, in order."""
        until = self._elapsed_ms + by_ms
        while self._heap and self._heap[0][0] <= until:
            when, _, entry = heappop(self._heap)
            self._elapsed_ms = max(self._elapsed_ms, when)
            if entry.call is not None:
                entry.call()
        self._elapsed_ms = until
