"""Features: the levels that this broker supports, and the levels of a new cluster."""

from __future__ import annotations

import json
from functools import cache
from typing import NotRequired, TypedDict

from . import schema_files

KRAFT_VERSION = "kraft.version"
METADATA_VERSION = "metadata.version"
ELR_VERSION = "eligible.leader.replicas.version"

# metadata versions: Kafka does not start on metadata that their version does not have
SCRAM_SINCE = 11  # 3.5-IV2
TOKENS_SINCE = 14  # 3.6-IV2, delegation tokens
CONTROLLERS_SINCE = 15  # 3.7-IV0, registrations of controllers
SHRINKS_WITHIN_EPOCH_SINCE = 12  # 3.6-IV0, replicas leave those in sync without a new leader epoch
DIRECTORIES_SINCE = 17  # 3.7-IV2, log directories of brokers and of replicas
ELR_SINCE = 23  # 4.0-IV1, eligible leader replicas
CORDONED_SINCE = 30  # 4.3-IV0, cordoned log directories
RANGES_SINCE = 32  # 4.4-IV1, ACLs with ranges of hosts


class _Fact(TypedDict):
    """What `features.json` has of a feature: `changing` of `metadata.version`, `default` of all others."""

    minimum: int
    latest: int
    default: NotRequired[int]
    changing: NotRequired[list[int]]


@cache
def _facts() -> dict[str, _Fact]:
    loaded: dict[str, _Fact] = json.loads(schema_files.read("features.json"))
    return loaded


@cache
def supported() -> dict[str, tuple[int, int]]:
    """Returns the lowest and highest supported level by feature."""
    return {name: (fact["minimum"], fact["latest"]) for name, fact in _facts().items()}


def changing_metadata() -> tuple[int, ...]:
    """Returns the levels of `metadata.version` that changed what records say; between others it can go down."""
    return tuple(_facts()[METADATA_VERSION]["changing"])


@cache
def defaults() -> dict[str, int]:
    """Returns the levels that a new cluster has as records; `kraft.version` is not among them."""
    found = {METADATA_VERSION: _facts()[METADATA_VERSION]["latest"]}
    for name, fact in _facts().items():
        if name not in (METADATA_VERSION, KRAFT_VERSION):
            found[name] = fact["default"]
    return found
