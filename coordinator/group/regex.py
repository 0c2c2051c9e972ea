"""Regular expressions in the syntax of RE2, which Kafka uses too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Protocol

import re2

from ...protocol.errors import ApiError, Errors

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.never_capture = True  # nothing asks what a group matched, and thousands of groups take seconds for each name
_OPTIONS.max_mem = 512 << 10  # some forty thousand instructions; what repetitions take grows with their square
COMPILED_AT_ONCE = 256  # characters

# what RE2 for Java says of the same mistakes
_DESCRIPTIONS = {
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid escape sequence": "invalid escape sequence",
    "trailing \\": "trailing backslash at end of expression",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid character class range": "invalid character class range",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


class Pattern(Protocol):
    """The part of RE2's interface that the result of `compiled` has."""

    def fullmatch(self, text: str) -> object: ...


def is_slow(regex: str) -> bool:
    """Whether compiling an expression may take longer than some milliseconds: a long one, or one with repetitions."""
    return len(regex) > COMPILED_AT_ONCE or "{" in regex


@lru_cache(64)
def tried(regex: str) -> Pattern | re2.error:
    """Compiles an expression, and keeps the outcome. May be called in a thread."""
    try:
        pattern: Pattern = re2.compile(regex, _OPTIONS)
    except re2.error as error:
        return error.with_traceback(None)
    return pattern


def compiled(regex: str) -> Pattern:
    """Returns a pattern whose `fullmatch` takes linear time. Raises ApiError(INVALID_REGULAR_EXPRESSION)."""
    found = tried(regex)
    if isinstance(found, re2.error):
        raise ApiError(Errors.INVALID_REGULAR_EXPRESSION)
    return found


def check(regex: str) -> None:
    """Compiles a pattern. Raises ApiError(INVALID_REGULAR_EXPRESSION)."""
    found = tried(regex)
    if isinstance(found, re2.error):
        raise ApiError(
            Errors.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {_described(found)}.",
            limit="regular-expression" if "too large" in _described(found) else "",
        )


def _described(error: Exception) -> str:
    raw = error.args[0] if error.args else ""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    return _DESCRIPTIONS.get(text.split(":")[0].strip(), text.split(":")[0].strip())


def matcher(regexes: Iterable[str], names: Iterable[str]) -> Callable[[], dict[str, frozenset[str]]]:
    """Returns a function to run in another thread, which returns the names that match each expression; none for an
    invalid one.
    """
    wanted, topics = list(regexes), list(names)
    return lambda: {regex: frozenset(_matches(regex, topics)) for regex in wanted}


def _matches(regex: str, topics: list[str]) -> list[str]:
    pattern = tried(regex)
    return [] if isinstance(pattern, re2.error) else [name for name in topics if pattern.fullmatch(name)]
