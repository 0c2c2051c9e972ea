"""Configuration keys as data: type, default and allowed values, read from `schemas/configs.json`.

Errors have Kafka's words, because the replies of the controller contain them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from . import schema_files

FACTS = "configs.json"
EARLIER_FACTS = "earlier_configs.json"
EARLIER_SYNONYMS = {
    "message.downconversion.enable": ["log.message.downconversion.enable"],
    "message.format.version": ["log.message.format.version"],
    "message.timestamp.difference.max.ms": ["log.message.timestamp.difference.max.ms"],
}
"""Those of the topic keys that only earlier releases had."""
DEFAULT_OF_TODAY = ("listener.security.protocol.map",)  # that of before 1.0 names a protocol of Kafka's own tests
Facts = dict[str, Any]  # of one key
Ranges = list[tuple[str, Facts | None]]
"""Of a key, the last release of a range, and what was different until then; None where there was no such key."""
Value = bool | int | float | str | list[str]
LISTS_ARE_SETS_SINCE = (4, 2)
INTEGERS = {"INT": 2**31, "LONG": 2**63, "SHORT": 2**15}
_RANGE = re.compile(r"\[(-?[\d.]+)?,?\.\.\.,?(-?[\d.]+)?\](?: or (-?\d+))?")
_CHOICE = re.compile(r"(\(case insensitive\) )?\[([\w, .-]+)\]")
_RELEASES = re.compile(r"a release of Kafka up to ([\d.]+)")
_RELEASE = re.compile(r"(0\.\d+\.\d+|[1-9]\d*\.\d+)(?:[.-].*)?")
_INTEGER = re.compile(r"[+-]?\d+")
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_SPACE = "".join(map(chr, range(33)))  # the characters that Java trims
_THROTTLED = re.compile(r",*\*,*|(\d+:\d+)?(,(\d+:\d+)?)*")


class ConfigInvalid(ValueError):
    """A value that is invalid for its key. `words`: the whole message where Kafka's differs from the usual one."""

    def __init__(self, name: str, value: object, reason: str | None, words: str | None = None) -> None:
        super().__init__(words or f"Invalid value {value} for configuration {name}" + (f": {reason}" if reason else ""))
        self.name = name


