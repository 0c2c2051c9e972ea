"""Fetches of a connection that are like an earlier one, served without decoding them.

A consumer fetches the same partitions again and again: its requests differ in the correlation id, the epoch of the
session and the offsets. After some requests the connection keeps the layout of their frames (`protocol.layouts`) and
one request, into which the numbers of a frame of that layout are put. From there on it is served like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import headers, messages
from ...protocol.layouts import Layout
from ...protocol.structs import copied
from ..net.context import Context
from ..peer import Peer
from ..repeated import DECODE, Served
from ..replies import Send
from ._repeated import Known, Repeats

if TYPE_CHECKING:
    from ..net.dispatch import Dispatcher

PARTITIONS_MAX = 32
SESSIONS_SINCE = 7
_PREFIX_SIZE = 4  # of a frame, which says how long it is


def note(context: Context, request: messages.FetchRequest) -> None:
    """Notes a request, unless it was not decoded."""
    repeated = RepeatedFetches.of(context)
    if repeated is None or (repeated.known is not None and repeated.known.request is request):
        return
    if repeated.is_due() and _is_repeatable(request):
        repeated.learn(_Known(context, request))


def _is_repeatable(request: messages.FetchRequest) -> bool:
    """Whether the next request of a consumer may be like it: one that forgets partitions is sent once."""
    return not request.forgotten_topics_data and (
        sum(len(topic.partitions) for topic in request.topics) <= PARTITIONS_MAX
    )


class RepeatedFetches(Repeats["_Known"]):
    """What a connection fetches again and again."""

    __slots__ = ()

    def serve(self, dispatcher: Dispatcher, peer: Peer, frame: memoryview, send: Send) -> Served:
        known = self.known
        numbers = None if known is None else known.layout.numbers_of(frame)
        if known is None or numbers is None:
            return DECODE
        self.used()
        return known.serve(dispatcher, peer, frame, numbers, send)


class _Known(Known):
    """A request that was decoded, and what is the same for those that are like it."""

    __slots__ = ("_has_epoch", "_partitions", "layout", "request")

    def __init__(self, context: Context, request: messages.FetchRequest) -> None:
        super().__init__(context)
        self.request = copied(request)
        self._has_epoch = self.version >= SESSIONS_SINCE
        self._partitions = [wanted for topic in self.request.topics for wanted in topic.partitions]
        zeros, ones = map(self._frame, (0, -1))
        self.layout = Layout(zeros, ones, [*"ii"[: 1 + self._has_epoch], *"q" * len(self._partitions)])
        self.size = self.layout.size

    def _put(self, epoch: int, offsets: tuple[int, ...]) -> None:
        """Makes the request one with these numbers. Nothing keeps it: the one before it has been answered."""
        self.request.session_epoch = epoch
        for wanted, offset in zip(self._partitions, offsets, strict=True):
            wanted.fetch_offset = offset

    def _frame(self, value: int) -> bytes:
        """Returns the frame, without its length, with `value` for all of its numbers."""
        self._put(value if self._has_epoch else self.request.session_epoch, (value,) * len(self._partitions))
        frame = headers.request_frame(self.api.name, self.version, self.request, value, self.client_id)
        return frame[_PREFIX_SIZE:]

    def serve(
        self, dispatcher: Dispatcher, peer: Peer, frame: memoryview, numbers: tuple[int, ...], send: Send
    ) -> Served:
        """Serves a request, and calls `send` once. Returns what is pending, or DECODE."""
        api, times, request = self.api, self.times, self.request
        context = Context(dispatcher.broker, api, self.version, numbers[0], self.client_id, peer)
        if self._has_epoch:
            self._put(numbers[1], numbers[2:])
        else:
            self._put(request.session_epoch, numbers[1:])
        if dispatcher.seam is not None:
            if dispatcher.seam.concerns(context, request):
                return DECODE
            send = dispatcher.seam.watched(context, request, frame, send)
        self.count(peer, request)
        return dispatcher.serve(context, request, len(frame), send, times)
