"""Which limit applies to a client: the most specific one that matches its user and client id (KIP-55)."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Final, NamedTuple


class Default(Enum):
    """The name of an entity's default: what applies where no limit names the user or the client id."""

    DEFAULT = "<default>"


DEFAULT: Final = Default.DEFAULT
Name = str | Default | None
"""A user or client id, the default, or None if the entity does not have this part."""


class Entity(NamedTuple):
    """What a limit is for: users, client ids, or pairs of them."""

    user: Name
    client_id: Name


class Tags(NamedTuple):
    """The clients that share one rate: those of a user, of a client id, or of both. "" stands for any."""

    user: str
    client_id: str


class Limits:
    """The limits of one kind of quota."""

    def __init__(self) -> None:
        self._bounds: dict[Entity, float] = {}
        self._shapes: Counter[tuple[bool, bool]] = Counter()  # which parts the entities have

    @property
    def are_used(self) -> bool:
        """Whether there is a limit; without one nothing is measured."""
        return bool(self._bounds)

    def put(self, entity: Entity, bound: float | None) -> None:
        """Sets a limit, in units per second; None removes it."""
        if self._bounds.pop(entity, None) is not None:
            self._shapes -= Counter([_shape(entity)])
        if bound is not None:
            self._bounds[entity] = bound
            self._shapes[_shape(entity)] += 1

    def tags(self, user: str, client_id: str) -> Tags:
        """Returns with whom a client shares a rate: the parts of the most specific entity that has a limit."""
        if len(self._shapes) == 1:
            ((by_user, by_client_id),) = self._shapes
            return Tags(user if by_user else "", client_id if by_client_id else "")
        for entity in (
            Entity(user, client_id),
            Entity(user, DEFAULT),
            Entity(user, None),
            Entity(DEFAULT, client_id),
            Entity(DEFAULT, DEFAULT),
            Entity(DEFAULT, None),
        ):
            if entity in self._bounds:
                return Tags(user, "" if entity.client_id is None else client_id)
        return Tags("", client_id)

    def bound(self, tags: Tags) -> float | None:
        """Returns the limit of clients with the same tags; None if there is none."""
        user, client_id = tags
        entities: tuple[Entity, ...] = ()
        if user and client_id:
            entities = (
                Entity(user, client_id),
                Entity(user, DEFAULT),
                Entity(DEFAULT, client_id),
                Entity(DEFAULT, DEFAULT),
            )
        elif user:
            entities = Entity(user, None), Entity(DEFAULT, None)
        elif client_id:
            entities = Entity(None, client_id), Entity(None, DEFAULT)
        return next((self._bounds[entity] for entity in entities if entity in self._bounds), None)


def _shape(entity: Entity) -> tuple[bool, bool]:
    return entity.user is not None, entity.client_id is not None
