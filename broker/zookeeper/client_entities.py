"""What clients, users and addresses have in ZooKeeper: quotas, and the SCRAM credentials of users."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...coordinator.metadata import credentials, quotas
from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.quotas import CLIENT_ID, IP, USER
from ...coordinator.metadata.state import MetadataState, Quota
from ...coordinator.security.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    ScramCredential,
    credential_text,
    parse_credential,
)
from ...coordinator.shard import Decision
from ...protocol import zookeeper_paths as paths
from ...protocol.errors import ApiError
from ..controller.controller import MetadataController
from .found import Entity, Values
from .kind import Changes

KINDS = (paths.USERS, paths.CLIENTS, paths.IPS)
SCRAM_SINCE, ADDRESSES_SINCE = (0, 10, 2), (2, 7)
_OF_CLIENTS = {
    quotas.PRODUCER_BYTE_RATE,
    quotas.CONSUMER_BYTE_RATE,
    quotas.REQUEST_PERCENTAGE,
    quotas.CONTROLLER_MUTATION_RATE,
}
_OF_ADDRESSES = {quotas.CONNECTION_CREATION_RATE}


class ClientEntities:
    """Those of the metadata."""

    def __init__(self, metadata: MetadataController, image: MetadataState, release: paths.Number) -> None:
        self._metadata = metadata
        self._image = image
        self._release = release

    def all(self) -> Iterator[Entity]:
        yield from map(quota_node, list(self._image.quotas))
        yield from (_user_node(user) for user, _ in list(self._image.credentials))

    def changed(self, delta: MetadataDelta) -> Iterator[Entity]:
        yield from map(quota_node, delta.quotas)
        yield from map(_user_node, delta.credentials)

    def is_shown(self, entity: Entity) -> bool:
        return entity[0] != paths.IPS or self._release >= ADDRESSES_SINCE

    def here(self, entity: Entity) -> Values:
        owner, found = quota_entity(*entity), {}
        for key in sorted(_OF_CLIENTS | _OF_ADDRESSES):
            limit = self._image.quotas.get(Quota(owner, key))
            if limit is not None:
                found[key] = quota_text(limit.value)
        for mechanism in MECHANISMS.values():
            own = self._image.credentials.get((_user(entity), mechanism.number))
            if own is not None:
                keys = own.salt, own.stored_key, own.server_key, own.iterations
                found[mechanism.name] = credential_text(ScramCredential(*keys))
        return found

    def taken(self, entity: Entity, key: str, value: str) -> str | None:
        if key in MECHANISMS:
            return self._credential(entity, value)
        limits = _OF_ADDRESSES if entity[0] == paths.IPS else _OF_CLIENTS
        return quota_text(float(value)) if key in limits else None

    def _credential(self, entity: Entity, text: str) -> str | None:
        """Raises ValueError."""
        found = parse_credential(text)
        is_valid = ITERATIONS_MIN <= found.iterations <= ITERATIONS_MAX
        return credential_text(found) if is_valid and _user(entity) and self._release >= SCRAM_SINCE else None

    async def change(self, entity: Entity, changes: Changes) -> ApiError | None:
        of_user = {key: one for key, one in changes.items() if key in MECHANISMS}
        if of_user:
            found = {key: None if one is None else parse_credential(one) for key, one in of_user.items()}
            await self._metadata.submit(partial(credentials.put, self._metadata.controller, _user(entity), found))
        limits = {key: None if one is None else float(one) for key, one in changes.items() if key not in MECHANISMS}
        return await self._limit(quota_entity(*entity), limits) if limits else None

    async def _limit(self, entity: quotas.Entity, limits: dict[str, float | None]) -> ApiError | None:
        def alter() -> Decision[dict[quotas.Entity, ApiError | None]]:
            return quotas.alter(self._metadata.controller, [quotas.limits_of(entity, limits)], ())

        return next(iter((await self._metadata.submit(alter)).values()))


def _user_node(user: str) -> Entity:
    return paths.USERS, paths.sanitized(user)


def quota_node(quota: Quota) -> Entity:
    """Returns the entity in ZooKeeper that a quota belongs to."""
    named = {kind: _node_name(kind, name) for kind, name in quota.entity}
    if set(named) == {USER, CLIENT_ID}:
        return paths.USERS, f"{named[USER]}/{paths.CLIENTS}/{named[CLIENT_ID]}"
    ((kind, name),) = named.items()
    return {USER: paths.USERS, CLIENT_ID: paths.CLIENTS, IP: paths.IPS}[kind], name


def _node_name(kind: str, name: str | None) -> str:
    """Returns the name of a user's, client's or address's node. Addresses are as they are."""
    if name is None:
        return paths.DEFAULT_ENTITY
    return name if kind == IP else paths.sanitized(name)


def quota_text(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _named(part: str) -> str | None:
    return None if part == paths.DEFAULT_ENTITY else paths.desanitized(part)


def quota_entity(kind: str, name: str) -> quotas.Entity:
    """Returns the entity of client quotas that a node's name says, its parts in order."""
    if kind == paths.IPS:
        return ((IP, None if name == paths.DEFAULT_ENTITY else name),)
    if kind == paths.CLIENTS:
        return ((CLIENT_ID, _named(name)),)
    user, separator, client = name.partition(f"/{paths.CLIENTS}/")
    if separator:
        return ((CLIENT_ID, _named(client)), (USER, _named(user)))
    return ((USER, _named(user)),)


def _user(entity: Entity) -> str:
    """Returns the user that may have credentials; empty for what is no user."""
    kind, name = entity
    return paths.desanitized(name) if kind == paths.USERS and "/" not in name and name != paths.DEFAULT_ENTITY else ""
