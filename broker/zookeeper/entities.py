"""Entities with configurations in ZooKeeper, as the metadata has them: topics, and users and clients with quotas."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from ...coordinator.metadata import configs, quotas
from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.quotas import CLIENT_ID, USER, Alteration
from ...coordinator.metadata.state import TOPIC, MetadataState, Quota
from ...coordinator.shard import Result
from ...protocol import zookeeper_paths as paths
from ...protocol.config_def import ConfigInvalid, ConfigKey
from ...protocol.errors import ApiError
from ..controller.controller import MetadataController
from .tree import Entity, Values

logger = logging.getLogger("ottla.kafka.zookeeper.ZooKeeperClient")
QUOTAS = {
    quotas.PRODUCER_BYTE_RATE,
    quotas.CONSUMER_BYTE_RATE,
    quotas.REQUEST_PERCENTAGE,
    quotas.CONTROLLER_MUTATION_RATE,
}


class Entities:
    """`known`: the keys that topics may have."""

    def __init__(self, metadata: MetadataController, image: MetadataState, known: Mapping[str, ConfigKey]) -> None:
        self._metadata = metadata
        self._image = image
        self._known = known

    # what is here

    def here(self, entity: Entity) -> Values:
        """Returns the configuration of an entity, empty if there is none."""
        kind, name = entity
        if kind == paths.TOPICS:
            return dict(self._image.config_of(TOPIC, name))
        quota_entity = entity_of(kind, name)
        found = ((key, self._image.quotas.get(Quota(quota_entity, key))) for key in sorted(QUOTAS))
        return {key: quota_text(record.value) for key, record in found if record is not None}

    def all_but_topics(self) -> dict[Entity, None]:
        """Returns the entities that have a configuration, without topics."""
        return {entity: None for entity in map(quota_node, self._image.quotas) if entity is not None}

    def changed(self, delta: MetadataDelta) -> dict[Entity, None]:
        """Returns the entities whose configuration was changed by a commit."""
        found: dict[Entity, None] = {
            (paths.TOPICS, name): None for kind, name in delta.configs if kind == TOPIC and name in self._image.topics
        }
        return found | {entity: None for entity in map(quota_node, delta.quotas) if entity is not None}

    # what is there

    def taken(self, entity: Entity, there: Values) -> Values:
        """Returns what this broker can have of a configuration in ZooKeeper, as `here` would return it. The rest stays
        there: keys that it does not know, and values that earlier releases took.
        """
        found = {key: self._taken(entity[0], key, value) for key, value in there.items()}
        return {key: value for key, value in found.items() if value is not None}

    def _taken(self, kind: str, key: str, value: str) -> str | None:
        try:
            if kind == paths.TOPICS:
                known = self._known.get(key)
                return value if known is not None and known.parse(value) is not None else None
            return quota_text(float(value)) if key in QUOTAS else None
        except (ConfigInvalid, ValueError, OverflowError):
            return None

    async def change(self, entity: Entity, changes: Mapping[str, str | None]) -> ApiError | None:
        """Changes single keys of an entity; returns the error if that is refused. Fails with ApiError."""
        kind, name = entity
        controller = self._metadata.controller
        if kind == paths.TOPICS:
            operations = [(key, configs.DELETE if one is None else configs.SET, one) for key, one in changes.items()]
            wanted = [(TOPIC, name, operations)]
            return (await self._metadata.submit(partial(configs.incremental_alter_configs, controller, wanted)))[0]
        limits = {key: None if one is None else float(one) for key, one in changes.items()}
        asked = [Alteration(entity_of(kind, name), limits, False)]

        def alter() -> Result[dict[quotas.Entity, ApiError | None]]:
            return quotas.alter(controller, asked, ())

        return next(iter((await self._metadata.submit(alter)).values()))


def quota_node(quota: Quota) -> Entity | None:
    """Returns the entity that a quota belongs to; None for those of addresses, which ZooKeeper does not get."""
    named = {kind: paths.DEFAULT_ENTITY if name is None else paths.sanitized(name) for kind, name in quota.entity}
    if set(named) == {USER, CLIENT_ID}:
        return paths.USERS, f"{named[USER]}/{paths.CLIENTS}/{named[CLIENT_ID]}"
    if USER in named:
        return paths.USERS, named[USER]
    return (paths.CLIENTS, named[CLIENT_ID]) if CLIENT_ID in named else None


def quota_text(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def entity_of(kind: str, name: str) -> quotas.Entity:
    """Returns the entity of client quotas that a node's name says, its parts in order."""

    def named(part: str) -> str | None:
        return None if part == paths.DEFAULT_ENTITY else paths.desanitized(part)

    if kind == paths.CLIENTS:
        return ((CLIENT_ID, named(name)),)
    user, separator, client = name.partition(f"/{paths.CLIENTS}/")
    if separator:
        return ((CLIENT_ID, named(client)), (USER, named(user)))
    return ((USER, named(user)),)
