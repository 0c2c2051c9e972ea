"""The result that a handler waits for, and the trampoline that drives handlers with several steps.

A `Later` completes once, with a result or an error. An `async def` handler awaits only `Later`s, so that it runs the
same way on an event loop and in a simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable
from functools import partial
from typing import Any, Generic, TypeVar

from ..protocol.errors import ApiError
from . import bugs

T = TypeVar("T")
E = TypeVar("E")
Steps = Coroutine["Later[Any]", None, T]
"""A coroutine that awaits only `Later`s."""


class Later(Generic[T]):
    """A result that may not be available yet."""

    __slots__ = ("_callback", "_more", "done", "error", "on_cancel", "result")

    def __init__(self) -> None:
        self.done = False
        self.result: T | None = None
        self.error: BaseException | None = None
        self.on_cancel: Callable[[], object] | None = None  # frees the resources of the wait
        self._callback: Callable[[Later[T]], None] | None = None
        self._more: list[Callable[[Later[T]], None]] | None = None

    def finish(self, result: T) -> None:
        """Completes with a result. Does nothing if it is already complete or cancelled."""
        if not self.done:
            self.result = result
            self._end()

    def fail(self, error: BaseException) -> None:
        if not self.done:
            # a reply needs no traceback, whose frames reference this object; see `_Driven` about reference cycles
            self.error = error.with_traceback(None) if isinstance(error, ApiError) else error
            self._end()

    def settle(self, result: T | None, error: BaseException | None) -> None:
        """Completes with a result, or fails if there is an error."""
        if error is not None:
            self.fail(error)
        elif not self.done:
            self.result = result
            self._end()

    def cancel(self) -> None:
        """Cancels the wait: no callback will be called."""
        if not self.done:
            self.done = True
            self._callback = self._more = None
            if self.on_cancel is not None:
                bugs.guarded("the end of a wait", self.on_cancel)

    def when_cancelled(self, call: Callable[[], object]) -> None:
        """Calls `call` if the wait is cancelled, before `on_cancel`."""
        first = self.on_cancel
        self.on_cancel = call if first is None else partial(_both, call, first)

    @staticmethod
    def all(awaited: Iterable[Later[E]]) -> Later[list[E | ApiError]]:
        """Completes once all are complete, with the result or ApiError of each, in their order; fails with the first
        error of another type.

        Cancelling it cancels those that are not complete.
        """
        waiting = list(awaited)
        if not waiting:
            return finished([])
        outcome = _All(waiting)
        for one in waiting:
            one.when_done(outcome.one_is_done)
        return outcome

    def _end(self) -> None:
        self.done = True
        callback, more = self._callback, self._more
        self._callback = self._more = None
        if callback is not None:
            try:
                callback(self)
            except Exception as error:  # a fault in the waiting code must not affect other waiters
                bugs.report("what waited for a result", error)
        for one in more or ():
            bugs.guarded("what waited for a result", one, self)

    def when_done(self, callback: Callable[[Later[T]], None]) -> None:
        """Calls `callback` with this object on completion; at once if it is complete. Exceptions of the callback are
        reported and not propagated.
        """
        if self.done:
            bugs.guarded("what waited for a result", callback, self)
        elif self._callback is None:
            self._callback = callback
        else:
            if self._more is None:
                self._more = []
            self._more.append(callback)

    def get(self) -> T:
        """Returns the result, or raises the error. The object must be complete."""
        error, result = self.error, self.result
        if error is not None:
            try:
                raise error
            finally:
                del self, error  # the error references this frame, which must not reference the error
        return result  # type: ignore[return-value]

    def __await__(self) -> Generator[Later[Any], None, T]:
        return _waited([self])


class _All(Later[list[E | ApiError]]):
    """Completes with all results of others (`Later.all`)."""

    __slots__ = ("_left", "_waiting")

    def __init__(self, waiting: list[Later[E]]) -> None:
        super().__init__()
        self._waiting = waiting
        self._left = len(waiting)

    def one_is_done(self, _: Later[E]) -> None:
        self._left -= 1
        if self._left == 0:
            waiting, self._waiting = self._waiting, []
            faults = [one.error for one in waiting if one.error is not None and not isinstance(one.error, ApiError)]
            results = [one.result if one.error is None else one.error for one in waiting]
            self.settle(results, faults[0] if faults else None)  # type: ignore[arg-type]

    def cancel(self) -> None:
        if not self.done:
            super().cancel()
            for one in self._waiting:
                one.cancel()


def _both(first: Callable[[], object], second: Callable[[], object]) -> None:
    first()
    second()


def _waited(waited: list[Later[T]]) -> Generator[Later[Any], None, T]:
    """Waits for the only element, and removes it: the frame of this generator must not reference it, as in `get`."""
    if not waited[0].done:
        yield waited[0]
    return waited.pop().get()


class _Driven(Later[T]):
    """The result of a coroutine that awaits `Later`s. It references what it waits for only during the wait, so that the
    objects of a request are freed with its reply, without the garbage collector.
    """

    __slots__ = ("_steps", "_waited")

    def __init__(self, steps: Steps[T]) -> None:
        super().__init__()
        self._steps = steps
        self._waited: Later[Any] | None = None

    def step(self, _: Later[Any] | None) -> None:
        self._waited = None
        try:
            waited = self._steps.send(None)
        except StopIteration as end:
            self.finish(end.value)
        except Exception as error:
            self.fail(error)
        else:
            self._waited = waited
            waited.when_done(self.step)

    def cancel(self) -> None:
        if not self.done:
            super().cancel()
            if self._waited is not None:
                self._waited.cancel()
            bugs.guarded("a request that ends early", self._steps.close)


class LargeReply(_Driven[T]):
    """The result of a handler whose reply may have very many parts, so that it is encoded in steps."""

    __slots__ = ()


def finished(result: T) -> Later[T]:
    """Returns a `Later` that is complete."""
    later: Later[T] = Later()
    later.finish(result)
    return later


def failed(error: BaseException) -> Later[Any]:
    """Returns a `Later` that has failed."""
    later: Later[Any] = Later()
    later.fail(error)
    return later


def after(awaited: Later[Any], make: Callable[[Later[Any]], T]) -> Later[T]:
    """Completes with what `make` returns for a result or an error; fails with what `make` raises. Cancelling it ends
    the wait.
    """
    outcome: Later[T] = Later()
    outcome.on_cancel = awaited.cancel
    awaited.when_done(partial(_made, outcome, make))
    return outcome


def _made(outcome: Later[T], make: Callable[[Later[E]], T], found: Later[E]) -> None:
    try:
        made = make(found)
    except Exception as error:
        outcome.fail(error)
    else:
        outcome.finish(made)


def drive(steps: Steps[T], kind: type[_Driven[T]] = _Driven) -> Later[T]:
    """Runs a coroutine that awaits `Later`s; its return value or exception completes the result."""
    outcome = kind(steps)
    outcome.step(None)
    return outcome


def large_reply(steps: Steps[T]) -> Later[T]:
    """As `drive`, for a handler whose reply may have very many parts."""
    return drive(steps, LargeReply)
