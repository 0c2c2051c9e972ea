"""The order in which Kafka lists client quotas: that of the hash tables of its image (ClientQuotasImage). Those of one
bucket are as they came. What was removed since, which may leave a table larger, is not looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ...protocol.java import java_hash
from ..hashing import TABLE_SIZE, bucket, put_order, table_size
from ..remembered import remembered
from .quotas import Entity, Filter


@remembered(1024)
def hash_of(entity: Entity) -> int:
    """`ClientQuotaEntity.hashCode`, before it is cut to 32 bits."""
    return 31 + sum(java_hash(kind) ^ (0 if name is None else java_hash(name)) for kind, name in entity)


def changed(entities: Collection[Entity]) -> list[Entity]:
    """Returns entities in the order of a reply to AlterClientQuotas."""
    size = table_size(len(entities), TABLE_SIZE)
    return sorted(entities, key=lambda entity: bucket(hash_of(entity), size))


def keys(names: Iterable[str]) -> list[str]:
    """Returns the limits of an entity in the order of its description."""
    return put_order(names, 1)


class Described:
    """The places of entities in a description. `entities`: all that there are; `wanted`: which are asked for."""

    def __init__(self, entities: Collection[Entity], wanted: Filter) -> None:
        self._sizes = [table_size(len(entities), 1)]
        kind = next(iter(put_order(wanted.names or wanted.any_name, TABLE_SIZE)), None)
        if kind is not None:  # Kafka copies the table of the entities that have the first name, or the first type
            of_kind = (entity for entity in entities if kind in dict(entity))
            count = sum(kind not in wanted.names or (kind, wanted.names[kind]) in entity for entity in of_kind)
            self._sizes = [table_size(count, int(count / 0.75 + 1)), table_size(count, TABLE_SIZE), *self._sizes]

    def place(self, entity: Entity) -> tuple[int, ...]:
        """Returns what entities are sorted by."""
        code = hash_of(entity)
        return tuple(bucket(code, size) for size in self._sizes)
