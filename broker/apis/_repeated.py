"""What a connection asks again and again: requests that are like an earlier one are served without decoding them.

An API that has such requests derives classes from `Known` and `Repeats`. The dispatcher gives it the frames of its API,
unless something looks at the messages of requests, or counts them. Whatever is unlike the known request in anything but
a few numbers, or the records, is decoded, which says what is right.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from ...protocol.structs import Struct
from ..net.context import Context
from ..peer import Peer
from ..repeated import KeptFrames, Served
from ..replies import Send

if TYPE_CHECKING:
    from ..net.dispatch import Dispatcher

FRAME_BYTES_MAX = 4096
KEPT_BYTES_MAX = 1 << 20  # of the frames of all connections; what is kept takes some ten times as much
USED_ENOUGH = 16  # what was used as often was worth making, and so will be the next one


class Known:
    """A request that was decoded, and what is the same for those that are like it. `size`: how many bytes are kept."""

    __slots__ = ("api", "client_id", "size", "times", "version")

    def __init__(self, context: Context) -> None:
        self.size = 0
        self.api = context.api
        self.version = context.version
        self.client_id = context.client_id
        self.times = context.broker.metrics.apis[self.api.key, self.version]

    def count(self, peer: Peer, request: Struct) -> None:
        """Counts a request that is like this one."""
        self.times.count += 1
        if peer.activity is not None:
            peer.activity.note(self.api.key, self.version, self.client_id, request)


K = TypeVar("K", bound=Known)


class Repeats(ABC, Generic[K]):
    """What a connection asks of one API again and again: `known`, if something is. `on_lost`: what is called when
    the connection ends.

    The second, fourth, eighth and so on of its requests that are decoded becomes what the next ones are compared with.
    They are counted from the last one that was of use.
    """

    __slots__ = ("_decoded", "_kept", "_uses", "known")

    def __init__(self, kept: KeptFrames, on_lost: list[Callable[[], object]]) -> None:
        self.known: K | None = None
        self._kept = kept
        self._decoded = self._uses = 0
        on_lost.append(self.forget)

    @classmethod
    def of(cls, context: Context) -> Self | None:
        """Returns what the connection of a request asks again; None where an authorizer looks at each request."""
        if context.broker.authorizer is not None:
            return None
        repeated, key = context.peer.repeated, context.api.key
        found = repeated.get(key)
        if isinstance(found, cls):
            return found
        made = repeated[key] = cls(context.broker.kept_frames, context.peer.on_lost)
        return made

    @abstractmethod
    def serve(self, dispatcher: Dispatcher, peer: Peer, frame: memoryview, send: Send) -> Served:
        """Serves the request of a frame, and calls `send` once. Returns what is pending, or DECODE: then it has done
        nothing.
        """

    def is_due(self) -> bool:
        """Counts a request that was decoded. Returns whether it is the one to learn; forgets the known one then."""
        if self._uses >= USED_ENOUGH:
            self._decoded = self._uses = 0
        self._decoded += 1
        if self._decoded == 1 or self._decoded & (self._decoded - 1):
            return False
        self.forget()
        return True

    def learn(self, known: K) -> None:
        """Has the next requests compared with this one, unless it is long, or others keep much already."""
        if known.size <= FRAME_BYTES_MAX and self._kept.size + known.size <= KEPT_BYTES_MAX:
            self.known, self._uses = known, 0
            self._kept.size += known.size

    def used(self) -> None:
        """Counts a request that was recognized."""
        self._uses += 1

    def forget(self) -> None:
        if self.known is not None:
            self._kept.size -= self.known.size
            self.known = None
