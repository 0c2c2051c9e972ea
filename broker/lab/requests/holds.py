"""Holds requests at the door, or replies before they are sent, until they are released.

What is held counts as waiting: a connection is not idle meanwhile, and serves no other request. A connection that ends
takes its own with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final, Literal

from ....protocol.structs import Struct
from ...later import Later
from ...replies import CLOSE, Silence
from ..faults.index import Indexed, index_of
from ..faults.matching import Match, Matcher, Selection, check_listener, topic_names
from ..faults.possible import keys_of_requests
from ..lab import Lab
from ..seam import AskedApi, Exchange, Follower, Interceptor, MatchedApi, Outcome, Outgoing, Test
from ..shapes import Range

HOLDS_MAX: Final = 1000
At = Literal["request", "reply"]
Then = Literal["go-on", "close"]


@dataclass(frozen=True, kw_only=True)
class HoldAsked(Match):
    """Which requests are held."""

    at: Annotated[At, "Whether requests are held before they are handled, or replies before they are sent."] = "request"
    times: Annotated[int | None, "How many at most; without end if it is not given.", Range(1)] = None


class Hold:
    """A hold in force. `held`: how many exchanges it has held so far."""

    def __init__(self, number: int, asked: HoldAsked, matcher: Matcher, keys: tuple[int, ...] | None) -> None:
        self.number = number
        self.asked = asked
        self.held = 0
        self.matcher = matcher
        self._keys = keys
        self._selection = Selection(asked)

    @property
    def is_spent(self) -> bool:
        return self.asked.times is not None and self.held >= self.asked.times

    def is_for(self, api: MatchedApi) -> bool:
        """Whether it still holds requests of an API."""
        return not self.is_spent and (self._keys is None or api.key in self._keys)

    def takes(self, exchange: Exchange) -> bool:
        """Whether an exchange is held."""
        context = exchange.context
        if not self.is_for(context.api) or not self.matcher.takes(context, exchange.request):
            return False
        if self._selection.chance() is None:
            return False
        self.held += 1
        return True


class Held(Follower):
    """An exchange that is held. `reply`: the decoded reply, if that is what waits. `since_ms`: in broker's time."""

    def __init__(self, holds: Holds, number: int, hold: Hold, exchange: Exchange) -> None:
        self._holds = holds
        self.number = number
        self.hold = hold
        self.exchange = exchange
        self.since_ms = 0
        self.reply: Struct | None = None
        self.then: Then = "go-on"
        self.waits: Later[Outcome | None] = Later()
        self.waits.on_cancel = partial(holds.forget, self)

    def answered(self, exchange: Exchange, outcome: Struct | Silence) -> Outcome | None:
        self.reply = outcome if isinstance(outcome, Struct) else None
        return None

    def encoded(self, exchange: Exchange, outgoing: Outgoing) -> Later[None]:
        """Holds the reply."""
        waits: Later[None] = Later()

        def done(_: object) -> None:
            if self.then == "close":
                outgoing.forget()
                outgoing.end = True
            waits.finish(None)

        waits.on_cancel = self.waits.cancel
        self.waits.when_done(done)
        self._holds.hold(self)
        return waits


class Holds(Interceptor):
    """All holds of a server, and what they hold, in the order in which it came."""

    order = 20

    def __init__(self, lab: Lab) -> None:
        self._server = lab.server
        self._broker = lab.broker
        self._holds: dict[int, Hold] = {}
        self._held: dict[int, Held] = {}
        self._last = self._last_held = 0
        self._waiting: list[tuple[int | None, int, Later[None]]] = []  # for so many held exchanges, of a hold

    # holds

    def add(self, asked: HoldAsked) -> Hold:
        """Adds a hold. Raises Invalid, or OverflowError if there are too many."""
        if len(self._holds) >= HOLDS_MAX:
            raise OverflowError(f"there are {HOLDS_MAX} holds already")
        keys = keys_of_requests(asked, self._server)
        check_listener(asked, [one.name for one in self._server.config.listeners])
        self._last += 1
        hold = Hold(self._last, asked, Matcher(asked, topic_names(self._broker)), keys)
        self._holds[hold.number] = hold
        self._arrange()
        return hold

    def get(self, number: int) -> Hold:
        """Raises LookupError."""
        hold = self._holds.get(number)
        if hold is None:
            raise LookupError(f"there is no hold {number}")
        return hold

    def remove(self, number: int) -> Hold:
        """Ends a hold; what it holds stays until it is released. Raises LookupError."""
        hold = self.get(number)
        del self._holds[number]
        self._arrange()
        return hold

    def _arrange(self) -> None:
        """Has requests tested for the holds that there are."""
        (self._server.intercept if self._holds else self._server.release)(self)

    def reset(self) -> None:
        """Ends all holds, and lets go on what is held."""
        for number in list(self._holds):
            self.remove(number)
        self.release(list(self._held), "go-on")

    def __iter__(self) -> Iterator[Hold]:
        return iter(self._holds.values())

    # what is held

    def test_of(self, api: AskedApi) -> Test | None:
        found = [
            Indexed(hold.asked, takes, False)
            for hold in self._holds.values()
            if hold.is_for(api) and (takes := hold.matcher.test_of(api)) is not None
        ]
        return index_of(api, found, topic_names(self._broker))

    def arrived(self, exchange: Exchange) -> Later[Outcome | None] | None:
        for hold in self._holds.values():
            if hold.takes(exchange):
                if hold.is_spent:
                    self._arrange()
                self._last_held += 1
                held = Held(self, self._last_held, hold, exchange)
                exchange.keep()
                if hold.asked.at == "request":
                    self.hold(held)
                    return held.waits
                exchange.follow(held)
        return None

    def hold(self, held: Held) -> None:
        """An exchange begins to wait."""
        held.since_ms = self._broker.schedule.monotonic_ms()
        self._held[held.number] = held
        for one in list(self._waiting):
            hold, count, later = one
            if len(self.held(hold)) >= count:
                self._waiting.remove(one)
                later.finish(None)

    def forget(self, held: Held) -> None:
        """The connection of an exchange has ended."""
        self._held.pop(held.number, None)

    def held(self, hold: int | None = None) -> list[Held]:
        """Returns what is held, by a hold or by all, in the order in which it came."""
        return [one for one in self._held.values() if hold is None or one.hold.number == hold]

    def wait(self, hold: int | None, count: int) -> Later[None]:
        """Completes when at least so many exchanges are held."""
        later: Later[None] = Later()
        if len(self.held(hold)) >= count:
            later.finish(None)
            return later
        one = hold, count, later
        self._waiting.append(one)
        later.on_cancel = lambda: self._waiting.remove(one) if one in self._waiting else None
        return later

    def release(self, numbers: Sequence[int], then: Then) -> None:
        """Lets exchanges go on, in this order, or closes their connections. Raises LookupError if one is not held."""
        missing = [number for number in numbers if number not in self._held]
        if missing:
            raise LookupError(f"no request {missing[0]} is held")
        for number in dict.fromkeys(numbers):
            held = self._held.pop(number, None)
            if held is not None:  # one that was released before may have ended its connection
                held.then = then
                is_request = held.hold.asked.at == "request"
                outcome = CLOSE if then == "close" and is_request else None
                self._broker.turn.event(partial(held.waits.finish, outcome))
