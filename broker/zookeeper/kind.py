"""What each kind of entities in ZooKeeper can do: topics, brokers, clients and users, rights on resources, tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ...coordinator.metadata.delta import MetadataDelta
from ...protocol.errors import ApiError
from .found import Entity, Values

Changes = Mapping[str, str | None]
"""Values by key; None where a key loses its value."""


class Kind(Protocol):
    """Entities of the metadata that have nodes in ZooKeeper."""

    def all(self) -> Iterable[Entity]:
        """Returns the entities that have something, without topics; some more than once."""
        ...

    def changed(self, delta: MetadataDelta) -> Iterable[Entity]:
        """Returns the entities of which a commit has changed something."""
        ...

    def is_shown(self, entity: Entity) -> bool:
        """Whether the release has an entity in ZooKeeper, and it is one of this broker's."""
        ...

    def here(self, entity: Entity) -> Values:
        """Returns what an entity has."""
        ...

    def taken(self, entity: Entity, key: str, value: str) -> str | None:
        """Returns a value as `here` would return it; None if this broker cannot have it. Raises ConfigInvalid,
        ValueError or OverflowError where it is none.
        """
        ...

    async def change(self, entity: Entity, changes: Changes) -> ApiError | None:
        """Changes what an entity has; returns the error if that is refused. Fails with ApiError."""
        ...
