"""The order in which Kafka lists client quotas: that of the hash tables of its image (ClientQuotasImage). Those of one
bucket are as they came. What was removed since, which may leave a table larger, is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.java import java_hash
from ..hashing import TABLE_SIZE, bucket, put_order, table_order, table_size
from ..remembered import remembered
from .quotas import Entity, Filter


@remembered(1024)
def hash_of(entity: Entity) -> int:
    """`ClientQuotaEntity.hashCode`, before it is cut to 32 bits."""
    return 31 + sum(java_hash(kind) ^ (0 if name is None else java_hash(name)) for kind, name in entity)


def changed(entities: Iterable[Entity]) -> list[Entity]:
    """Returns entities in the order of a reply to AlterClientQuotas."""
    return table_order(entities, hash_of)


def keys(names: Iterable[str]) -> list[str]:
    """Returns the limits of an entity in the order of its description."""
    return put_order(names, 1)


class Described:
    """The places of entities in a description. `wanted`: which are asked for."""

    def __init__(self, wanted: Filter) -> None:
        self._names = wanted.names
        self._kind = next(iter(put_order(wanted.names or wanted.any_name, TABLE_SIZE)), None)
        self._count = self._count_of_kind = 0

    def add(self, entity: Entity) -> None:
        """Counts one of all entities, before the first place is asked for."""
        self._count += 1
        if self._kind is not None:
            names = dict(entity)
            is_of_kind = self._kind in names and names[self._kind] == self._names.get(self._kind, names[self._kind])
            self._count_of_kind += is_of_kind

    def place(self, entity: Entity) -> tuple[int, ...]:
        """Returns what entities are sorted by."""
        sizes = [table_size(self._count, 1)]
        if self._kind is not None:  # Kafka copies the table of the entities that have the first name, or the first type
            count = self._count_of_kind
            sizes = [table_size(count, int(count / 0.75 + 1)), table_size(count, TABLE_SIZE), *sizes]
        code = hash_of(entity)
        return tuple(bucket(code, size) for size in sizes)
