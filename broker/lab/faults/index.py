"""Which rules a request may be for, found at once for many rules.

Rules that name a client id, a group, a topic or the like are found by it: for the rules that name a topic, the topics
of a request are looked up one after the other, however many rules there are. What is found is then tested in full.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import translate
from functools import lru_cache
from typing import Final, NamedTuple

from ....protocol.structs import Struct
from ...replica.fetch_sessions import Entry
from ..seam import Asked
from .fields import GROUP, MEMBER, PARTITION, TOPIC, TRANSACTIONAL_ID, TopicNames, finder_of
from .matching import FETCH, SESSIONS_MAX, Match, Takes

Wanted = Callable[[object], bool]
Might = Callable[[Asked, Struct], bool]
"""Whether a request names one of the values of some rules."""
VALUES_KEPT: Final = 1000  # of which a test knows the result
OF_CLIENT: Final = ("client_id", "principal", "listener")
OF_REQUEST: Final = (GROUP, TRANSACTIONAL_ID, MEMBER, TOPIC, PARTITION)
OF_REPLY: Final = (TOPIC, PARTITION)


class Indexed(NamedTuple):
    """A rule: its match, the test of its requests, and whether it looks for topic and partition in the reply."""

    match: Match
    takes: Takes
    by_reply: bool


class Index:
    """The rules that requests of an API can match. `request`: the name of its schema."""

    def __init__(self, key: int, request: str, rules: Iterable[Indexed], topics: TopicNames) -> None:
        by_name: dict[str, list[Indexed]] = {}
        for one in rules:
            by_name.setdefault(_name(key, one), []).append(one)
        self._groups: list[tuple[Might | None, tuple[Takes, ...]]] = [
            (self._might(key, request, name, some, topics), tuple(one.takes for one in some))
            for name, some in by_name.items()
        ]

    def _might(self, key: int, request: str, name: str, rules: list[Indexed], topics: TopicNames) -> Might | None:
        if not name:
            return None
        wanted = values_test(getattr(one.match, name) for one in rules)
        if name in OF_CLIENT:
            return lambda context, _: wanted(getattr(context, name) or "")
        finder = finder_of(request, name)
        if key == FETCH and name in OF_REPLY:
            sessions = _Sessions(name, wanted, topics)
            return lambda context, asked: finder(asked, wanted, topics) or sessions.has(context, asked)
        return lambda _, asked: finder(asked, wanted, topics)

    def concerns(self, context: Asked, request: Struct) -> bool:
        """Whether a request matches one of the rules."""
        for might, group in self._groups:
            if might is None or might(context, request):
                for takes in group:
                    if takes(context, request):
                        return True
        return False


def _name(key: int, rule: Indexed) -> str:
    """By which of its values a rule is found; empty if it must be tested for each request. What a Fetch is answered is
    in the request or in its session, too.
    """
    for name in (*OF_CLIENT, *OF_REQUEST):
        if getattr(rule.match, name) is not None and (key == FETCH or not (rule.by_reply and name in OF_REPLY)):
            return name
    return ""


class _Sessions:
    """Which fetch sessions have a topic, or a partition, that is wanted (KIP-227). That is looked for when a session
    has changed.
    """

    def __init__(self, name: str, wanted: Wanted, topics: TopicNames) -> None:
        self._name, self._wanted, self._topics = name, wanted, topics
        self._known: dict[int, tuple[tuple[int, int], bool]] = {}

    def has(self, context: Asked, request: Struct) -> bool:
        """Whether the session of a Fetch has one."""
        session_id = getattr(request, "session_id", 0)
        sessions = context.broker.extensions.get("fetch_sessions") if session_id else None
        session = sessions.get(session_id) if sessions is not None else None
        if session is None:
            return False
        state = session.created_ms, session.changes
        known = self._known.get(session_id)
        if known is None or known[0] != state:
            if len(self._known) >= SESSIONS_MAX:
                self._known.clear()
            known = self._known[session_id] = state, any(map(self._is_wanted, session.entries.values()))
        return known[1]

    def _is_wanted(self, entry: Entry) -> bool:
        if self._name == PARTITION:
            return self._wanted(entry.key[1])
        return self._wanted(entry.topic or self._topics(entry.topic_id))


def values_test(values: Iterable[str | int]) -> Callable[[object], bool]:
    """Returns the test whether a value is one of these, or like one of these patterns."""
    plain, patterns = set(), []
    for value in values:
        if isinstance(value, str) and any(one in value for one in "*?["):
            patterns.append(translate(value))
        else:
            plain.add(value)
    known = frozenset(plain)
    if not patterns:
        return known.__contains__
    like = re.compile("|".join(patterns)).match

    @lru_cache(VALUES_KEPT)
    def test(value: object) -> bool:
        return value in known or (isinstance(value, str) and like(value) is not None)

    return test
