"""What a handler waits for, and the small trampoline that drives handlers of several steps.

A `Later` is finished once, with a result or an error. An `async def` handler awaits nothing but `Later`s, so that it runs the
same under an event loop and in a simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from ..protocol.errors import ApiError

T = TypeVar("T")


class Later(Generic[T]):
    """A value that is not there yet."""

    __slots__ = ("_callback", "_more", "done", "error", "on_cancel", "result")

    def __init__(self) -> None:
        self.done = False
        self.result: T | None = None
        self.error: BaseException | None = None
        self.on_cancel: Callable[[], None] | None = None  # frees what the wait holds
        self._callback: Callable[[Later[T]], None] | None = None
        self._more: list[Callable[[Later[T]], None]] | None = None

    def finish(self, result: T) -> None:
        """The value is there. Does nothing when it was finished or cancelled before."""
        if not self.done:
            self.result = result
            self._end()

    def fail(self, error: BaseException) -> None:
        if not self.done:
            # an answer needs no traceback, whose frames know this object; what a request made goes with its reply, see `_Driven`
            self.error = error.with_traceback(None) if isinstance(error, ApiError) else error
            self._end()

    def settle(self, result: T, error: BaseException | None) -> None:
        """Finished with a result, or failed where there is an error."""
        if error is None:
            self.finish(result)
        else:
            self.fail(error)

    def cancel(self) -> None:
        """Nobody waits any more: no callback will be called."""
        if not self.done:
            self.done = True
            self._callback = self._more = None
            if self.on_cancel is not None:
                self.on_cancel()

    def _end(self) -> None:
        self.done = True
        callback, more = self._callback, self._more
        self._callback = self._more = None
        if callback is not None:
            callback(self)
        for one in more or ():
            one(self)

    def when_done(self, callback: Callable[[Later[T]], None]) -> None:
        """Calls `callback` with this object once it is finished; at once when it is."""
        if self.done:
            callback(self)
        elif self._callback is None:
            self._callback = callback
        else:
            self._more = [*(self._more or ()), callback]

    def get(self) -> T:
        """The result of a finished one; its error is raised."""
        error, result = self.error, self.result
        if error is not None:
            try:
                raise error
            finally:
                del self, error  # the error knows this frame, which must not know the error
        return result  # type: ignore[return-value]

    def __await__(self) -> Generator[Later[Any], None, T]:
        if not self.done:
            yield self
        try:
            return self.get()
        finally:
            del self  # as in `get`


class _Driven(Later[T]):
    """The outcome of a coroutine that awaits `Later`s. It and what it waits for hold each other no longer than the wait lasts, so that
    whatever a request made goes when its reply has gone, and does not wait for the garbage collector."""

    __slots__ = ("_steps", "_waited")

    def __init__(self, steps: Coroutine[Later[Any], None, T]) -> None:
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
            self._steps.close()


def drive(steps: Coroutine[Later[Any], None, T]) -> Later[T]:
    """Runs a coroutine that awaits `Later`s; what it returns or raises finishes the result."""
    outcome = _Driven(steps)
    outcome.step(None)
    return outcome
