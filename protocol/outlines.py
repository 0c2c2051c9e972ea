"""What a process needs of a schema that it only speaks: its key and versions, and the fields of its classes.

An outline is made of the schema once and cached (`schema_cache`), so that a start reads no schema as JSON.
"""

from __future__ import annotations

from functools import cache
from types import CodeType
from typing import TYPE_CHECKING, NamedTuple, cast

from . import schema_cache
from .schema import FieldSchema, Schema, StructSchema, Versions, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    Range = tuple[int, int]
    Fields = tuple[tuple[str, int, schema_cache.Value], ...]
    Plain = tuple[str, int | None, Range, Range, tuple[tuple[str, Fields, CodeType], ...]]

LITERAL, LIST, STRUCT = range(3)


class FieldOutline(NamedTuple):
    """A field of a class. `default`: by `kind` the default itself, None for a new list, or the name of a struct."""

    name: str
    kind: int
    default: schema_cache.Value


class StructOutline(NamedTuple):
    """A class of a message. `init`: defines its `__init__`, where globals have the defaults (`init_code`)."""

    name: str
    fields: tuple[FieldOutline, ...]
    init: CodeType


class Outline(NamedTuple):
    """A message or a record. `structs`: each after those that its defaults need, the message's own last."""

    name: str
    api_key: int | None
    valid: Versions
    flexible: Versions
    structs: tuple[StructOutline, ...]


@cache
def outline(name: str) -> Outline:
    """Returns the outline of the schema called `name`. Raises KeyError if there is none."""
    found = schema_cache.load(name, "outline")
    if found is not None:
        return _restored(cast("Plain", found))
    made = outlined(load(name))
    schema_cache.save(name, "outline", _plain(made))
    return made


def outlined(schema: Schema) -> Outline:
    """Makes the outline of a schema in the versions of Kafka 4."""
    structs = tuple(_struct(one) for one in schema.structs.values())
    return Outline(schema.name, schema.api_key, schema.valid, schema.flexible, structs)


def _struct(struct: StructSchema) -> StructOutline:
    fields = (*map(_field, struct.fields), FieldOutline("unknown_tags", LITERAL, None))
    return StructOutline(struct.name, fields, init_code(struct.name, {f.name: f.kind != LITERAL for f in fields}))


def _field(f: FieldSchema) -> FieldOutline:
    if f.default is list:
        return FieldOutline(f.name, LIST, None)
    if f.default is not ...:
        return FieldOutline(f.name, LITERAL, cast("schema_cache.Value", f.default))
    assert f.struct is not None
    return FieldOutline(f.name, STRUCT, f.struct.name)


def init_code(name: str, fields: Mapping[str, bool]) -> CodeType:
    """Compiles an `__init__` that takes the fields. `fields`: whether the default of each is made by a function.

    `dataclass` compiles the same in four times the time, which was a third of the time of a first request. Its globals
    are `_ABSENT` and the default of each field, as `_` and its name.
    """
    arguments, lines = [], []
    for field, is_made in fields.items():
        arguments.append(f"{field}=_ABSENT" if is_made else f"{field}=_{field}")
        value = f"_{field}() if {field} is _ABSENT else {field}" if is_made else field
        lines.append(f"    self.{field} = {value}\n")
    source = f"def __init__(self, {', '.join(arguments)}):\n{''.join(lines)}"
    return compile(source, f"<fields of {name}>", "exec")


def _plain(made: Outline) -> Plain:
    structs = tuple((one.name, tuple((*field,) for field in one.fields), one.init) for one in made.structs)
    return made.name, made.api_key, (*made.valid,), (*made.flexible,), structs


def _restored(plain: Plain) -> Outline:
    name, api_key, valid, flexible, structs = plain
    return Outline(
        name,
        api_key,
        Versions(*valid),
        Versions(*flexible),
        tuple(StructOutline(one, tuple(FieldOutline(*f) for f in fields), init) for one, fields, init in structs),
    )
