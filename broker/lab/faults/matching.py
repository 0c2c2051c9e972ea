"""Which requests a rule is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache, partial
from random import Random
from typing import Annotated, Protocol

from ....protocol import schema
from ....protocol.structs import Struct
from ...broker import Broker
from ...replica.fetch_sessions import Fetch
from ..seam import Asked, Exchange, MatchedApi, Test
from ..shapes import Invalid, Range, Size
from .fields import (
    GROUP,
    MEMBER,
    PARTITION,
    TOPIC,
    TOPIC_ID,
    TRANSACTIONAL_ID,
    TopicNames,
    Wanted,
    check_of,
    fields_of,
    named,
)

FETCH = 1
VALUES_KEPT = 1000  # of which a pattern knows whether they are like it
SESSIONS_MAX = 1000  # of which a matcher knows whether they have what it is for
PATTERN = Size(1, 1000)
Where = Callable[[Mapping[str, object]], bool]
"""Whether an element of a request or reply is chosen, by its roles (`fields`)."""


@dataclass(frozen=True)
class Match:
    """Which requests. What is not given matches all. Texts are patterns: `orders-*`, `consumer-?`, `[ab]*`."""

    api: Annotated[
        str | int | None, "Names or keys of APIs, with commas between them: `Fetch`, `Produce,1`.", PATTERN
    ] = None
    versions: Annotated[str | int | None, "Versions: `7`, `4-9`, `12+`.", PATTERN] = None
    client_id: Annotated[str | None, "The client id.", PATTERN] = None
    principal: Annotated[str | None, "The principal: `User:alice`.", PATTERN] = None
    listener: Annotated[str | None, "The name of the listener.", PATTERN] = None
    node: Annotated[
        int | None,
        "The id of the node that was asked; of a fault within the broker, of the node that leads the partition.",
    ] = None
    topic: Annotated[str | None, "A topic that the request names.", PATTERN] = None
    partition: Annotated[int | None, "A partition that the request names."] = None
    group: Annotated[str | None, "The group that the request names.", PATTERN] = None
    member: Annotated[str | None, "The member id that the request names.", PATTERN] = None
    transactional_id: Annotated[str | None, "The transactional id that the request names.", PATTERN] = None
    nth: Annotated[int | None, "Only the n-th of these requests, from 1.", Range(1)] = None
    every: Annotated[int | None, "Only every n-th of these requests.", Range(1)] = None
    share: Annotated[float, "Only a share of these requests, which the seed chooses.", Range(0, 1)] = 1.0
    seed: Annotated[int, "Decides everything that is left to chance."] = 0

    def __post_init__(self) -> None:
        try:
            found = self.version_range
        except ValueError:
            found = schema.NONE
        if found is not None and found.low > found.high:
            raise Invalid("versions", f"must be like 7, 4-9 or 12+, found {self.versions}")
        if self.principal is not None and not any(one in self.principal for one in ":*?["):
            raise Invalid("principal", f"must be like User:{self.principal}, with the type of the principal")

    @property
    def version_range(self) -> schema.Versions | None:
        """The versions; None for all."""
        return None if self.versions is None else schema.Versions.parse(str(self.versions))


def check_listener(match: Match, names: Collection[str]) -> None:
    """Raises Invalid if none of these listeners is one of the match."""
    if match.listener is not None and not any(map(_text(match.listener), names)):
        raise Invalid("listener", f"no listener {match.listener!r} (there are {', '.join(names)})")


class Selection:
    """Which of the requests of a match are chosen. `matched`: how many there were.

    What is left to chance is drawn from a generator for each of them, by the seed of the match and its number. So it is
    the same in every run, whatever else is going on.
    """

    def __init__(self, match: Match) -> None:
        self._match = match
        self.matched = 0

    def chance(self) -> Random | None:
        """Counts a request; returns the generator for it, None if it is not chosen."""
        match = self._match
        self.matched += 1
        if match.nth is not None and self.matched != match.nth:
            return None
        if match.every is not None and self.matched % match.every:
            return None
        chance = Random(f"{match.seed}/{self.matched}")
        return None if match.share < 1 and chance.random() >= match.share else chance


TestOfContext = Callable[[Asked], bool]


def topic_names(broker: Broker) -> TopicNames:
    return lambda topic_id: broker.image.topic_names.get(topic_id) or ""


class Apis(Protocol):
    """The APIs that there are: those of a server, or all that Kafka has."""

    def api_keys(self) -> Collection[int]: ...

    def api(self, key: int) -> MatchedApi: ...


def apis_of(match: Match, server: Apis) -> tuple[int, ...] | None:
    """Returns the keys of the APIs of a match, None for all. Raises Invalid."""
    if match.api is None:
        return None
    keys = {server.api(key).name: key for key in server.api_keys()}
    by_name = {name.lower(): key for name, key in keys.items()}
    found = []
    for word in str(match.api).split(","):
        name = word.strip().lower()
        key = int(name) if name.isdecimal() else by_name.get(name)
        if key is None or key not in keys.values():
            from difflib import get_close_matches

            close = get_close_matches(word.strip(), keys, 1, 0.5)
            raise Invalid("api", f"no API {word.strip()!r}{f' (did you mean {close[0]}?)' if close else ''}")
        found.append(key)
    return tuple(dict.fromkeys(found))


def _session_of(context: Asked, request: object) -> Fetch | None:
    session_id = getattr(request, "session_id", 0)
    sessions = context.broker.extensions.get("fetch_sessions") if session_id else None
    found: Fetch | None = None if sessions is None else sessions.get(session_id)
    return found


class InSessions:
    """Which fetch sessions have what is looked for (KIP-227). That is found when a session has changed."""

    def __init__(self, is_there: Callable[[Fetch], bool]) -> None:
        self._is_there = is_there
        self._known: dict[int, tuple[tuple[int, int], bool]] = {}

    def has(self, context: Asked, request: Struct) -> bool:
        """Whether the session of a Fetch has it."""
        session = _session_of(context, request)
        if session is None:
            return False
        state = session.created_ms, session.changes
        known = self._known.get(session.id)
        if known is None or known[0] != state:
            if len(self._known) >= SESSIONS_MAX:
                self._known.clear()
            known = self._known[session.id] = state, self._is_there(session)
        return known[1]


class Matcher:
    """A `Match`, made ready."""

    def __init__(self, match: Match, topics: TopicNames) -> None:
        self._topics = topics
        self._tests = _tests(match)
        self._elements: Wanted = _wanted({TOPIC: match.topic, PARTITION: match.partition})
        whole = {GROUP: match.group, MEMBER: match.member, TRANSACTIONAL_ID: match.transactional_id}
        self._whole: Wanted = _wanted(whole)
        self._wanted: Wanted = {**self._whole, **self._elements}
        self._prepared: dict[int, Test | None] = {}
        self._in_sessions = InSessions(lambda session: bool(self._chosen(session)))

    def takes(self, context: Asked, request: Struct) -> bool:
        """Whether a request is one of these."""
        test = self.test_of(context.api)
        return test is not None and test(context, request)

    def test_of(self, api: MatchedApi) -> Test | None:
        """Returns the test of requests of an API; None if there can be none."""
        if api.key not in self._prepared:
            self._prepared[api.key] = self.prepared(api)
        return self._prepared[api.key]

    def prepared(self, api: MatchedApi, by_reply: bool = False) -> Test | None:
        """Returns the test of requests of an API; None if there can be none. `by_reply`: topic and partition are looked
        for in the reply instead.
        """
        tests, wanted = self._tests, self._whole if by_reply else self._wanted
        check = check_of(api.request, wanted, self._topics) if wanted else None
        if wanted and check is None:
            return None
        if by_reply and not self._elements.keys() <= fields_of(api.request).roles | fields_of(api.response).roles:
            return None
        sessions = api.key == FETCH and not by_reply and not self._whole

        def takes(context: Asked, request: Struct) -> bool:
            for test in tests:
                if not test(context):
                    return False
            return check is None or check(request) or (sessions and self._in_sessions.has(context, request))

        return takes

    def fetched(self, context: Asked, request: object) -> list[tuple[str, bytes, int]]:
        """Returns the chosen partitions of a fetch session: topic, topic id and partition."""
        session = _session_of(context, request)
        return [] if session is None else self._chosen(session)

    def _chosen(self, session: Fetch) -> list[tuple[str, bytes, int]]:
        found = []
        for key, entry in session.entries.items():
            topic = self._topics(entry.topic_id) if session.by_id else entry.topic
            if self.where({TOPIC: topic, PARTITION: key[1]}):
                found.append((topic, entry.topic_id, key[1]))
        return found

    def replied(self, roles: Mapping[str, object], exchange: Exchange) -> bool:
        """Whether an element of a reply is chosen. The request must say what its roles do not."""
        if not self.where(roles):
            return False
        says = {TOPIC if role == TOPIC_ID else role for role in roles}
        return self._elements.keys() <= says or self.takes(exchange.context, exchange.request)

    def where(self, roles: Mapping[str, object]) -> bool:
        """Whether an element is chosen. What its roles do not say is taken as right."""
        for role, test in self._elements.items():
            value = roles.get(role)
            if value is None and role == TOPIC and "topic_id" in roles:
                value = named(roles["topic_id"], TOPIC, self._topics)
            if value is not None and not test(value):
                return False
        return True


def _tests(match: Match) -> list[TestOfContext]:
    tests: list[TestOfContext] = []
    if (versions := match.version_range) is not None:
        tests.append(lambda context: context.version in versions)
    if match.client_id is not None:
        client_id = _text(match.client_id)
        tests.append(lambda context: client_id(context.client_id or ""))
    if match.principal is not None:
        principal = _text(match.principal)
        tests.append(lambda context: principal(context.principal))
    if match.listener is not None:
        listener = _text(match.listener)
        tests.append(lambda context: listener(context.listener))
    if match.node is not None:
        node = match.node
        tests.append(lambda context: context.node_id == node)
    return tests


def _wanted(values: Mapping[str, str | int | None]) -> Wanted:
    return {
        role: _text(value) if isinstance(value, str) else value.__eq__
        for role, value in values.items()
        if value is not None
    }


def is_pattern(text: str) -> bool:
    """Whether a text stands for all that is like it, and not for itself only."""
    return any(one in text for one in "*?[")


def _text(pattern: str) -> Callable[[object], bool]:
    """Returns a test for a pattern."""
    if not is_pattern(pattern):
        return partial(str.__eq__, pattern)
    like = re.compile(translate(pattern)).match
    return lru_cache(VALUES_KEPT)(lambda value: like(str(value)) is not None)
