"""The controller's queue of events, which are handled one after another, as in Kafka's QuorumController.

An event that changes many things takes several turns of the loop: its handler decides in steps, and its records are
prepared in steps. Nothing else is written meanwhile, because later events wait. Then the records are written as one
batch and shown in the controller's state at once, so that a crash or a failure leaves all of them or none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ...coordinator.metadata.controller import count_of
from ...coordinator.metadata.staged import prepared
from ...coordinator.metadata.state import MetadataState
from ...coordinator.runtime import Runtime
from ...coordinator.shard import Decision, Result
from ...protocol.errors import ApiError, Errors
from .. import bugs
from ..later import Later, Steps
from ..steps import paced
from ..turn import Turn, Writes
from .quorum import Quorum

R = TypeVar("R")
EVENT = "controller-event"
EVENT_STEP = 128  # elements of a request, or records, in one turn of the loop
Handler = Callable[[], Result[R] | Decision[R]]


def _settle(later: Later[R], reply: R | None, error: BaseException | None) -> None:
    """Completes an event. A controller whose log does not take records is none (NOT_CONTROLLER), as in Kafka: clients
    look for another one; the runtime calls it a coordinator.
    """
    is_none = isinstance(error, ApiError) and error.code == Errors.NOT_COORDINATOR
    later.settle(reply, ApiError(Errors.NOT_CONTROLLER) if is_none else error)


class Events:
    """The events that wait, also for an active controller, and the one that is handled. `owner` flushes what they
    write.
    """

    def __init__(self, turn: Turn, runtime: Runtime, state: MetadataState, owner: Writes, quorum: Quorum) -> None:
        self._turn = turn
        self._runtime = runtime
        self._state = state
        self._owner = owner
        self._quorum = quorum
        self._waiting: deque[Callable[[], Steps[None]]] = deque()
        self._is_busy = False

    def submit(self, handler: Handler[R], timeout_ms: int | None, validate_only: bool) -> Later[R]:
        """Handles an event after those that wait; completes when its records are committed. Fails with ApiError."""
        later: Later[R] = Later()
        deadline_ms = None if timeout_ms is None else self._turn.schedule.monotonic_ms() + timeout_ms
        self._waiting.append(partial(self._handle, handler, later, deadline_ms, validate_only))
        if not self._is_busy:
            self._is_busy = True
            self._turn.background(self._handle_all())
        if timeout_ms is not None and not later.done:
            timer = self._turn.later(timeout_ms, lambda: later.fail(ApiError(Errors.REQUEST_TIMED_OUT)))

            def done(_: Later[R]) -> None:
                timer.cancel()

            later.when_done(done)
            later.when_cancelled(timer.cancel)  # it may be one of weeks
        return later

    async def asked(self, handler: Handler[R]) -> R:
        """Returns the reply of an event that changes nothing, which waits for no other. Raises ApiError."""
        return (await self._prepared(handler, validate_only=True)).reply

    async def _handle_all(self) -> None:
        try:
            while self._waiting:
                if self._quorum.missing is not None:
                    await self._quorum.missing
                    continue
                await self._waiting.popleft()()
        finally:
            self._is_busy = False

    async def _handle(self, handler: Handler[R], later: Later[R], deadline_ms: int | None, validate_only: bool) -> None:
        now = self._turn.schedule.monotonic_ms()
        if deadline_ms is not None and now >= deadline_ms:
            return later.fail(ApiError(Errors.REQUEST_TIMED_OUT))
        try:
            result = await self._decided(handler, validate_only)
        except ApiError as error:
            later.fail(error)
        except Exception as bug:
            bugs.report(EVENT, bug)
            later.fail(ApiError(Errors.UNKNOWN_SERVER_ERROR))
        else:
            self._runtime.write(EVENT, lambda: result, partial(_settle, later), now)
            self._turn.wrote(self._owner)

    async def _decided(self, handler: Handler[R], validate_only: bool) -> Result[R]:
        timeline = self._runtime.timeline
        while True:
            reverts = timeline.reverts
            result = await self._prepared(handler, validate_only)
            if timeline.reverts == reverts:
                return result
            # the append of an earlier event failed, and this one has seen its records

    async def _prepared(self, handler: Handler[R], validate_only: bool) -> Result[R]:
        decided = handler()
        result = decided if isinstance(decided, Result) else await paced(self._turn, decided, EVENT_STEP)
        if validate_only:
            return Result([], result.reply)
        if count_of(result) <= EVENT_STEP:
            return result
        await self._turn.next()  # how many they are was counted in a step of its own
        many = await paced(self._turn, prepared(self._state, result), EVENT_STEP)
        self._owner.flush()  # what earlier events of this turn wrote
        return many
