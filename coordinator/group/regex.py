"""Subscriptions by regular expression, in the syntax of RE2, which Kafka uses too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import re2

from ...protocol.errors import ApiError, Errors
from .consumer import Resolved

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False

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


def compiled(regex: str) -> Any:
    """A pattern whose `fullmatch` takes no longer than its text is long. ApiError(INVALID_REGULAR_EXPRESSION)."""
    try:
        return re2.compile(regex, _OPTIONS)
    except re2.error:
        raise ApiError(Errors.INVALID_REGULAR_EXPRESSION) from None


def check(regex: str) -> None:
    """ApiError(INVALID_REGULAR_EXPRESSION)."""
    try:
        re2.compile(regex, _OPTIONS)
    except re2.error as error:
        raise ApiError(
            Errors.INVALID_REGULAR_EXPRESSION, f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {_described(error)}."
        ) from None


def _described(error: Exception) -> str:
    raw = error.args[0] if error.args else ""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    return _DESCRIPTIONS.get(text.split(":")[0].strip(), text.split(":")[0].strip())


def resolver(regexes: Iterable[str], names: Iterable[str], version: int, now_ms: int) -> Callable[[], dict[str, Resolved]]:
    """A function to be run elsewhere that matches topic names against the expressions; one that is invalid matches nothing."""
    wanted, topics = list(regexes), list(names)

    def resolve() -> dict[str, Resolved]:
        return {regex: Resolved(frozenset(_matches(regex, topics)), version, now_ms) for regex in wanted}

    return resolve


def _matches(regex: str, topics: list[str]) -> list[str]:
    try:
        pattern: Any = re2.compile(regex, _OPTIONS)
    except re2.error:
        return []
    return [name for name in topics if pattern.fullmatch(name)]
