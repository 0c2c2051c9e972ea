"""One class per message and per struct in it, made when it is first used: `messages.MetadataRequest`.

A message class holds the fields of all versions under their snake_case names, with the schema's defaults, and the classes of
its structs as attributes (`messages.MetadataResponse.MetadataResponseTopic`). The fields are typed in `messages.pyi`.
`unknown_tags` keeps the tagged fields that the schema does not name, as pairs of tag and bytes, or is None.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from . import schema as _schema
from .structs import Struct

_classes: dict[tuple[str, str], type] = {}


def struct_class(schema: _schema.Schema, struct: _schema.StructSchema) -> type:
    """The class of a struct of a message; the same for the same names."""
    key = (schema.name, struct.name)
    if key not in _classes:
        fields: list[Any] = []
        structs: dict[str, Any] = {}
        for f in struct.fields:
            default = default_of(schema, f)
            if f.default is ...:
                structs[f.name] = default
            made = dataclasses.field(default_factory=default) if callable(default) else dataclasses.field(default=default)
            fields.append((f.name, Any, made))
        fields.append(("unknown_tags", Any, dataclasses.field(default=None)))
        cls: Any = dataclasses.make_dataclass(struct.name, fields, bases=(Struct,), slots=True, eq=False, repr=False)
        cls.structs_by_default = structs
        _classes[key] = cls
        if struct is schema.root:
            for name, inner in schema.structs.items():
                if inner is not struct:
                    setattr(_classes[key], name, struct_class(schema, inner))
    return _classes[key]


def default_of(schema: _schema.Schema, f: _schema.FieldSchema) -> Any:
    """A default value, or the function that makes one."""
    if f.default is not ...:
        return f.default
    assert f.struct is not None
    return struct_class(schema, f.struct)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        loaded = _schema.load(name)
    except KeyError:
        raise AttributeError(f"no message or record is called {name}") from None
    found = globals()[name] = struct_class(loaded, loaded.root)
    return found
