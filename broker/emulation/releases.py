"""What each release of Kafka has: versions of APIs, error codes, features. Read from `schemas/releases.json`, which is
derived from the jars of the releases.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from ...protocol.config_def import numbers_of
from ...protocol.errors import Errors
from ...protocol.legacy import Checks
from ..config.config import Config

FACTS = Path(__file__).resolve().parents[2] / "schemas" / "releases.json"


@dataclass(frozen=True, slots=True)
class Release:
    """One release."""

    name: str
    version: str  # the one of the jars that the facts are from
    number: tuple[int, ...]
    apis: dict[int, tuple[int, int]]  # the lowest and the highest version by key
    errors: frozenset[int]
    features: dict[str, int]  # the highest levels; none with ZooKeeper
    zookeeper_apis: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Those of its brokers with ZooKeeper, where `apis` are those of brokers with KRaft: from 3.3 to 3.9."""

    @property
    def with_zookeeper(self) -> Release:
        """The release as its brokers with ZooKeeper are."""
        return replace(self, apis=self.zookeeper_apis, features={}, zookeeper_apis={}) if self.zookeeper_apis else self

    @property
    def has_zookeeper(self) -> bool:
        """Whether its brokers have ZooKeeper: those of before 3.3 have, and those of before 4.0 may have."""
        return self.is_before(4, 0) and not self.zookeeper_apis

    def is_before(self, *number: int) -> bool:
        return self.number < number

    @property
    def message_format(self) -> int:
        """The version of message sets that the release writes: 2 since 0.11, 1 since 0.10, 0 before."""
        return 0 if self.is_before(0, 10) else 1 if self.is_before(0, 11) else 2

    @property
    def checks(self) -> Checks:
        """What the release checks in compressed messages. Those before 0.10 look at neither their versions nor their
        checksums, and not whether there are any, but want LZ4 of their time (KIP-57) and one stream of snappy; 0.10
        looks at no checksums of version 0.
        """
        return Checks(
            checksums_since=2 - self.message_format,
            versions=self.message_format > 0,
            bases=self.message_format > 1,
            takes_none=self.message_format == 0,
            oldest_lz4=self.message_format == 0,
            one_stream=self.message_format == 0,
            takes_short_gzip=self.message_format == 0 and not self.is_before(0, 9),
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
            _versions(facts["apis"]),
            frozenset(facts["errors"]),
            facts["features"],
            _versions(facts.get("zookeeper_apis", {})),
        )
    return found


def release_of(config: Config) -> Release:
    """Returns the release that a configuration emulates."""
    found = releases()[config["ottla.emulate"]]
    return found.with_zookeeper if config.uses_zookeeper else found


def _versions(facts: dict[str, list[int]]) -> dict[int, tuple[int, int]]:
    return {int(key): (low, high) for key, (low, high) in facts.items()}
