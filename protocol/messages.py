"""One class per message and per struct in it, made when it is first used: `messages.MetadataRequest`.

A message class holds the fields of all versions under their snake_case names, with the schema's defaults, and the
classes of its structs as attributes (`messages.MetadataResponse.MetadataResponseTopic`). The fields are typed in
`messages.pyi`, which `stubs` derives from the schemas. `unknown_tags` keeps the tagged fields that the schema does not
name, as pairs of tag and bytes, or is None.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from . import outlines as _outlines
from . import schema as _schema
from .structs import Struct

_classes: dict[tuple[str, str], type[Struct]] = {}
_removed_classes: dict[
    tuple[str, str], type[Struct]
] = {}  # with fields of versions that Kafka 4 does not have any more
_ABSENT = object()  # for arguments whose default is made by a function


def struct_class(schema: _schema.Schema, struct: _schema.StructSchema) -> type[Struct]:
    """Returns the class of a struct of a message; the same class for the same names."""
    if schema.is_removed:
        return _old_struct_class(schema, struct)
    key = (schema.name, struct.name)
    if key not in _classes:
        _make_classes(_outlines.outlined(schema))
    return _classes[key]


def named_class(schema: str, struct: str) -> type[Struct]:
    """Returns the class of the struct called `struct` of a message. Raises KeyError if there is none."""
    if (schema, struct) not in _classes:
        _make_classes(_outlines.outline(schema))
    return _classes[schema, struct]


def names_of(cls: type) -> tuple[str, str] | None:
    """Returns the names with which `named_class` returns this class; None if it returns it for none."""
    return next((names for names, known in _classes.items() if known is cls), None)


def _make_classes(outline: _outlines.Outline) -> None:
    """Makes the classes of a message."""
    for struct in outline.structs:
        if (outline.name, struct.name) not in _classes:
            _classes[outline.name, struct.name] = _class(outline, struct)
    root = _classes[outline.name, outline.structs[-1].name]
    for struct in outline.structs[:-1]:
        setattr(root, struct.name, _classes[outline.name, struct.name])


def _class(outline: _outlines.Outline, struct: _outlines.StructOutline) -> type[Struct]:
    defaults = {name: _default(outline, kind, default) for name, kind, default in struct.fields}
    made: type[Struct] = type(
        struct.name,
        (Struct,),
        {
            "__slots__": tuple(defaults),
            "__init__": _init(struct.init, defaults),
            "defaults": defaults,
            "structs_by_default": {name: defaults[name] for name, kind, _ in struct.fields if kind == _outlines.STRUCT},
        },
    )
    return made


def _default(outline: _outlines.Outline, kind: int, default: object) -> object:
    """Returns a default value, or the function that makes one."""
    if kind == _outlines.STRUCT:
        assert isinstance(default, str)
        return _classes[outline.name, default]
    return list if kind == _outlines.LIST else default


def _old_struct_class(schema: _schema.Schema, struct: _schema.StructSchema) -> type[Struct]:
    """Returns the class of a struct in removed versions: the usual one, or a subclass with the removed fields."""
    present = _schema.load(schema.name)
    usual = struct_class(present, present.root if struct is schema.root else present.structs[struct.name])
    removed = {f.name: default_of(schema, f) for f in struct.fields if f.name not in usual.defaults}
    key = (schema.name, struct.name)
    if removed and key not in _removed_classes:
        defaults = usual.defaults | removed
        code = _outlines.init_code(struct.name, {field: callable(default) for field, default in defaults.items()})
        made: type[Struct] = type(
            struct.name,
            (usual,),
            {"__slots__": tuple(removed), "__init__": _init(code, defaults), "defaults": defaults},
        )
        made.__slots__ = tuple(defaults)  # the names of all fields
        _removed_classes[key] = made
    return _removed_classes[key] if removed else usual


def _init(code: CodeType, defaults: dict[str, object]) -> Callable[..., None]:
    names: dict[str, object] = {f"_{field}": default for field, default in defaults.items()} | {"_ABSENT": _ABSENT}
    exec(code, names)  # the source is our own, made from the schemas
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
        found = globals()[name] = named_class(name, name)
    except KeyError:
        raise AttributeError(f"no message or record is called {name}") from None
    return found
