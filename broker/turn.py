"""The turn: the order of all effects.

An input event (a frame, a timer, the end of an fsync) is handled completely, and then `settle` carries out its
consequences: it appends the writes of coordinators and advances the high watermarks that follow, partition by
partition, until nothing is left. So a reply is parked before anything can release it, and no code is re-entered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol, TypeVar

from ..protocol.errors import ApiError, Errors
from . import bugs
from .clock import Cancellable, Schedule
from .later import Later, drive
from .rounds import Due, Round

T = TypeVar("T")
RETRY_MS = 100  # until failed work is tried again


class Movable(Protocol):
    """Something whose high watermark may advance: a partition."""

    @property
    def name(self) -> str: ...


class Writes(Protocol):
    """Something that collects writes during an event and appends them at its end: a coordinator shard, the controller,
    the dead-letter queues.
    """

    def flush(self) -> None: ...


def _nothing(_: object) -> None:
    """Placeholder until the wiring is complete."""


class Turn:
    """The events of one broker. `move`, `io_error` and `fatal` are set by the wiring before the first event.

    `move` advances the high watermark of a partition; `io_error` handles an OSError of an event; `fatal` ends the
    process, with a reason.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.stopped = False
        self.move: Callable[[Any], None] = _nothing
        self.io_error: Callable[[OSError], object] = _nothing
        self.fatal: Callable[[str], None] = _nothing
        self._moves: dict[Movable, None] = {}
        self._unflushed: dict[Writes, None] = {}  # those with writes of this event
        self.resting: dict[Round, None] = {}  # until something happens
        self._settling = self._settles_soon = False
        self._steps: deque[Later[None]] = deque()  # of long requests, which wait for a turn of the loop
        self._steps_soon = False

    def now_ms(self) -> int:
        """Returns the wall time. Use it where a function is wanted: those of the schedule change with its clock."""
        return self.schedule.now_ms()

    # consequences of an event

    def moved(self, partition: Movable) -> None:
        """Notes that a partition's log end, or its replicated offset, may have changed."""
        self._moves[partition] = None

    def wrote(self, writes: Writes) -> None:
        """Notes that there are writes to append when the event ends."""
        self._unflushed[writes] = None

    def settle(self) -> None:
        """Carries out the consequences of the event. Every input event ends with it, or with `settle_soon`."""
        if self.resting:
            self.wake()
        if self._settling:
            return
        self._settling = True
        try:
            while self._moves or self._unflushed:
                while self._unflushed:
                    writes = next(iter(self._unflushed))
                    del self._unflushed[writes]
                    try:
                        writes.flush()
                    except Exception as error:
                        bugs.report("a flush", error)
                        self.later(RETRY_MS, partial(self.wrote, writes))
                self._move_all()
        finally:
            self._settling = False

    def settle_moves(self) -> None:
        """Advances high watermarks now; leaves the writes to coordinator shards for later."""
        if self._moves and not self._settling:
            self._settling = True
            try:
                self._move_all()
            finally:
                self._settling = False

    def settle_soon(self) -> None:
        """Like `settle`, but flushes coordinator writes at the end of the loop turn, so that requests that arrived
        together share one batch.
        """
        if self.resting:
            self.wake()
        self.settle_moves()
        if self._unflushed and not self._settles_soon:
            self._settles_soon = True
            self.schedule.soon(self._settle_turn)

    def _settle_turn(self) -> None:
        self._settles_soon = False
        self.settle()

    def _move_all(self) -> None:
        while self._moves:
            partition = next(iter(self._moves))
            del self._moves[partition]
            try:
                self.move(partition)
            except Exception as error:
                bugs.report(f"moving the high watermark of {partition.name}", error)
                self.later(RETRY_MS, partial(self.moved, partition))

    # events

    def event(self, call: Callable[[], object]) -> None:
        """Runs `call` as an input event. Reports an exception;
        the earlier consequences of the event are still carried out.
        """
        try:
            call()
        except OSError as error:
            self.io_error(error)
        except Exception as error:
            bugs.report("an event", error)
        self.settle()

    def later(self, ms: float, call: Callable[[], object]) -> Cancellable:
        """Runs `call` as an input event after `ms` milliseconds."""
        return self.schedule.later(ms, partial(self.event, call))

    def soon(self, call: Callable[[], object]) -> None:
        """Runs `call` as an input event at the end of this turn of the loop."""
        self.schedule.soon(partial(self.event, call))

    def every(
        self,
        interval_ms: Callable[[], float],
        call: Callable[[], object],
        first_ms: float | None = None,
        due_ms: Callable[[], Due] | None = None,
    ) -> None:
        """Runs `call` as an input event at intervals until the broker stops, even if it fails. `first_ms`: the delay of
        the first call. `due_ms`: when there is something to do, if nothing happens before (`rounds.py`).
        """
        Round(self, interval_ms, call, due_ms).begin(interval_ms() if first_ms is None else first_ms)

    def wake(self) -> None:
        """Something has happened: the rounds that rest look again whether they have something to do."""
        resting, self.resting = self.resting, {}
        for one in resting:
            one.wake()

    def in_thread(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """Runs `work` in a thread, and `done` with its result or its exception as an input event."""
        self.schedule.in_thread(work, lambda result, error: self.event(lambda: done(result, error)))

    def background(self, steps: Coroutine[Later[Any], None, None]) -> None:
        """Runs a coroutine whose result nothing waits for; an exception in it is counted as a bug."""

        def done(finished: Later[None]) -> None:
            if isinstance(finished.error, OSError):
                self.io_error(finished.error)
            elif finished.error is not None:
                bugs.report(f"{steps}", finished.error)

        drive(steps).when_done(done)

    # waits

    def next(self) -> Later[None]:
        """Completes in a later turn of the loop, as an input event,
        so that input that has arrived meanwhile is handled first.

        One request continues per turn of the loop, so that many long requests take no more time of a turn than one.
        """
        later: Later[None] = Later()
        self._steps.append(later)
        self._step_soon()
        return later

    @property
    def has_steps(self) -> bool:
        """Whether a long request waits for its next step."""
        return bool(self._steps)

    def _step_soon(self) -> None:
        if self._steps and not self._steps_soon:
            self._steps_soon = True
            self.schedule.soon(self._next_step)

    def _next_step(self) -> None:
        self._steps_soon = False
        while self._steps:
            later = self._steps.popleft()
            if not later.done:  # it was cancelled
                self._step_soon()
                return self.event(partial(later.finish, None))

    def pause(self, ms: float) -> Later[None]:
        """Completes after `ms` milliseconds, as an input event."""
        later: Later[None] = Later()
        timer = self.later(ms, lambda: later.finish(None))
        later.on_cancel = timer.cancel
        return later

    def within(self, ms: float, awaited: Later[T]) -> Later[T]:
        """Completes with `awaited`; fails with REQUEST_TIMED_OUT if that takes too long.

        `awaited` is cancelled then, or when the returned object is.
        """
        if awaited.done:
            return awaited
        later: Later[T] = Later()

        def late() -> None:
            awaited.cancel()
            later.fail(ApiError(Errors.REQUEST_TIMED_OUT))

        def done(found: Later[T]) -> None:
            timer.cancel()
            later.settle(found.result, found.error)

        def cancel() -> None:
            timer.cancel()
            awaited.cancel()

        timer = self.later(ms, late)
        awaited.when_done(done)
        later.on_cancel = cancel
        return later