class ConfigKey(NamedTuple):
    """One configuration key. `default` is text as in a properties file, or None for no value; `empty`: whether a list
    may be empty; `repeats`: whether it keeps repeated values, and no value is checked for being empty: before 4.2 each
    did (KIP-1161).
    """

    name: str
    type: str
    default: str | None
    valid: str | None
    has_default: bool
    internal: bool
    empty: bool = True
    repeats: bool = False

    @property
    def is_throttled(self) -> bool:
        """Whether it is a list of replicas that are throttled."""
        return self.name.endswith("throttled.replicas")

    def parse(self, text: str | None) -> Any:
        """Returns the typed value. Raises ConfigInvalid if the text is invalid for the key."""
        if text is None:
            return None
        value = _PARSERS[self.type](self, text)
        self._check(value)
        return value

    def canonical(self, text: str) -> str:
        """Returns a valid value as Kafka writes it: `+5` is 5, and a list has no duplicates, unless it keeps them.
        Raises ConfigInvalid.
        """
        value = _PARSERS[self.type](self, text)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, list):
            return ",".join(value if self.is_throttled or self.repeats else dict.fromkeys(value))
        return java_double(value) if isinstance(value, float) else str(value)

    def _check(self, value: Any) -> None:
        if self.valid is None:
            return
        if self.is_throttled:
            if not _THROTTLED.fullmatch(",".join(value)):
                raise ConfigInvalid(
                    self.name,
                    f"[{', '.join(value)}]",
                    f"{self.name} must be the literal '*' or a list of replicas in the following format: {self.valid}",
                )
        elif found := _RANGE.fullmatch(self.valid):
            self._check_range(value, *found.groups())
        elif found := _RELEASES.fullmatch(self.valid):
            number, newest = release_number(value), numbers_of(found[1])
            if number is None or number[: len(newest)] > newest:
                raise ConfigInvalid(self.name, value, f"Version `{value}` is not a valid version")
        elif self.type == "LIST":
            self._check_list(value)
        elif self.valid == "non-empty string" and not value:
            raise ConfigInvalid(self.name, value, "String must be non-empty")
        else:
            self._check_choice([value])

    def _check_list(self, values: list[str]) -> None:
        if self.valid == "non-empty list":
            return  # the entries are checked where they are parsed
        if self.repeats:
            self._check_choice(values)
            return
        if not values and not self.empty:
            words = (
                f"Configuration '{self.name}' must not be empty. Valid values include: "
                f"{self.valid or 'any non-empty value'}"
            )
            raise ConfigInvalid(self.name, "", None, words)
        for one in values:
            if not one:
                raise ConfigInvalid(
                    self.name, ",".join(values), None, f"Configuration '{self.name}' values must not be empty."
                )
            self._check_choice([one])

    def _check_choice(self, values: list[str]) -> None:
        found = _CHOICE.fullmatch(self.valid or "")
        if found is None:
            return
        choices = found[2].split(", ")
        for one in values:
            if (one.upper() if found[1] else one) not in choices:
                kind = "String must be one of (case insensitive)" if found[1] else "String must be one of"
                raise ConfigInvalid(self.name, one, f"{kind}: {', '.join(choices)}")

    def _check_range(self, value: float, low: str | None, high: str | None, also: str | None) -> None:
        number = float if self.type == "DOUBLE" else int
        if also is not None:
            inside = (low is None or number(low) <= value) and (high is None or value <= number(high))
            if not inside and value != int(also):
                raise ConfigInvalid(
                    self.name, value, f"Value must be between {low} and {high or 'any'} or equal to {also}"
                )
            return
        shown = java_double(value) if isinstance(value, float) else value
        if low is not None and value < number(low):
            raise ConfigInvalid(self.name, shown, f"Value must be at least {low}")
        if high is not None and value > number(high):
            raise ConfigInvalid(self.name, shown, f"Value must be no more than {high}")


def _integer(key: ConfigKey, text: str) -> int:
    bound = INTEGERS[key.type]
    try:
        value = int(text) if _INTEGER.fullmatch(text.strip(_SPACE)) else None
    except ValueError:
        value = None
    if value is None or not -bound <= value < bound:
        raise ConfigInvalid(key.name, text, f"Not a number of type {key.type}")
    return value


def _double(key: ConfigKey, text: str) -> float:
    if not _DOUBLE.fullmatch(text.strip(_SPACE)):
        raise ConfigInvalid(key.name, text, f"Not a number of type {key.type}")
    return float(text.strip(_SPACE).rstrip("fFdD"))


def _boolean(key: ConfigKey, text: str) -> bool:
    value = text.strip(_SPACE).lower()
    if value not in ("true", "false"):
        raise ConfigInvalid(key.name, text, "Expected value to be either true or false")
    return value == "true"


