"""Actions on the bytes of a reply. Positions count from its length, which has four bytes, and the correlation id after
it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from ..damage import cut, flip, repeat
from ..seam import Outgoing
from ..shapes import Millis, Range
from .action import Action, Hit

LENGTH: Final = struct.Struct(">i")
START: Final = 4  # of what the length counts


@dataclass(frozen=True)
class Truncate(Action):
    """The end of the reply is missing, and its length says so: the client cannot decode it."""

    kind: Literal["truncate"] = "truncate"
    keep_bytes: Annotated[int | None, "What is left, without the length; half by default.", Range(0)] = None

    def encoded(self, hit: Hit, outgoing: Outgoing) -> float:
        reply = outgoing.reply
        if reply is not None and len(reply.head) >= START:  # or another fault has cut it off
            size = reply.size - START
            left = size // 2 if self.keep_bytes is None else min(self.keep_bytes, size)
            cut(reply, START + left)
            LENGTH.pack_into(reply.head, 0, left)
        return 0.0


@dataclass(frozen=True)
class Flip(Action):
    """One bit of the reply is wrong."""

    kind: Literal["flip"] = "flip"
    bit: Annotated[int | None, "Which, from the correlation id on; by chance if it is not given.", Range(0)] = None

    def encoded(self, hit: Hit, outgoing: Outgoing) -> float:
        reply = outgoing.reply
        if reply is not None and reply.size > START:
            bits = (reply.size - START) * 8
            bit = hit.chance.randrange(bits) if self.bit is None else self.bit % bits
            at = START + bit // 8
            flip(reply, at, 0x80 >> bit % 8)
        return 0.0


@dataclass(frozen=True)
class Twice(Action):
    """The reply is sent twice."""

    kind: Literal["twice"] = "twice"

    def encoded(self, hit: Hit, outgoing: Outgoing) -> float:
        if outgoing.reply is not None:
            repeat(outgoing.reply)
        return 0.0


@dataclass(frozen=True)
class CorrelationId(Action):
    """The reply has another correlation id."""

    kind: Literal["correlation-id"] = "correlation-id"
    by: Annotated[int, "What is added to the right one.", Range(-0x7FFFFFFF, 0x7FFFFFFF)] = 1

    def encoded(self, hit: Hit, outgoing: Outgoing) -> float:
        if outgoing.reply is not None and len(outgoing.reply.head) >= START + 4:  # or another fault has cut it off
            wrong = (hit.exchange.context.correlation_id + self.by) & 0xFFFFFFFF
            outgoing.reply.head[START : START + 4] = wrong.to_bytes(4, "big")
        return 0.0


@dataclass(frozen=True)
class Trickle(Action):
    """The reply comes in small pieces."""

    kind: Literal["trickle"] = "trickle"
    piece_bytes: Annotated[int, "The size of a piece.", Range(1)] = 1
    interval_ms: Annotated[Millis, "The time between two pieces.", Range(0, 3_600_000)] = 0

    def encoded(self, hit: Hit, outgoing: Outgoing) -> float:
        outgoing.chunk_bytes, outgoing.interval_ms = self.piece_bytes, float(self.interval_ms)
        return 0.0
