"""What a rule does: the base of all actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ....protocol.structs import Struct
from ...replies import Silence
from ..seam import Exchange, Outcome, Outgoing
from .matching import Matcher

NEVER = -1.0  # in place of a delay


@dataclass(slots=True)
class Hit:
    """An exchange that a rule applies to. `chance`: decides what is left to chance, by the rule's seed and the number
    of the match. `complete`: adds the errors of what was taken out of the request to the reply; `puts`: whether errors
    are put into the reply.
    """

    exchange: Exchange
    chance: Random
    matcher: Matcher
    complete: Callable[[Struct], Struct] | None = None
    puts: bool = False

    @property
    def version(self) -> int:
        return self.exchange.context.version


class Action:
    """What happens to the exchanges that a rule matches. `kind`: its name."""

    kind: str

    @property
    def apis(self) -> tuple[int, ...]:
        """The keys of the only APIs that it is for; none if it is for all."""
        return ()

    @property
    def is_final(self) -> bool:
        """Whether no other rule can apply to the request."""
        return False

    def by_reply(self, key: int) -> bool:
        """Whether topic and partition are looked for in the reply of an API, instead of the request."""
        return False

    def keeps(self, key: int) -> bool:
        """Whether the action needs the request when it is answered."""
        return False

    def delay_ms(self, hit: Hit) -> float:
        """How long the request waits before it is handled; NEVER for ever."""
        return 0.0

    def arrived(self, hit: Hit) -> Outcome | None:
        """Returns what is answered instead of the handler; None lets the request pass."""
        return None

    def elements(self, matcher: Matcher, exchange: Exchange, message: Struct) -> int:
        """Returns how many elements of the reply the action is for; only with `by_reply`."""
        return 0

    def answered(self, hit: Hit, outcome: Struct | Silence) -> Outcome | None:
        """Changes the reply, or returns another one."""
        return None

    def encoded(self, hit: Hit, outgoing: Outgoing) -> float:
        """Changes the bytes of the reply; returns how many milliseconds they wait, or NEVER."""
        return 0.0

    @property
    def text(self) -> str:
        """What it does, in a few words."""
        return self.kind