def _list(key: ConfigKey, text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text.strip(_SPACE) else []


def java_double(value: float) -> str:
    """`Double.toString`: 0.0001 is 1.0E-4."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if not value or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal

    sign, digits, _ = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}E{Decimal(repr(value)).adjusted()}"


_PARSERS: dict[str, Callable[[ConfigKey, str], Value]] = {
    "INT": _integer,
    "LONG": _integer,
    "SHORT": _integer,
    "DOUBLE": _double,
    "BOOLEAN": _boolean,
    "LIST": _list,
    "STRING": lambda key, text: text.strip(_SPACE),
    "CLASS": lambda key, text: text.strip(_SPACE),
    "PASSWORD": lambda key, text: text,
}


@cache
def _facts(name: str = FACTS) -> Facts:
    loaded: Facts = json.loads(schema_files.read(name))
    return loaded


def numbers_of(release: str) -> tuple[int, ...]:
    """Returns the numbers of a release, which compare as releases do."""
    return tuple(map(int, release.split(".")))


def release_number(text: str) -> tuple[int, ...] | None:
    """Returns the numbers of the release that a value such as `0.10.2-IV0` or `1.1.1` names; None if it names none."""
    found = _RELEASE.fullmatch(text)
    return None if found is None else numbers_of(found[1])


def message_format(text: str) -> int:
    """Returns the version of messages that the release in a valid value wrote: 0, 1 since 0.10, 2 since 0.11."""
    number = release_number(text) or ()
    return 0 if number < (0, 10) else 1 if number < (0, 11) else 2


@cache
def keys(kind: str, release: str | None = None) -> dict[str, ConfigKey]:
    """Returns the keys of `topic`, `broker` or `group`, by name. `release`: an earlier one, which had others, and other
    defaults.
    """
    today = _facts()[kind]
    if release is None:
        return {name: _key(name, facts, None) for name, facts in today.items()}
    earlier = _facts(EARLIER_FACTS)[kind]
    found = {name: _key(name, facts, release) for name, facts in today.items() if name not in earlier}
    for name, ranges in earlier.items():
        facts = _facts_of(ranges, release, today.get(name))
        if facts is not None:
            found[name] = _key(name, facts, release)
    return dict(sorted(found.items()))


@cache
def keys_in_force(kind: str, release: str | None) -> dict[str, ConfigKey]:
    """Returns the keys that have an effect while an earlier release is emulated: those that it had, and later ones with
    the defaults that they had at first. The types are those of today, and so are defaults that were no value then, or a
    class of Java. `release`: None for today's.
    """
    if release is None:
        return keys(kind)
    today = _facts()[kind]
    found = {name: _key(name, facts, release) for name, facts in today.items()}
    for name, ranges in _facts(EARLIER_FACTS)[kind].items():
        now = today.get(name)
        facts = _facts_of(ranges, release, now)
        if facts is None and now is not None:
            facts = next(({**now, **one} for _, one in _from(ranges, release) if one is not None), now)
        if facts is not None and now is not None:
            facts = {**facts, "type": now["type"]}
            if not facts.get("default") or now["type"] == "CLASS" or name in DEFAULT_OF_TODAY:
                facts = now
        if facts is not None:
            found[name] = _key(name, facts, release)
    return dict(sorted(found.items()))


def lists_are_sets(release: str | None) -> bool:
    """Whether lists lose the values that are there already, as Kafka's do since 4.2 (KIP-1161). `release`: None for
    today's.
    """
    return release is None or numbers_of(release) >= LISTS_ARE_SETS_SINCE


def _key(name: str, facts: Facts, release: str | None) -> ConfigKey:
    return ConfigKey(
        name,
        facts["type"],
        facts.get("default"),
        facts.get("valid"),
        "default" in facts,
        facts.get("internal", False),
        facts.get("empty", True),
        not lists_are_sets(release),
    )


def _from(ranges: Ranges, release: str) -> Ranges:
    """Returns the ranges of releases that do not end before a release."""
    return [one for one in ranges if numbers_of(release) <= numbers_of(one[0])]


def _facts_of(ranges: Ranges, release: str, today: Facts | None) -> Facts | None:
    """Returns the facts of a key in a release; None if it had no such key."""
    left = _from(ranges, release)
    if not left:
        return today
    return None if left[0][1] is None else {**(today or {}), **left[0][1]}


@cache
def topic_synonyms() -> dict[str, list[str]]:
    """Returns, for each topic key, the broker keys that give its default; the first one that is set counts."""
    return {**_facts()["synonyms"], **EARLIER_SYNONYMS}


@cache
def dynamic_broker_keys(release: str | None = None) -> frozenset[str]:
    """Returns the broker keys that can be changed while the broker runs. `release`: an earlier one."""
    found = frozenset(_facts()["dynamic"])
    if release is None:
        return found
    earlier = {name: _from(ranges, release) for name, ranges in _facts(EARLIER_FACTS)["dynamic"].items()}
    changed = {name: left[0][1] for name, left in earlier.items() if left}
    return (found - changed.keys()) | {name for name, was in changed.items() if was}
