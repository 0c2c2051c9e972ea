"""Requests of which something is odd, but can be said: what two brokers are asked in turn (`chance.py`, word `odd`).

One place of a request, or each of a few, gets another value: null or an empty array, an element twice, the smallest and
the largest number, one that is too small or too large by one, another id, a name that is empty, long or has letters of
other scripts, a tagged field that nobody knows. The requests of both brokers are changed at the same place.

Left out: records, whose change is that of their checksum, times, for which a request would wait, the id of the node
that UnregisterBroker names (a Kafka that has unregistered itself leads nothing any more), the list of an AlterConfigs,
which Kafka does not answer if it names a resource twice, and listeners of AddRaftVoter, of which one without a name
ends Kafka.
"""

from __future__ import annotations

import copy
import random
from typing import Any, Final

from ottla.protocol import schema
from ottla.protocol.schema import FieldSchema, Schema, StructSchema

SHARE: Final = 0.2  # of the requests
PLACES: Final = (1, 1, 1, 1, 2, 3)  # in such a request
BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
LEFT_OUT: Final = frozenset(("records", "float64"))
PATIENT: Final = frozenset(("min_bytes", "count", "num_partitions", "last_offset", "replication_factor"))
FATAL: Final = frozenset(
    (
        ("UnregisterBroker", "broker_id"),
        ("AlterConfigs", "resources"),
        ("AddRaftVoter", "name"),
        ("AddRaftVoter", "host"),
    )
)
TEXTS: Final = ("", " ", "x" * 249, "y" * 250, "z" * 20_000, "ä b", "日本", "a\0b", "__share_group_state", "..")
UUIDS: Final = (bytes(16), bytes(15) + b"\1", b"\xff" * 16, b"r" * 16)
TAGS: Final = ([(9000, b"unknown")], [(50, b""), (51, b"\0" * 300)])

Place = tuple[str | int, ...]


class Odd:
    """What is odd in one request. `made_of`: the seed, which makes the same change in the request of each broker."""

    def __init__(self, made_of: int, api: str, version: int) -> None:
        self.chance, self.version = random.Random(made_of), version
        self.schema: Schema = schema.load(f"{api}Request")

    def changed(self, request: Any) -> Any:
        """Returns a copy that is odd at one place or a few; the request itself is left as it is."""
        made = copy.deepcopy(request)
        for _ in range(self.chance.choice(PLACES)):
            self._change(made)
        return made

    def _change(self, made: Any) -> None:
        places = list(self._places(self.schema.root, made))
        if places:
            owner, field = self.chance.choice(places)
            if field is None:
                owner.unknown_tags = self.chance.choice(TAGS)
            else:
                setattr(owner, field.name, self._value(field, getattr(owner, field.name)))

    def _places(self, struct: StructSchema, one: Any) -> Any:
        """All structs of a message with each of their fields, and with None for their tags."""
        if self.version in self.schema.flexible:
            yield one, None
        for field in struct.fields:
            if self.version not in field.versions or field.element_type in LEFT_OUT or field.name in PATIENT:
                continue
            if not field.name.endswith("_ms") and (self.schema.name.removesuffix("Request"), field.name) not in FATAL:
                yield one, field
            if field.struct is not None:
                value = getattr(one, field.name)
                for each in (value or ()) if field.is_array else [value]:
                    yield from self._places(field.struct, each) if each is not None else ()

    def _value(self, field: FieldSchema, value: Any) -> Any:
        if self.version in field.nullable and self.chance.random() < 0.25:
            return None
        if field.is_array:
            return self._array(field, list(value or ()))
        return value if field.struct is not None else self._one(field, value)

    def _array(self, field: FieldSchema, values: list[Any]) -> list[Any]:
        chance = self.chance
        if not values:
            return values if field.struct is not None else [self._one(field, None)]
        kind = chance.choice(("none", "twice", "twice", "reversed", "other"))
        if kind == "none":
            return []
        if kind == "reversed":
            return values[::-1]
        again = copy.deepcopy(chance.choice(values))
        if kind == "other" and field.struct is None:
            again = self._one(field, again)
        return [*values, again]

    def _one(self, field: FieldSchema, value: Any) -> Any:
        kind, chance = field.element_type, self.chance
        if kind == "string":
            return chance.choice((*TEXTS, (value or "").upper(), f"{value or ''} "))
        if kind == "uuid":
            return chance.choice(UUIDS)
        if kind == "bytes":
            return chance.choice((b"", b"\0", b"\xff" * 40))
        if kind == "bool":
            return not value
        if kind not in BITS:
            return value
        largest, number = (1 << BITS[kind] - 1) - 1, value or 0
        others = (largest, -largest - 1, -1, -2, 0, 1, number + 1, number - 1)
        return min(max(chance.choice(others), -largest - 1), largest)
