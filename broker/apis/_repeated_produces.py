"""Produce requests of a connection that are like an earlier one, served without decoding them.

A producer sends records to one topic again and again: its requests for one partition differ in the correlation id, the
partition and the records. After some requests the connection keeps the bytes around these, and the reply to such a
request. A frame with the same bytes around its records is not decoded, and its reply is not encoded if there is no
error. Everything is checked as for any other request (`Appending.one`).

Requests for several partitions, for none, or without records take the ordinary way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import messages
from ..net.context import Context
from ..peer import Peer
from ..repeated import DECODE, Served
from ..replies import Send
from ._gathered_produces import GatheredProduces
from ._known_produces import KnownProduce
from ._repeated import Repeats

if TYPE_CHECKING:
    from ..net.dispatch import Dispatcher


def note(context: Context, request: messages.ProduceRequest) -> None:
    """Notes that a request was decoded."""
    topics = request.topic_data
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        return
    repeated = RepeatedProduces.of(context)
    if repeated is not None and repeated.is_due():
        repeated.learn(KnownProduce(context, request))


class RepeatedProduces(Repeats[KnownProduce]):
    """What a connection produces to again and again."""

    __slots__ = ()

    def serve(self, dispatcher: Dispatcher, peer: Peer, frame: memoryview, send: Send) -> Served:
        known = self.known
        found = None if known is None else known.layout.records_of(frame)
        if known is None or found is None:
            return DECODE
        self.used()
        if peer.has_more:
            gathered = GatheredProduces.begun(known, dispatcher, peer, frame, found[0])
            if gathered is not None and gathered.takes(frame, send):
                return None
        return known.serve(dispatcher, peer, frame, *found, send)
