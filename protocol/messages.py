"""One class per message and per struct in it, made when it is first used: `messages.MetadataRequest`.

A message class holds the fields of all versions under their snake_case names, with the schema's defaults, and the
classes of its structs as attributes (`messages.MetadataResponse.MetadataResponseTopic`). The fields are typed in
`messages.pyi`, which `stubs` derives from the schemas. `unknown_tags` keeps the tagged fields that the schema does not
name, as pairs of tag and bytes, or is None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import schema as _schema
from .structs import Struct

_classes: dict[tuple[str, str], type] = {}
_ABSENT = object()  # for arguments whose default is made by a function


def struct_class(schema: _schema.Schema, struct: _schema.StructSchema) -> type[Struct]:
    """Returns the class of a struct of a message; the same class for the same names."""
    if schema.is_removed:
        return _old_struct_class(schema, struct)
    key = (schema.name, struct.name)
    if key not in _classes:
        defaults = {f.name: default_of(schema, f) for f in struct.fields} | {"unknown_tags": None}
        cls = _classes[key] = type(
            struct.name,
            (Struct,),
            {
                "__slots__": tuple(defaults),
                "__init__": _init(struct.name, defaults),
                "defaults": defaults,
                "structs_by_default": {f.name: defaults[f.name] for f in struct.fields if f.default is ...},
            },
        )
        if struct is schema.root:
            for name, inner in schema.structs.items():
                if inner is not struct:
                    setattr(cls, name, struct_class(schema, inner))
    return _classes[key]


def _old_struct_class(schema: _schema.Schema, struct: _schema.StructSchema) -> type[Struct]:
    """Returns the class of a struct in removed versions: the usual one, or a subclass with the removed fields."""
    present = _schema.load(schema.name)
    usual = struct_class(present, present.root if struct is schema.root else present.structs[struct.name])
    removed = {f.name: default_of(schema, f) for f in struct.fields if f.name not in usual.defaults}
    key = (schema.name, f"removed {struct.name}")
    if removed and key not in _classes:
        defaults = usual.defaults | removed
        made = type(
            struct.name,
            (usual,),
            {"__slots__": tuple(removed), "__init__": _init(struct.name, defaults), "defaults": defaults},
        )
        made.__slots__ = tuple(defaults)  # the names of all fields
        _classes[key] = made
    return _classes[key] if removed else usual


def _init(name: str, defaults: dict[str, object]) -> Callable[..., None]:
    """Compiles an `__init__` that takes the fields, and makes the defaults that are functions.

    `dataclass` compiles the same in four times the time, which was a third of the time of a first request.
    """
    names: dict[str, object] = {f"_{field}": default for field, default in defaults.items()} | {"_ABSENT": _ABSENT}
    arguments, lines = [], []
    for field, default in defaults.items():
        is_made = callable(default)
        arguments.append(f"{field}=_ABSENT" if is_made else f"{field}=_{field}")
        value = f"_{field}() if {field} is _ABSENT else {field}" if is_made else field
        lines.append(f"    self.{field} = {value}\n")
    source = f"def __init__(self, {', '.join(arguments)}):\n{''.join(lines)}"
    exec(compile(source, f"<fields of {name}>", "exec"), names)
    made = names["__init__"]
    assert callable(made)
    return made


def default_of(schema: _schema.Schema, f: _schema.FieldSchema) -> object:
    """Returns a default value, or the function that makes one."""
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
