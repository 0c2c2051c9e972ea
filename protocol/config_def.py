"""Configuration keys as facts: type, default, allowed values, read from `schemas/configs.json`.

A value that is refused is refused in Kafka's words, as the controller's replies carry them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FACTS = Path(__file__).resolve().parent.parent / "schemas" / "configs.json"
INTEGERS = {"INT": 2**31, "LONG": 2**63, "SHORT": 2**15}
_RANGE = re.compile(r"\[(-?[\d.]+)?,?\.\.\.,?(-?[\d.]+)?\](?: or (-?\d+))?")
_CHOICE = re.compile(r"\[([\w, .-]+)\]")
_THROTTLED = re.compile(r"\*|(\d+:\d+(,\d+:\d+)*)?")


class ConfigInvalid(ValueError):
    """A value that its key does not take."""

    def __init__(self, name: str, value: Any, reason: str | None) -> None:
        super().__init__(f"Invalid value {value} for configuration {name}" + (f": {reason}" if reason else ""))
        self.name = name


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One configuration key. `default` is text as in a properties file, or None for no value."""

    name: str
    type: str
    default: str | None
    valid: str | None
    has_default: bool
    internal: bool

    def parse(self, text: str | None) -> Any:
        """The typed value; ConfigInvalid where the text is none that the key takes."""
        if text is None:
            return None
        value = _PARSERS[self.type](self, text.strip() if self.type != "PASSWORD" else text)
        self._check(value)
        return value

    def _check(self, value: Any) -> None:
        if self.valid is None:
            return
        if self.name.endswith("throttled.replicas"):
            if not _THROTTLED.fullmatch(",".join(value)):
                raise ConfigInvalid(
                    self.name,
                    ",".join(value),
                    f"{self.name} must be the literal '*' or a list of replicas in the following format: {self.valid}",
                )
        elif found := _RANGE.fullmatch(self.valid):
            self._check_range(value, *found.groups())
        elif found := _CHOICE.fullmatch(self.valid):
            choices = found[1].split(", ")
            for one in value if isinstance(value, list) else [value]:
                if one not in choices:
                    raise ConfigInvalid(self.name, one, f"String must be one of: {', '.join(choices)}")

    def _check_range(self, value: Any, low: str | None, high: str | None, also: str | None) -> None:
        number = float if self.type == "DOUBLE" else int
        if also is not None and value != int(also) and not number(low or 0) <= value <= number(high or 0):
            raise ConfigInvalid(self.name, value, f"Value must be between {low} and {high} or equal to {also}")
        if also is not None:
            return
        if low is not None and value < number(low):
            raise ConfigInvalid(self.name, value, f"Value must be at least {low}")
        if high is not None and value > number(high):
            raise ConfigInvalid(self.name, value, f"Value must be no more than {high}")


def _integer(key: ConfigKey, text: str) -> int:
    bound = INTEGERS[key.type]
    try:
        value = int(text) if re.fullmatch(r"[+-]?\d+", text) else None
    except ValueError:
        value = None
    if value is None or not -bound <= value < bound:
        raise ConfigInvalid(key.name, text, f"Not a number of type {key.type}")
    return value


def _double(key: ConfigKey, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigInvalid(key.name, text, f"Not a number of type {key.type}") from None


def _boolean(key: ConfigKey, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigInvalid(key.name, text, "Expected value to be either true or false")
    return text.lower() == "true"


def _list(key: ConfigKey, text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text else []


_PARSERS: dict[str, Callable[[ConfigKey, str], Any]] = {
    "INT": _integer,
    "LONG": _integer,
    "SHORT": _integer,
    "DOUBLE": _double,
    "BOOLEAN": _boolean,
    "LIST": _list,
    "STRING": lambda key, text: text,
    "CLASS": lambda key, text: text,
    "PASSWORD": lambda key, text: text,
}


@cache
def _facts() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(FACTS.read_text())
    return loaded


@cache
def keys(kind: str) -> dict[str, ConfigKey]:
    """The keys of `topic`, `broker` or `group`, by name."""
    return {
        name: ConfigKey(name, f["type"], f.get("default"), f.get("valid"), "default" in f, f.get("internal", False))
        for name, f in _facts()[kind].items()
    }


@cache
def topic_synonyms() -> dict[str, list[str]]:
    """The broker keys that give a topic key its default, the first one that is set."""
    found: dict[str, list[str]] = _facts()["synonyms"]
    return found


@cache
def dynamic_broker_keys() -> frozenset[str]:
    """The broker keys that may be changed while the broker runs."""
    return frozenset(_facts()["dynamic"])
