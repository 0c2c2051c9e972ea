"""The controller, as a node sees it that is cut off: what it asks for waits until it is reached again.

As in Kafka, a broker forwards requests to the active controller, and tries for a minute to reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...protocol.errors import ApiError, Errors
from ..later import Later
from .controller import MetadataController
from .events import Events, Handler, R

FORWARD_MS = 60_000


def _settle(later: Later[R], sent: Later[R]) -> None:
    later.settle(sent.result, sent.error)


class UnreachedController(MetadataController):
    """Takes what a node that is cut off asks for."""

    events: UnreachedEvents
    is_reached = False

    def reached(self) -> Later[None]:
        return self.events.reached()

    def answers(self) -> Later[None]:
        return self.events.reached()

    @classmethod
    def of(cls, metadata: MetadataController) -> UnreachedController:
        found = cls.__new__(cls)
        vars(found).update(vars(metadata))
        found.events = UnreachedEvents(metadata.events)
        return found


class UnreachedEvents(Events):
    """Events that wait for the way to the controller."""

    def __init__(self, reached: Events) -> None:
        vars(self).update(vars(reached))
        self._events = reached
        self._is_reached = False
        self._unsent: list[Callable[[], None]] = []

    def submit(self, handler: Handler[R], timeout_ms: int | None, validate_only: bool) -> Later[R]:
        """Handles the event when the controller is reached. Fails with ApiError(REQUEST_TIMED_OUT) after a minute."""
        return self._when_reached(lambda: self._events.submit(handler, timeout_ms, validate_only))

    def reached(self) -> Later[None]:
        """Completes when there is an active controller that is reached. Fails as `submit`."""
        return self._when_reached(self._quorum.reached)

    def _when_reached(self, asked: Callable[[], Later[R]]) -> Later[R]:
        if self._is_reached:
            return asked()
        later: Later[R] = Later()

        def over() -> None:
            later.fail(ApiError(Errors.REQUEST_TIMED_OUT))
            self._unsent.remove(send)

        def send() -> None:
            timer.cancel()
            if not later.done:
                asked().when_done(partial(_settle, later))

        timer = self._turn.later(FORWARD_MS, over)
        self._unsent.append(send)
        return later

    def reach(self) -> None:
        """Sends what waits."""
        self._is_reached = True
        unsent, self._unsent = self._unsent, []
        for send in unsent:
            send()
