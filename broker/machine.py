"""The machine's own time, timers and threads, which no clock of the lab changes.

Two things in a broker tell the time. What Kafka's clients can see obeys the broker's `Schedule` (`clock.py`): sessions,
deadlines, quotas, retention. What concerns the machine, the network or the lab itself obeys `MachineTime`: the lag of
the loop, TLS handshakes, the lab's connections, files of logs. The two have different methods, so that the types show
which of them a part obeys, and neither can be passed for the other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from .program import Program

T = TypeVar("T")
Done = Callable[[T | None, BaseException | None], None]

END_THREADS = 16  # that sync at shutdown, when nothing else is served


class Handle(Protocol):
    """A timer of the machine."""

    def cancel(self) -> object: ...


class MachineTime(Protocol):
    """The time, timers and threads of the machine."""

    def wall_ms(self) -> int: ...

    def uptime_ms(self) -> int:
        """Returns monotonic time."""

    def exact_uptime_ms(self) -> float: ...

    def work_ns(self) -> int: ...

    def after(self, delay_ms: float, call: Callable[[], None]) -> Handle: ...

    def at_end_of_turn(self, call: Callable[[], None]) -> object:
        """Calls at the end of this turn of the loop, before it waits."""

    def run_in_thread(self, work: Callable[[], T], done: Done[T]) -> None:
        """Runs `work` in a thread, and then `done` on the loop with its result or its exception."""

    def run_all(self, work: list[Callable[[], object]]) -> list[BaseException | None]:
        """Runs everything in `work` in threads, several at a time, and waits; returns the exception of each."""

    def start_program(
        self, module: str, arguments: Sequence[str], descriptors: Sequence[int], answers: bool = False
    ) -> Program:
        """Starts a program that works beside the broker (`program.py`), with files that are open. `answers`: whether it
        sends something. Raises OSError.
        """


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _uptime_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _exact_uptime_ms() -> float:
    return time.monotonic_ns() / 1_000_000


class Threads:
    """Threads for work of one kind. What waits for a result is called on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, count: int = 1) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._closed = False

    def run(self, work: Callable[[], T], done: Done[T]) -> None:
        """Runs `work` in a thread, after what was given before if there is one thread, and then `done` on the loop."""
        if self._closed:
            return
        try:
            self._pool.submit(work).add_done_callback(partial(self._back, done))
        except RuntimeError as error:  # no more threads can be started
            self._loop.call_soon(done, None, error)

    def _back(self, done: Done[T], future: Future[T]) -> None:
        if not future.cancelled():
            error = future.exception()
            self.post(partial(done, None if error else future.result(), error))

    def post(self, call: Callable[[], None]) -> None:
        """Calls on the loop, unless it has ended; may be used in any thread."""
        if self._closed:
            return
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            if not self._loop.is_closed():  # it is when an exception has ended the process's work without `close`
                raise

    def close(self, *, waits: bool = False) -> None:
        """Lets no more work begin, and nothing be called that waits for it. `waits`: for what has begun."""
        self._closed = True
        self._pool.shutdown(wait=waits, cancel_futures=not waits)


class Machine:
    """The running event loop, and two threads for calls that release the interpreter lock."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._threads = Threads(self._loop, "ottla-file", 2)
        self.run_in_thread = self._threads.run
        # functions and not methods: the broker reads the time several times per request
        self.wall_ms = _wall_ms
        self.uptime_ms = _uptime_ms
        self.exact_uptime_ms = _exact_uptime_ms
        self.work_ns = time.perf_counter_ns
        self.at_end_of_turn: Callable[[Callable[[], None]], object] = self._loop.call_soon

    def after(self, delay_ms: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_ms / 1000, call)

    def own_thread(self, name: str) -> Threads:
        """Returns a thread for work that would keep the others from files."""
        return Threads(self._loop, name)

    def run_all(self, work: list[Callable[[], object]]) -> list[BaseException | None]:
        with ThreadPoolExecutor(END_THREADS, thread_name_prefix="ottla-end") as threads:
            return [future.exception() for future in [threads.submit(one) for one in work]]

    def start_program(
        self, module: str, arguments: Sequence[str], descriptors: Sequence[int], answers: bool = False
    ) -> Program:
        from .program import Child  # what starts processes is seldom needed

        return Child(module, arguments, descriptors, answers)

    def close(self) -> None:
        """Waits for the threads. What waits for their results is not called any more, and no work begins.

        The loop runs a few turns more before it ends. What a timer or the end of a thread would begin in them concerns
        logs that are closed.
        """
        self._threads.close(waits=True)
