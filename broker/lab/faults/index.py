"""Which rules a request may be for, found at once for many rules.

Rules that name a client id, a group, a topic or the like are found by it: for the rules that name a topic, the topics
of a request are looked up one after the other, however many rules there are. A rule that names several of these is
tested in full for a request that has each of them somewhere. Where rules name different things, a request is looked
through once for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Final, NamedTuple

from ....protocol.structs import Struct
from ...replica.fetch_sessions import Entry
from ..seam import Asked, MatchedApi, Test
from .fields import (
    GROUP,
    MEMBER,
    OF_CONTEXT,
    PARTITION,
    TOPIC,
    TRANSACTIONAL_ID,
    Sought,
    TopicNames,
    fields_of,
    finder_of,
    names_partitions_of_topics,
)
from .matching import FETCH, InSessions, Match, is_pattern

Wanted = Callable[[object], bool]
VALUES_KEPT: Final = 1000  # of which a test knows the result
OF_REQUEST: Final = (GROUP, TRANSACTIONAL_ID, MEMBER, TOPIC, PARTITION)
OF_REPLY: Final = (TOPIC, PARTITION)
VERSIONS: Final = "versions"


class Indexed(NamedTuple):
    """A rule: its match, the test of its requests, and whether it looks for topic and partition in the reply."""

    match: Match
    takes: Test
    by_reply: bool


def index_of(api: MatchedApi, rules: Iterable[Indexed], topics: TopicNames) -> Test | None:
    """Returns the test whether a request of an API matches one of its rules; None if there are none."""
    by_names: dict[tuple[str, ...], list[Indexed]] = {}
    for one in rules:
        by_names.setdefault(_names(api.key, one), []).append(one)
    if not by_names:
        return None
    tests = []
    for names, some in by_names.items():
        test, left = _any([one.takes for one in some]), names
        if names[-2:] == OF_REPLY and names_partitions_of_topics(fields_of(api.request)):
            test, left = _named(api, dict.fromkeys(OF_REPLY, some), topics, test, is_pair=True), names[:-2]
        for name in reversed(left):
            test = _named(api, {name: some}, topics, test)
        tests.append(test)
    if len(by_names) == 1 or () in by_names:
        return _any(tests)
    by_last: dict[str, list[Indexed]] = {}
    for names, some in by_names.items():
        by_last.setdefault(names[-1], []).extend(some)
    return _named(api, by_last, topics, _any(tests))


def _any(tests: Sequence[Test]) -> Test:
    """Returns the test whether one of these is true."""
    if len(tests) == 1:
        return tests[0]

    def any_of(context: Asked, request: Struct) -> bool:
        return any(test(context, request) for test in tests)

    return any_of


def _named(
    api: MatchedApi, rules: Mapping[str, Sequence[Indexed]], topics: TopicNames, then: Test, is_pair: bool = False
) -> Test:
    """Returns the test for requests that name, anywhere, a value that rules give of a name each; with `is_pair`, a
    partition of a topic. `then`: the test of those that do.
    """
    matches = {name: [one.match for one in some] for name, some in rules.items()}
    wanted = {name: _wanted(name, some) for name, some in matches.items()}
    of_reply = {name: test for name, test in wanted.items() if name in OF_REPLY}
    with_sessions = api.key == FETCH and bool(of_reply)
    has = _in_sessions(of_reply, topics, is_pair) if with_sessions else None
    plain = {name: value for name, some in matches.items() if (value := _plain_value(name, some)) is not None}
    sought = Sought(tuple(wanted), frozenset(plain), is_pair, with_sessions)
    return finder_of(api.request, sought)(topics, then, has, *(wanted | plain).values())


def _wanted(name: str, matches: Sequence[Match]) -> Wanted:
    if name != VERSIONS:
        return values_test(getattr(one, name) for one in matches)
    ranges = [range(found.low, found.high + 1) for one in matches if (found := one.version_range) is not None]
    return ranges[0].__contains__ if len(ranges) == 1 else lambda version: any(version in one for one in ranges)


def _plain_value(name: str, matches: Sequence[Match]) -> str | int | None:
    """Returns the value that matches give of a name, if it is one, and no pattern."""
    value: str | int = getattr(matches[0], name)
    if name == VERSIONS or any(getattr(one, name) != value for one in matches):
        return None
    return None if isinstance(value, str) and is_pattern(value) else value


def _names(key: int, rule: Indexed) -> tuple[str, ...]:
    """By which of its values a rule is found; none if it must be tested for each request. What a Fetch is answered is
    in the request or in its session, too.
    """
    of_request = [name for name in OF_REQUEST if key == FETCH or not (rule.by_reply and name in OF_REPLY)]
    return tuple(name for name in (*OF_CONTEXT, *of_request) if getattr(rule.match, name) is not None)


def _in_sessions(wanted: Mapping[str, Wanted], topics: TopicNames, is_pair: bool) -> Test:
    """Returns the test whether the session of a Fetch has a topic or a partition that is wanted; with `is_pair`, both
    at once.
    """
    of_topic, of_partition = wanted.get(TOPIC), wanted.get(PARTITION)

    def is_wanted(entry: Entry) -> bool:
        has_partition = of_partition is not None and of_partition(entry.key[1])
        if has_partition != is_pair:  # the topic says no more
            return has_partition
        return of_topic is not None and of_topic(entry.topic or topics(entry.topic_id))

    return InSessions(lambda session: any(map(is_wanted, session.entries.values()))).has


def values_test(values: Iterable[str | int]) -> Callable[[object], bool]:
    """Returns the test whether a value is one of these, or like one of these patterns."""
    plain, patterns = set(), []
    for value in values:
        if isinstance(value, str) and is_pattern(value):
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
