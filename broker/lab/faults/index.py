"""Which rules a request may be for, found at once for many rules.

Rules that name a client id, a group, a topic or the like are found by it: for the rules that name a topic, the topics
of a request are looked up one after the other, however many rules there are. A rule that names several of these is
tested in full for a request that has each of them somewhere. Where rules name different things, a request is looked
through once for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from functools import lru_cache
from typing import Final, NamedTuple

from ....protocol.structs import Struct
from ...replica.fetch_sessions import Entry
from ..seam import Asked
from .fields import GROUP, MEMBER, OF_CONTEXT, PARTITION, TOPIC, TRANSACTIONAL_ID, TopicNames, finder_of
from .matching import FETCH, SESSIONS_MAX, Match, Takes

Wanted = Callable[[object], bool]
Might = Callable[[Asked, Struct], bool]
"""Whether a request names one of the values of some rules."""
VALUES_KEPT: Final = 1000  # of which a test knows the result
OF_REQUEST: Final = (GROUP, TRANSACTIONAL_ID, MEMBER, TOPIC, PARTITION)
OF_REPLY: Final = (TOPIC, PARTITION)


class Indexed(NamedTuple):
    """A rule: its match, the test of its requests, and whether it looks for topic and partition in the reply."""

    match: Match
    takes: Takes
    by_reply: bool


class _Alike(NamedTuple):
    """Rules that give values of the same names. `mights`: for each of these names."""

    mights: tuple[Might, ...]
    takes: tuple[Takes, ...]


class Index:
    """The rules that requests of an API can match. `request`: the name of its schema."""

    def __init__(self, key: int, request: str, rules: Iterable[Indexed], topics: TopicNames) -> None:
        self._key, self._request, self._topics = key, request, topics
        by_names: dict[tuple[str, ...], list[Indexed]] = {}
        for one in rules:
            by_names.setdefault(_names(key, one), []).append(one)
        self._alike = [
            _Alike(tuple(self._might({name: some}) for name in names), tuple(one.takes for one in some))
            for names, some in by_names.items()
        ]
        self._might_any: Might | None = None
        if len(by_names) > 1 and () not in by_names:
            by_last: dict[str, list[Indexed]] = {}
            for names, some in by_names.items():
                by_last.setdefault(names[-1], []).extend(some)
            self._might_any = self._might(by_last)

    def _might(self, rules: dict[str, list[Indexed]]) -> Might:
        """Returns the test for the values that rules give of a name each."""
        wanted = {name: values_test(getattr(one.match, name) for one in some) for name, some in rules.items()}
        find = finder_of(self._request, tuple(wanted))(self._topics, *wanted.values())
        of_reply = {name: test for name, test in wanted.items() if name in OF_REPLY}
        if self._key != FETCH or not of_reply:
            return find
        has = _Sessions(of_reply, self._topics).has
        return lambda context, asked: find(context, asked) or has(context, asked)

    def concerns(self, context: Asked, request: Struct) -> bool:
        """Whether a request matches one of the rules."""
        if self._might_any is not None and not self._might_any(context, request):
            return False
        for mights, group in self._alike:
            for might in mights:
                if not might(context, request):
                    break
            else:
                for takes in group:
                    if takes(context, request):
                        return True
        return False


def _names(key: int, rule: Indexed) -> tuple[str, ...]:
    """By which of its values a rule is found; none if it must be tested for each request. What a Fetch is answered is
    in the request or in its session, too.
    """
    of_request = [name for name in OF_REQUEST if key == FETCH or not (rule.by_reply and name in OF_REPLY)]
    return tuple(name for name in (*OF_CONTEXT, *of_request) if getattr(rule.match, name) is not None)


class _Sessions:
    """Which fetch sessions have a topic or a partition that is wanted (KIP-227). That is looked for when a session has
    changed.
    """

    def __init__(self, wanted: Mapping[str, Wanted], topics: TopicNames) -> None:
        self._topic, self._partition = wanted.get(TOPIC), wanted.get(PARTITION)
        self._topics = topics
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
        if self._partition is not None and self._partition(entry.key[1]):
            return True
        return self._topic is not None and self._topic(entry.topic or self._topics(entry.topic_id))


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
