"""What looks at requests and replies while they pass a dispatcher: the interfaces."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from ...protocol.structs import Struct
from ..later import Later
from ..metrics import ApiTimes
from ..peer import Peer
from ..replies import Send
from .context import Context

Pending = Later[Any]  # of whatever type
D_contra = TypeVar("D_contra", contravariant=True)


class NotesRequests(Protocol):
    """Notes requests before they are handled, and replies before they are sent."""

    def request(self, context: Context, message: Struct) -> None: ...

    def reply(self, context: Context, message: Struct) -> None: ...


class Seam(Protocol[D_contra]):
    """Looks at requests before they are handled, and at replies before they are sent: `intercepting.Seam`.

    `D_contra`: the dispatcher that it takes requests from. `reads_messages`: whether a watcher looks at the messages of
    requests; otherwise they need not be decoded to be watched.
    """

    reads_messages: bool

    def concerns(self, context: Context, request: Struct) -> bool:
        """Whether anything may act on a request, or on one like it: then it has to be served by this."""

    def watched(self, context: Context, request: Struct, frame: memoryview, send: Send) -> Send:
        """Notes a request that the caller serves. Returns what is called in place of `send`."""

    def serve(
        self,
        dispatcher: D_contra,
        context: Context,
        request: Struct,
        frame: memoryview,
        send: Send,
        times: ApiTimes,
    ) -> Pending | None:
        """Serves a request in place of the dispatcher, or by it, and calls `send` once. Returns what is pending."""

    def refused(self, peer: Peer, frame: memoryview, reason: str) -> None:
        """A frame closes its connection."""
