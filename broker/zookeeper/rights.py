"""Rights (ACLs) as ZooKeeper has them: the entries of each resource in one node.

Such a node is merged as a configuration is: its keys are the entries, as JSON, and their values are empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from functools import partial

from ...coordinator.metadata import acls
from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.state import MetadataState
from ...coordinator.security.acl_names import acl_named, entry_of, resource_name
from ...coordinator.security.acls import Acl, PatternType, acl_of
from ...protocol import zookeeper_paths as paths
from ...protocol import zookeeper_rights
from ...protocol.errors import ApiError
from ...protocol.zookeeper_rights import AclEntry
from ..controller.controller import MetadataController
from .found import Entity, Values

_PATTERNS = {paths.ACLS: PatternType.LITERAL, paths.PREFIXED_ACLS: PatternType.PREFIXED}
KINDS = tuple(_PATTERNS)
PREFIXED_SINCE = (2, 0)
_ABOVE = {pattern: above for above, pattern in _PATTERNS.items()}


class Rights:
    """The entries of the metadata, by resource."""

    def __init__(self, metadata: MetadataController, image: MetadataState, release: paths.Number) -> None:
        self._metadata = metadata
        self._release = release
        self._image = image
        self._by_id: dict[bytes, Acl] = {}
        self._by_entity: dict[Entity, dict[Acl, None]] = {}
        self._is_loading = False

    def load(self) -> Iterator[None]:
        """Indexes the entries, in steps, before ZooKeeper is read; commits between the steps are noted."""
        self._is_loading = True
        for acl_id in list(self._image.acls):
            record = self._image.acls.get(acl_id)
            if record is not None and acl_id not in self._by_id:
                self._add(acl_id, acl_of(record))
            yield

    def all(self) -> list[Entity]:
        """Returns the resources that have entries."""
        return list(self._by_entity)

    def changed(self, delta: MetadataDelta) -> Iterator[Entity]:
        """Yields the resources whose entries were changed by a commit; none before they are indexed."""
        for acl_id in delta.acls if self._is_loading else ():
            before, record = self._by_id.pop(acl_id, None), self._image.acls.get(acl_id)
            if before is not None:
                entity = _entity(before)
                self._by_entity[entity].pop(before, None)
                if not self._by_entity[entity]:
                    del self._by_entity[entity]
                yield entity
            if record is not None:
                yield self._add(acl_id, acl_of(record))

    def _add(self, acl_id: bytes, acl: Acl) -> Entity:
        entity = _entity(acl)
        self._by_id[acl_id] = acl
        self._by_entity.setdefault(entity, {})[acl] = None
        return entity

    def here(self, entity: Entity) -> Values:
        return {_key(entry_of(acl)): "" for acl in self._by_entity.get(entity, ())}

    def is_shown(self, entity: Entity) -> bool:
        above, name = entity
        is_known = above == paths.ACLS or self._release >= PREFIXED_SINCE
        return is_known and paths.is_node_name(name.partition("/")[2])

    def taken(self, entity: Entity, key: str, value: str) -> str | None:
        try:
            acls.check(self._image, _acl(entity, key))
        except (ApiError, KeyError):
            return None  # an entry that this broker cannot have stays there without effect
        return ""

    async def change(self, entity: Entity, changes: Mapping[str, str | None]) -> ApiError | None:
        """Creates and deletes entries; returns the first error. Fails with ApiError."""
        controller = self._metadata.controller
        created = [_acl(entity, key) for key, value in changes.items() if value is not None]
        found = [self._image.acl_ids.get(_acl(entity, key)) for key, value in changes.items() if value is None]
        deleted = [acl_id for acl_id in found if acl_id is not None]
        errors: list[ApiError | None] = []
        if created:
            errors = await self._metadata.submit(partial(acls.create, controller, created))
        if deleted:
            await self._metadata.submit(partial(acls.delete, controller, deleted))
        return next((error for error in errors if error is not None), None)


def values_of(data: bytes) -> Values:
    """Returns what a resource's node has. Raises Malformed."""
    return {_key(entry): "" for entry in zookeeper_rights.acl_entries_of(data)}


def value_of(found: Values, release: paths.Number) -> bytes:
    return zookeeper_rights.acl_entries([AclEntry(*json.loads(key)) for key in found], release)


def change_of(entity: Entity, release: paths.Number) -> tuple[str, bytes]:
    """Returns the path without its number, and the value, of what says that the entries of a resource have changed."""
    kind, _, name = entity[1].partition("/")
    if entity[0] == paths.ACLS:
        return f"{paths.ACL_CHANGES}/{paths.ACL_CHANGE_PREFIX}", zookeeper_rights.acl_change(kind, name, release)
    return f"{paths.PREFIXED_ACL_CHANGES}/{paths.ACL_CHANGE_PREFIX}", zookeeper_rights.prefixed_acl_change(kind, name)


def changed(data: bytes) -> Entity:
    """Returns the resource that a change names. Raises Malformed."""
    return paths.ACLS, "/".join(zookeeper_rights.acl_change_of(data))


def prefixed_changed(data: bytes) -> Entity:
    """Like `changed`. Raises Malformed."""
    return paths.PREFIXED_ACLS, "/".join(zookeeper_rights.prefixed_acl_change_of(data))


def _entity(acl: Acl) -> Entity:
    return _ABOVE[PatternType(acl.pattern_type)], f"{resource_name(acl)}/{acl.name}"


def _key(entry: AclEntry) -> str:
    return json.dumps(astuple(entry))


def _acl(entity: Entity, key: str) -> Acl:
    """Raises KeyError."""
    kind, _, name = entity[1].partition("/")
    return acl_named(kind, name, _PATTERNS[entity[0]], AclEntry(*json.loads(key)))
