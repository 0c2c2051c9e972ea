"""The forms of entities' nodes: configurations, and what has no node when there is nothing: rights and tokens."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol import zookeeper_paths as paths
from ...protocol import zookeeper_values as values
from . import rights, tokens
from .found import Entity, Values


def goes_when_empty(entity: Entity) -> bool:
    """Whether an entity that has nothing has no node either."""
    return rights.is_rights(entity) or tokens.is_token(entity)


def parser_of(entity: Entity) -> Callable[[bytes], Values]:
    """Returns what reads the value of an entity's node; it raises Malformed."""
    if tokens.is_token(entity):
        return tokens.values_of
    return rights.values_of if rights.is_rights(entity) else values.config_of


def value_of(entity: Entity, found: Values, release: paths.Number) -> bytes:
    """Returns the value of an entity's node."""
    if tokens.is_token(entity):
        return tokens.value_of(found, release)
    return rights.value_of(found, release) if rights.is_rights(entity) else values.config(found)


def change_of(entity: Entity, release: paths.Number) -> tuple[str, bytes]:
    """Returns the path without its number, and the value, of what says that an entity has changed."""
    if tokens.is_token(entity):
        return f"{paths.TOKEN_CHANGES}/{paths.TOKEN_CHANGE_PREFIX}", entity[1].encode()
    if rights.is_rights(entity):
        return rights.change_of(entity, release)
    return f"{paths.CONFIG_CHANGES}/{paths.CONFIG_CHANGE_PREFIX}", values.config_change(*entity, release)
