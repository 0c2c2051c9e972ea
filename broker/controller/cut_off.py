"""The controller, as a node sees it that is cut off: what it asks for waits until it is reached again.

As in Kafka, a broker forwards requests to the active controller, and tries for a minute to reach it. Where the
controller is on the node's side, it answers what changes nothing until it resigns (`Quorum.lonely_at`), as what it was
when the network was parted. The changes that it takes are lost in Kafka, and brokers send them again: here they wait.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...protocol.errors import ApiError, Errors
from ..config.nodes import Node
from ..later import Later
from .controller import MetadataController
from .events import Events, Handler, R
from .quorum import Fetched, Standing

FORWARD_MS = 60_000


def _settle(later: Later[R], sent: Later[R]) -> None:
    later.settle(sent.result, sent.error)


class UnreachedController(MetadataController):
    """Takes what a node that is cut off asks for."""

    events: UnreachedEvents
    node: Node
    at_cut: Standing
    cut_ms: int
    is_reached = False

    def reached(self) -> Later[None]:
        return self.events.reached()

    async def answers(self) -> Standing:
        lonely = None if self.events.has_unsent else self.quorum.lonely_at(self.node.side)
        if lonely is None:
            await self.events.reached()
            return self.quorum.standing()
        return self.at_cut._replace(leader=lonely, fetched=self._fetched, is_lonely=True)

    def _fetched(self, node_id: int) -> Fetched:
        """How far a controller on this side knows a replica of the metadata log to be."""
        is_near = self.nodes.reaches(self.node.id, node_id)
        return Fetched(self.at_cut.high_watermark, self.turn.now_ms() if is_near else self.cut_ms)

    @classmethod
    def of(cls, metadata: MetadataController, node: Node) -> UnreachedController:
        """Returns the controller as `node` knows it, which has just been cut off."""
        found = cls.__new__(cls)
        vars(found).update(vars(metadata))
        found.events = UnreachedEvents(metadata.events)
        found.node, found.at_cut, found.cut_ms = node, metadata.quorum.standing(), metadata.turn.now_ms()
        return found


class UnreachedEvents(Events):
    """Events that wait for the way to the controller."""

    def __init__(self, reached: Events) -> None:
        vars(self).update(vars(reached))
        self._events = reached
        self._is_reached = False
        self._unsent: dict[Callable[[], None], None] = {}  # what sends each

    @property
    def has_unsent(self) -> bool:
        """Whether something waits. A broker of Kafka forwards one request at a time."""
        return bool(self._unsent)

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
            del self._unsent[send]
            later.fail(ApiError(Errors.REQUEST_TIMED_OUT))

        def forgotten() -> None:
            timer.cancel()
            self._unsent.pop(send, None)

        def send() -> None:
            timer.cancel()
            if not later.done:
                sent = asked()
                later.when_cancelled(sent.cancel)
                sent.when_done(partial(_settle, later))

        timer = self._turn.later(FORWARD_MS, over)
        self._unsent[send] = None
        later.on_cancel = forgotten
        return later

    def reach(self) -> None:
        """Sends what waits."""
        self._is_reached = True
        unsent, self._unsent = self._unsent, {}
        for send in unsent:
            send()
