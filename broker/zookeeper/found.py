"""What is found in ZooKeeper: entities, and the values and versions of nodes."""

from __future__ import annotations

from dataclasses import dataclass

from ...protocol.zookeeper_values import TopicAssignment

Entity = tuple[str, str]
"""The kind of an entity with a configuration, and its name as nodes have it."""
Values = dict[str, str]
"""A configuration, or the rights on a resource (`rights.py`)."""


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic's node. `created`: the transaction that made the node (czxid)."""

    assignment: TopicAssignment
    created: int


@dataclass(frozen=True, slots=True)
class FoundConfig:
    """A configuration's node, and the version of its value, None if there is no node. `values`: None if malformed."""

    values: Values | None
    version: int | None
