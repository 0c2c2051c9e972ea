"""The rules, and how they are applied: an interceptor that is added with the first rule and removed with the last."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Annotated, Final, TypeVar

from ....protocol.errors import ApiError
from ....protocol.structs import Struct
from ...clock import Cancellable
from ...internal_topics import is_internal
from ...later import Later, drive
from ...replica.partition import Partition
from ...replies import Silence
from ..lab import Lab
from ..seam import AskedApi, Exchange, Follower, Interceptor, Outcome, Outgoing, Test
from ..shapes import Invalid, Millis, Range
from .action import NEVER, Action, Hit
from .byte_actions import CorrelationId, Flip, Trickle, Truncate, Twice
from .content_actions import DamageRecords, StaleLeader, Vanish
from .error_action import Fail
from .fields import PARTITION, TOPIC
from .index import Indexed, index_of
from .inner_actions import AppendFails, Doors, InnerAction, Loading, SlowSync, check_inner
from .matching import Apis, Match, Matcher, Selection, apis_of, check_listener, topic_names
from .possible import check_possible
from .request_actions import Close, Delay, NoReply, Throttle

logger = logging.getLogger("ottla.lab.faults")
A = TypeVar("A", bound=Action)
RULES_MAX: Final = 1000
OVER_MAX: Final = 100  # rules whose duration is over, and which are still shown
EVENTS_MAX: Final = 100  # of the latest that a rule remembers
DURATION_MS_MAX: Final = 365 * 86_400_000
AnyAction = (
    Fail
    | Delay
    | NoReply
    | Close
    | Throttle
    | Truncate
    | Flip
    | Twice
    | CorrelationId
    | Trickle
    | DamageRecords
    | Vanish
    | StaleLeader
    | AppendFails
    | SlowSync
    | Loading
)


@dataclass(frozen=True, kw_only=True)
class Fault(Match):
    """A rule: which requests, what happens to them, how often and until when."""

    action: AnyAction
    times: Annotated[int | None, "How often it is applied; without end if it is not given.", Range(1)] = None
    duration: Annotated[Millis | None, "How long it lasts, in the broker's time.", Range(1, DURATION_MS_MAX)] = None


@dataclass(frozen=True, slots=True)
class Applied:
    """One application of a rule. `match`: the number of the match, from 1."""

    at_ms: int
    match: int
    what: str


class Rule:
    """A rule. `applied`: to how many of the requests that it was for it was applied. `has_ended`: its duration is
    over.
    """

    def __init__(self, number: int, fault: Fault, matcher: Matcher, keys: tuple[int, ...] | None) -> None:
        self.number = number
        self.fault = fault
        self.matcher = matcher
        self.keys = keys
        self.selection = Selection(fault)
        self.applied = 0
        self.events: deque[Applied] = deque(maxlen=EVENTS_MAX)
        self.timer: Cancellable | None = None
        self.until_ms: int | None = None  # monotonic time
        self.has_ended = False

    @property
    def action(self) -> Action:
        return self.fault.action

    @property
    def matched(self) -> int:
        """How many requests it was for."""
        return self.selection.matched

    @property
    def is_spent(self) -> bool:
        return self.fault.times is not None and self.applied >= self.fault.times

    @property
    def is_over(self) -> bool:
        """Whether it is applied to nothing more."""
        return self.is_spent or self.has_ended

    def chance(self) -> Random | None:
        """Counts a match; returns the generator for it, None if the rule is not applied to it."""
        chance = None if self.is_spent else self.selection.chance()
        if chance is not None:
            self.applied += 1
        return chance

    def note(self, now_ms: int, what: str) -> None:
        """Remembers and logs an application."""
        self.events.append(Applied(now_ms, self.matched, what))
        logger.info("fault %d (%s) was applied to %s", self.number, self.action.text, what)


Prepared = tuple[Rule, Test, bool]
"""A rule, its test, and whether it looks for topic and partition in the reply."""


def keys_of(fault: Fault, apis: Apis) -> tuple[int, ...] | None:
    """Returns the keys of the APIs that a rule is for. Raises Invalid if it can be for none."""
    if isinstance(fault.action, InnerAction):
        check_inner(fault, fault.action)
        return None
    keys, served = apis_of(fault, apis), apis.api_keys()
    only = tuple(key for key in fault.action.apis if key in served)  # an emulated release may lack some
    if only and any(key not in only for key in keys or ()):
        names = ", ".join(apis.api(key).name for key in only)
        raise Invalid("api", f"{fault.action.kind} is for {names} only")
    keys = keys or only or None
    check_possible(fault, keys, apis, fault.action.by_reply)
    return keys


class Faults(Interceptor):
    """All rules of a server."""

    order = 30

    def __init__(self, lab: Lab) -> None:
        self._server = lab.server
        self._broker = lab.broker
        self._rules: dict[int, Rule] = {}
        self._last = 0
        self._active: list[Rule] = []
        self._by_key: dict[int, tuple[Prepared, ...]] = {}  # by API, made before its first request
        self._inner: list[Rule] = []
        self._doors = Doors(lab.broker, self._inner_hit)

    # rules

    def add(self, fault: Fault) -> Rule:
        """Adds a rule. Raises Invalid, or OverflowError if there are too many."""
        if len(self._rules) - len(self._ended()) >= RULES_MAX:
            raise OverflowError(f"there are {RULES_MAX} rules already")
        keys = keys_of(fault, self._server)
        check_listener(fault, [one.name for one in self._server.config.listeners])
        self._last += 1
        rule = Rule(self._last, fault, Matcher(fault, topic_names(self._broker)), keys)
        if fault.duration is not None:
            rule.until_ms = self._broker.schedule.monotonic_ms() + fault.duration
            rule.timer = self._broker.turn.later(fault.duration, lambda: self._end(rule))
        self._rules[rule.number] = rule
        if isinstance(fault.action, Loading):
            self._load(rule, fault.action)
        self._arrange()
        return rule

    def _load(self, rule: Rule, action: Loading) -> None:
        chance = rule.chance()
        if chance is not None:
            count = self._doors.load(rule.number, action, rule.fault, action.chosen_ms(chance))
            rule.note(self._broker.schedule.now_ms(), f"{count} {action.coordinator} coordinators")

    def remove(self, number: int) -> Rule:
        """Removes a rule. Raises LookupError."""
        rule = self.get(number)
        self._drop(rule)
        self._arrange()
        return rule

    def _end(self, rule: Rule) -> None:
        """Ends a rule whose duration is over. It stays with its counts, and so do OVER_MAX such rules, the newest."""
        rule.has_ended = True
        self._doors.end_load(rule.number)
        for old in self._ended()[:-OVER_MAX]:
            self._drop(old)
        self._arrange()

    def _ended(self) -> list[Rule]:
        return [rule for rule in self._rules.values() if rule.has_ended]

    def _drop(self, rule: Rule) -> None:
        del self._rules[rule.number]
        if rule.timer is not None:
            rule.timer.cancel()
        self._doors.end_load(rule.number)

    def clear(self) -> list[Rule]:
        """Removes all rules; returns them."""
        rules = list(self._rules.values())
        for rule in rules:
            self._drop(rule)
        self._arrange()
        return rules

    def reset(self) -> None:
        self.clear()

    def get(self, number: int) -> Rule:
        """Raises LookupError."""
        rule = self._rules.get(number)
        if rule is None:
            raise LookupError(f"there is no fault {number}")
        return rule

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    def _arrange(self) -> None:
        """Notes which rules are for which API; the server has the interceptor only while there is a rule in force."""
        in_force = [rule for rule in self._rules.values() if not rule.is_over]
        self._inner = [rule for rule in in_force if isinstance(rule.action, InnerAction)]
        self._doors.open_for({type(rule.action) for rule in self._inner})
        was_active = bool(self._active)
        self._active = [rule for rule in in_force if not isinstance(rule.action, InnerAction)]
        self._by_key = {}
        if self._active:
            self._server.intercept(self)  # which asks for other tests if it is there already
        elif was_active:
            self._server.release(self)

    # exchanges

    def test_of(self, api: AskedApi) -> Test | None:
        indexed = (Indexed(rule.fault, takes, by_reply) for rule, takes, by_reply in self._prepared(api))
        return index_of(api, indexed, topic_names(self._broker))

    def arrived(self, exchange: Exchange) -> Outcome | Later[Outcome | None] | None:
        hits: list[tuple[Rule, Hit | None]] = []
        for rule, takes, by_reply in self._prepared(exchange.context.api):
            if not takes(exchange.context, exchange.request):
                continue
            hit = None if by_reply else self.hit(rule, exchange)
            if hit is None and not by_reply:
                continue
            hits.append((rule, hit))
            if rule.action.is_final:
                break
        return _Struck(self, exchange, hits).begin() if hits else None

    def _prepared(self, api: AskedApi) -> tuple[Prepared, ...]:
        """Returns the rules that requests of an API can match, in their order, with the test of each."""
        known = self._by_key.get(api.key)
        if known is not None:
            return known
        found: list[Prepared] = []
        for rule in self._active:
            if rule.keys is None or api.key in rule.keys:
                by_reply = rule.action.by_reply(api.key)
                takes = rule.matcher.prepared(api, by_reply)
                if takes is not None:
                    found.append((rule, takes, by_reply))
        prepared = self._by_key[api.key] = tuple(found)
        return prepared

    def hit(self, rule: Rule, exchange: Exchange) -> Hit | None:
        """Counts a match; returns what the action needs if the rule is applied."""
        chance = rule.chance()
        if chance is None:
            return None
        context = exchange.context
        rule.note(
            self._broker.schedule.now_ms(),
            f"{context.api.name} {context.correlation_id} of {context.client_id} at {context.client_address}",
        )
        if rule.is_spent:
            self._arrange()
        return Hit(exchange, chance, rule.matcher)

    def _inner_hit(self, kind: type[A], partition: Partition, what: str) -> tuple[A, Random] | None:
        """Counts something within the broker; returns the action of the first rule that is applied to it. Only rules
        that name a topic are for internal topics.
        """
        for rule in self._inner:
            action = rule.action
            if rule.fault.topic is None and is_internal(partition.topic):
                continue
            if rule.fault.node not in (None, partition.leader):
                continue
            if isinstance(action, kind) and rule.matcher.where({TOPIC: partition.topic, PARTITION: partition.index}):
                chance = rule.chance()
                if chance is not None:
                    rule.note(self._broker.schedule.now_ms(), what)
                    if rule.is_spent:
                        self._arrange()
                    return action, chance
        return None

    def pause(self, ms: float) -> Later[None]:
        return Later() if ms == NEVER else self._broker.turn.pause(ms)


class _Struck(Follower):
    """An exchange that rules apply to. A rule without a hit looks at the reply first."""

    def __init__(self, faults: Faults, exchange: Exchange, hits: list[tuple[Rule, Hit | None]]) -> None:
        self._faults = faults
        self._hits = hits
        exchange.follow(self)
        if any(rule.action.keeps(exchange.context.api.key) for rule, _ in hits):
            exchange.keep()

    def begin(self) -> Outcome | Later[Outcome | None] | None:
        """Returns what happens to the request."""
        delay_ms = _sum(rule.action.delay_ms(hit) for rule, hit in self._hits if hit is not None)
        return drive(self._later(delay_ms)) if delay_ms else self._now()

    async def _later(self, delay_ms: float) -> Outcome | None:
        await self._faults.pause(delay_ms)
        return self._now()

    def _now(self) -> Outcome | None:
        for rule, hit in self._hits:
            if hit is not None:
                outcome = rule.action.arrived(hit)
                if outcome is not None:
                    return outcome
        return None

    def answered(self, exchange: Exchange, outcome: Struct | Silence) -> Outcome | None:
        changed: Outcome | None = None
        for index, (rule, found) in enumerate(self._hits):
            hit = found
            if hit is None and isinstance(outcome, Struct) and rule.action.elements(rule.matcher, exchange, outcome):
                hit = self._faults.hit(rule, exchange)
                self._hits[index] = rule, hit
            made = None if hit is None else rule.action.answered(hit, outcome)
            if made is not None:
                changed = made
                if isinstance(made, ApiError):
                    break
                outcome = made
        return changed

    def encoded(self, exchange: Exchange, outgoing: Outgoing) -> Later[None] | None:
        delay_ms = 0.0
        for rule, hit in self._hits:
            if hit is not None and outgoing.reply is not None:
                delay_ms = _sum((delay_ms, rule.action.encoded(hit, outgoing)))
        return self._faults.pause(delay_ms) if delay_ms else None


def _sum(delays_ms: Iterable[float]) -> float:
    """Returns the sum of delays; NEVER if one is for ever."""
    found = list(delays_ms)
    return NEVER if NEVER in found else sum(found)
