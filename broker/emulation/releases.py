"""What each release of Kafka has: versions of APIs, error codes, features. Read from `schemas/releases.json`, which is
derived from the jars of the releases.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...protocol.config_def import numbers_of
from ...protocol.errors import Errors
from ...protocol.legacy import Checks

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

    @property
    def checks(self) -> Checks:
        """What the release checks in compressed messages. Those before 0.10 look at neither their versions nor their
        checksums, and not whether there are any; 0.10 looks at no checksums of version 0.
        """
        return Checks(
            checksums_since=2 - self.message_format,
            versions=self.message_format > 0,
            bases=self.message_format > 1,
            takes_none=self.message_format == 0,
            holding_none=Errors.UNKNOWN_SERVER_ERROR if self.message_format < 2 else Errors.CORRUPT_MESSAGE,
            zstd=Errors.UNKNOWN_SERVER_ERROR if self.is_before(2, 1) else Errors.CORRUPT_MESSAGE,
        )


@cache
def releases() -> dict[str, Release]:
    """Returns all releases by name, in their order."""
    found = {}
    for name, facts in json.loads(FACTS.read_text()).items():
        found[name] = Release(
            name,
            facts["version"],
            numbers_of(name),
            {int(key): (low, high) for key, (low, high) in facts["apis"].items()},
            frozenset(facts["errors"]),
            facts["features"],
        )
    return found
