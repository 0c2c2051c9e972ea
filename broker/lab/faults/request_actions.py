"""Actions on whole exchanges: delay, silence, the end of the connection, throttling."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Annotated, Final, Literal

from ....protocol.structs import Struct
from ...replies import CLOSE, NO_REPLY, Silence
from ..damage import cut
from ..seam import Outcome, Outgoing
from ..shapes import Invalid, Millis, Range
from .action import NEVER, Action, Hit

DELAY_MS_MAX: Final = 24 * 3_600_000


@dataclass(frozen=True)
class Lasting:
    """How long something takes. `uniform`: between `ms` and `to_ms`; `normal`: `ms` with a standard deviation;
    `exponential`: `ms` on average.
    """

    ms: Annotated[Millis, "How long.", Range(0, DELAY_MS_MAX)]
    distribution: Literal["fixed", "uniform", "normal", "exponential"] = "fixed"
    to_ms: Annotated[Millis, "The longest of `uniform`.", Range(0, DELAY_MS_MAX)] = 0
    deviation_ms: Annotated[Millis, "The standard deviation of `normal`.", Range(0, DELAY_MS_MAX)] = 0

    def __post_init__(self) -> None:
        if self.distribution == "uniform" and self.to_ms < self.ms:
            raise Invalid("to_ms", f"must be at least ms, found {self.to_ms}")

    def chosen_ms(self, chance: Random) -> float:
        if self.distribution == "uniform":
            return chance.uniform(self.ms, self.to_ms)
        if self.distribution == "normal":
            return min(max(0.0, chance.gauss(self.ms, self.deviation_ms)), DELAY_MS_MAX)
        if self.distribution == "exponential":
            return min(chance.expovariate(1 / self.ms) if self.ms else 0.0, DELAY_MS_MAX)
        return float(self.ms)


@dataclass(frozen=True)
class Delay(Lasting, Action):
    """The request waits before it is handled, or its reply before it is sent: always `ms`, between `ms` and `to_ms`
    (`uniform`), `ms` with a standard deviation (`normal`), or `ms` on average (`exponential`).
    """

    kind: Literal["delay"] = "delay"
    at: Literal["request", "reply"] = "request"

    def delay_ms(self, hit: Hit) -> float:
        return self.chosen_ms(hit.chance) if self.at == "request" else 0.0

    def encoded(self, hit: Hit, outgoing: Outgoing) -> float:
        return self.chosen_ms(hit.chance) if self.at == "reply" else 0.0

    @property
    def text(self) -> str:
        return f"delay the {self.at}"


@dataclass(frozen=True)
class NoReply(Action):
    """No reply comes, before or after the request is handled. The connection waits until the client gives up, as with a
    broker that hangs; or it goes on with the next request, so that the client misses one reply.
    """

    kind: Literal["no-reply"] = "no-reply"
    at: Literal["request", "reply"] = "reply"
    then: Literal["wait", "go-on"] = "wait"

    @property
    def is_final(self) -> bool:
        return self.at == "request"

    def delay_ms(self, hit: Hit) -> float:
        return NEVER if self.at == "request" and self.then == "wait" else 0.0

    def arrived(self, hit: Hit) -> Outcome | None:
        return NO_REPLY if self.at == "request" else None

    def encoded(self, hit: Hit, outgoing: Outgoing) -> float:
        outgoing.forget()
        return NEVER if self.then == "wait" else 0.0


@dataclass(frozen=True)
class Close(Action):
    """The connection ends: before the request is handled, before its reply, in the middle of the reply after some
    bytes, or after the reply.
    """

    kind: Literal["close"] = "close"
    at: Literal["request", "before-reply", "middle", "after-reply"] = "before-reply"
    after_bytes: Annotated[
        int | None, "Bytes of the reply that are sent with `middle`; half of it by default.", Range(0)
    ] = None

    @property
    def is_final(self) -> bool:
        return self.at == "request"

    def arrived(self, hit: Hit) -> Outcome | None:
        return CLOSE if self.at == "request" else None

    def answered(self, hit: Hit, outcome: Struct | Silence) -> Outcome | None:
        return CLOSE if outcome is NO_REPLY else None

    def encoded(self, hit: Hit, outgoing: Outgoing) -> float:
        outgoing.end = True
        if self.at == "before-reply":
            outgoing.forget()
        elif self.at == "middle" and outgoing.reply is not None:
            most = outgoing.reply.size - 1
            wanted = outgoing.reply.size // 2 if self.after_bytes is None else self.after_bytes
            cut(outgoing.reply, max(0, min(most, wanted)))
        return 0.0

    @property
    def text(self) -> str:
        return f"close the connection, {self.at}"


@dataclass(frozen=True)
class Throttle(Action):
    """The reply says that the client is throttled, and the broker serves no request of the connection for that time, as
    with a quota (KIP-219).
    """

    ms: Annotated[Millis, "How long.", Range(0, 0x7FFFFFFF)]
    kind: Literal["throttle"] = "throttle"
    mutes: Annotated[bool, "Whether the broker keeps to it itself."] = True

    def answered(self, hit: Hit, outcome: Struct | Silence) -> Outcome | None:
        if isinstance(outcome, Struct) and hasattr(outcome, "throttle_time_ms"):
            outcome.throttle_time_ms = self.ms
        return None

    def encoded(self, hit: Hit, outgoing: Outgoing) -> float:
        if self.mutes:
            hit.exchange.context.peer.throttle_ms = self.ms
        return 0.0

    @property
    def text(self) -> str:
        return f"throttle for {self.ms} ms"
