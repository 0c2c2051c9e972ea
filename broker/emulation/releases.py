"""What each release of Kafka has: versions of APIs, error codes, features. Read from `schemas/releases.json`, which is
derived from the jars of the releases.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FACTS = Path(__file__).resolve().parents[2] / "schemas" / "releases.json"


@dataclass(frozen=True, slots=True)
class Release:
    """One release."""

    name: str
    version: str  # the one of the jars that the facts are from
    number: tuple[int, ...]
    apis: dict[int, tuple[int, int]]  # the lowest and the highest version by key
    errors: frozenset[int]
    features: dict[str, int]  # the highest levels

    def is_before(self, *number: int) -> bool:
        return self.number < number

    @property
    def message_format(self) -> int:
        """The version of message sets that the release writes: 2 since 0.11, 1 since 0.10, 0 before."""
        return 0 if self.is_before(0, 10) else 1 if self.is_before(0, 11) else 2


@cache
def releases() -> dict[str, Release]:
    """Returns all releases by name, in their order."""
    found = {}
    for name, facts in json.loads(FACTS.read_text()).items():
        found[name] = Release(
            name,
            facts["version"],
            tuple(map(int, name.split("."))),
            {int(key): (low, high) for key, (low, high) in facts["apis"].items()},
            frozenset(facts["errors"]),
            facts["features"],
        )
    return found
