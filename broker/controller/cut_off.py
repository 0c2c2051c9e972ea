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
        self._reached = reached
        self._unsent: list[Callable[[], None]] = []

    def submit(self, handler: Handler[R], timeout_ms: int | None, validate_only: bool) -> Later[R]:
        """Handles the event when the controller is reached. Fails with ApiError(REQUEST_TIMED_OUT) after a minute."""
        later: Later[R] = Later()

        def over() -> None:
            later.fail(ApiError(Errors.REQUEST_TIMED_OUT))
            self._unsent.remove(send)

        def send() -> None:
            timer.cancel()
            if not later.done:
                self._reached.submit(handler, timeout_ms, validate_only).when_done(partial(_settle, later))

        timer = self._turn.later(FORWARD_MS, over)
        self._unsent.append(send)
        return later

    def reach(self) -> None:
        """Sends what waits."""
        unsent, self._unsent = self._unsent, []
        for send in unsent:
            send()
