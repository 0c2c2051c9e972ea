"""Shows the requests of a server's connections to their watchers (`lab/seam.py`). Each request of a connection that is
traced passes this, so it is compiled.
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.structs import Struct
from .. import bugs
from ..lab.seam import Watch
from ..peer import Peer
from ..replies import Send
from .context import Context


class Watches:
    """`by_peer`: what sees the requests of a connection. `opened`: called for a connection that is not there, which it
    adds. `exchanges`: counts requests, from 1.
    """

    __slots__ = ("_opened", "by_peer", "exchanges")

    def __init__(self, opened: Callable[[Peer], object]) -> None:
        self._opened = opened
        self.by_peer: dict[Peer, list[Watch]] = {}
        self.exchanges = 0

    def watched(self, context: Context, request: Struct, frame: memoryview, send: Send) -> Send:
        """Shows a request to the watchers. Returns what is called with the reply in place of `send`."""
        self.exchanges = number = self.exchanges + 1
        watches = self.by_peer.get(context.peer)
        if watches is None:
            self._opened(context.peer)
            watches = self.by_peer[context.peer]
        for watch in watches:
            try:
                send = watch(number, context, request, frame, send)
            except Exception as error:
                bugs.report("a watcher", error)
        return send
