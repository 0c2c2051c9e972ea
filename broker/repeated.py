"""What a connection asks again and again: requests that are like an earlier one are served without decoding them.

An API that has such requests derives a class from `Repeats` in its folder. The dispatcher gives it the frames of its
API, unless something looks at the messages of requests, or counts them. Whatever is unlike the known request in
anything but a few numbers, or the records, is decoded, which says what is right.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, Generic, Protocol, TypeVar

from .clock import Cancellable

FRAME_BYTES_MAX = 4096
KEPT_BYTES_MAX = 1 << 20  # of the frames of all connections; what is kept takes some ten times as much
USED_ENOUGH = 16  # what was used as often was worth making, and so will be the next one


class Unlike(Enum):
    """What serves frames (`peer.Repeated`) returns for a frame that it does not serve."""

    DECODE = "the frame has to be decoded"


DECODE: Final = Unlike.DECODE
Served = Cancellable | Unlike | None
"""What is pending after a frame was served, if anything is, or DECODE."""


class KeptFrames:
    """How many bytes of frames the connections of a broker keep."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0


class Known(Protocol):
    """A request that was decoded, and what is the same for those that are like it. `size`: the bytes of its frame."""

    @property
    def size(self) -> int: ...


K = TypeVar("K", bound=Known)


class Repeats(Generic[K]):
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
