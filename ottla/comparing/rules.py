"""What may differ between two brokers: rules with a reason each, in files of YAML.

`rules.yaml` has the usual ones, `live.yaml` those for two brokers that are asked at the same time, `replay.yaml` those
for a trace and a broker.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import yaml

from ..protocol.errors import CODES
from .differences import ABSENT, Difference
from .identities import NOTHING, shape

USUAL, LIVE, REPLAY = (Path(__file__).with_name(f"{name}.yaml") for name in ("rules", "live", "replay"))
ANY_API: Final = "*"
_IN_BRACKETS = re.compile(r"\[[^\]]*\]")


class RulesError(ValueError):
    """A file of rules that is not valid."""


@dataclass(frozen=True)
class Rule:
    """One thing that may differ.

    `api`: a name or `*`. `path`: a pattern such as `*.port`; it is held against the path with the names in brackets,
    and against the path without them. `errors`: both values are one of these codes. `same`: what must not differ:
    `presence` (both name something, or neither), `length`, `shape` (all but what is random in an id), `elements` (the
    elements that both have: only a missing one is hidden).
    """

    api: str
    path: str
    reason: str
    errors: tuple[int, ...] = ()
    same: str = ""

    def __str__(self) -> str:
        return f"{self.api} {self.path}"

    def hides(self, api: str, difference: Difference) -> bool:
        if self.api not in (ANY_API, api) or not is_path(self.path, difference.path):
            return False
        a, b = difference.a, difference.b
        if self.errors and not (a in self.errors and b in self.errors):
            return False
        return not self.same or SAME[self.same](a, b)


def _is_present(value: object) -> bool:
    return value not in (*NOTHING, ABSENT, b"", 0)


def _length(value: object) -> int:
    return len(value) if isinstance(value, str | bytes | list) else -1


SAME: Final = {
    "presence": lambda a, b: _is_present(a) == _is_present(b),
    "length": lambda a, b: _length(a) == _length(b),
    "elements": lambda a, b: ABSENT in (a, b),
    "shape": lambda a, b: shape(a) == shape(b),
}


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def is_path(pattern: str, path: str) -> bool:
    """Whether a path matches a pattern, with or without its names in brackets."""
    found = _pattern(pattern)
    return bool(found.fullmatch(path) or found.fullmatch(_IN_BRACKETS.sub("", path)))


def general(path: str) -> str:
    """A path without the names of elements."""
    return _IN_BRACKETS.sub("[]", path)


class Rules:
    """Rules in order; the first that hides a difference is counted."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self.hidden: Counter[Rule] = Counter()

    def rule_for(self, api: str, difference: Difference) -> Rule | None:
        """The rule that hides a difference; nothing is counted."""
        return next((rule for rule in self.rules if rule.hides(api, difference)), None)

    def left(self, api: str, found: Iterable[Difference]) -> Iterator[Difference]:
        """Yields the differences that no rule hides."""
        for difference in found:
            rule = self.rule_for(api, difference)
            if rule is None:
                yield difference
            else:
                self.hidden[rule] += 1


def read(*files: Path) -> Rules:
    """The usual rules, and those of files. Raises RulesError, OSError."""
    return Rules(rule for file in (*files, USUAL) for rule in _of_file(file))


def _of_file(file: Path) -> Iterator[Rule]:
    try:
        found = yaml.safe_load(file.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RulesError(f"{file}: {error}") from None
    if not isinstance(found, list):
        raise RulesError(f"{file}: not a list of rules")
    for number, one in enumerate(found, 1):
        try:
            yield _rule(one)
        except ValueError as error:
            raise RulesError(f"{file}: rule {number}: {error}") from None


def _rule(given: object) -> Rule:
    if not isinstance(given, Mapping):
        raise ValueError("not a table of keys")
    unknown = sorted({str(key) for key in given} - {"api", "path", "reason", "errors", "same"})
    if unknown:
        raise ValueError(f"unknown key {unknown[0]}")
    texts = {key: given.get(key, "") for key in ("api", "path", "reason", "same")}
    for key, value in texts.items():
        if not isinstance(value, str) or (not value and key != "same"):
            raise ValueError(f"{key}: a text is needed")
    if texts["same"] and texts["same"] not in SAME:
        raise ValueError(f"same: one of {', '.join(SAME)}")
    names = given.get("errors") or []
    try:
        codes = tuple(CODES[name] for name in names)
    except (KeyError, TypeError):
        raise ValueError("errors: a list of names such as NOT_COORDINATOR") from None
    return Rule(texts["api"], texts["path"], texts["reason"], codes, texts["same"])
