"""Random messages of any schema and version, for round trips: every field, null, empty, tagged, and unknown tags."""

from __future__ import annotations

import random
from typing import Any

from ottla.protocol.messages import struct_class
from ottla.protocol.schema import FieldSchema, Schema, StructSchema

INTEGERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
UNSIGNED = {"uint16": 16, "uint32": 32}


class Generator:
    """Makes messages of one schema and version. `present` is how often an optional thing is there."""

    def __init__(
        self, schema: Schema, version: int, chance: random.Random, *, unknown_tags: bool = True, present: float = 0.5
    ) -> None:
        self.schema = schema
        self.version = version
        self.chance = chance
        self.flexible = version in schema.flexible
        self.unknown_tags = unknown_tags
        self.present = present

    def message(self) -> Any:
        return self._struct(self.schema.root, 0)

    def _struct(self, struct: StructSchema, depth: int) -> Any:
        made: Any = struct_class(self.schema, struct)()
        for f in struct.fields:
            if self.version not in f.versions:
                continue
            if self.version in f.tagged and self.chance.random() > self.present:
                continue
            setattr(made, f.name, self._field(f, depth))
        if self.flexible and self.unknown_tags and self.chance.random() < 0.2:
            known = [f.tag for f in struct.fields if f.tag is not None]
            first = max(known, default=-1) + 1 + self.chance.randrange(200)
            made.unknown_tags = [
                (first + n, self.chance.randbytes(self.chance.randrange(5))) for n in range(self.chance.randint(1, 2))
            ]
        return made

    def _field(self, f: FieldSchema, depth: int) -> Any:
        if self.version in f.nullable and self.chance.random() > self.present:
            return None
        if f.is_array:
            count = self.chance.choice((0, 1, 1, 2, 3)) if depth < 3 else self.chance.choice((0, 1))
            return [self._value(f, depth + 1) for _ in range(count)]
        return self._value(f, depth)

    def _value(self, f: FieldSchema, depth: int) -> Any:
        kind, chance = f.element_type, self.chance
        if kind in INTEGERS:
            bits = INTEGERS[kind]
            return chance.choice((0, -1, 1, 2**bits - 1, -(2**bits), chance.randint(-(2**bits), 2**bits - 1)))
        if kind in UNSIGNED:
            return chance.choice((0, 2 ** UNSIGNED[kind] - 1, chance.randrange(2 ** UNSIGNED[kind])))
        if kind == "bool":
            return chance.random() < 0.5
        if kind == "float64":
            return chance.choice((0.0, -1.5, 1e300, chance.random()))
        if kind == "uuid":
            return chance.choice((bytes(16), chance.randbytes(16)))
        if kind == "string":
            return chance.choice(("", "a", "topic-1", "ünï-✓", "x" * chance.choice((126, 127, 128, 300))))
        if kind in ("bytes", "records"):
            return chance.randbytes(chance.choice((0, 1, 17, 200)))
        assert f.struct is not None
        return self._struct(f.struct, depth + 1)


def all_schemas() -> list[tuple[str, int]]:
    """Every schema and version, in order."""
    from ottla.protocol import schema

    names = [n for found in schema.index()["apis"].values() for n in (found["request"], found["response"])]
    names += ["RequestHeader", "ResponseHeader"]
    names += [n for kind in schema.index()["records"].values() for n in kind]
    found = []
    for name in sorted(names):
        loaded = schema.load(name)
        found += [(name, v) for v in range(loaded.valid.low, loaded.valid.high + 1)]
    return found
