"""The construct tree of each version of a schema: a `Message` of `Member`s of wire types.

Every struct of a message is one class that holds the fields of all versions (`messages.struct_class`), so that a
message made for one version can be answered in another.
"""

from __future__ import annotations

from functools import cache

from .errors import UnsupportedVersion
from .message import Member, Message, Nullable
from .messages import default_of, struct_class
from .schema import FIXED, FieldSchema, Schema, StructSchema, load, load_removed
from .schema_files import DIRECTORY
from .wire import Array, Bytes, Fixed, Records, String, Wire


@cache
def tree(name: str, version: int, directory: str = DIRECTORY) -> Message:
    """Returns the construct tree of one version of a schema. Raises UnsupportedVersion."""
    schema = load(name, directory)
    if version not in schema.valid:
        removed = load_removed(name, directory)
        if removed is None or version not in removed.valid:
            raise UnsupportedVersion(f"{name} has no version {version}")
        schema = removed
    return _message(schema, schema.root, version)


def _message(schema: Schema, struct: StructSchema, version: int) -> Message:
    flexible = version in schema.flexible
    members = [_member(schema, f, version, flexible) for f in struct.fields]
    cls = struct_class(schema, struct)
    if schema.is_removed:  # later fields are not sent, whatever their values
        named = {member.name for member in members} | {"unknown_tags"}
        members += [
            Member(name, None, cls.defaults[name], ignorable=True) for name in cls.defaults if name not in named
        ]
    return Message(f"{struct.name} v{version}", cls, members, flexible)


def _member(schema: Schema, f: FieldSchema, version: int, flexible: bool) -> Member:
    default = default_of(schema, f)
    if version not in f.versions:
        return Member(f.name, None, default, ignorable=f.ignorable)
    if f.flexible is not None:
        flexible = version in f.flexible
    tag = f.tag if version in f.tagged else None
    return Member(f.name, _wire(schema, f, version, flexible), default, tag)


def _wire(schema: Schema, f: FieldSchema, version: int, flexible: bool) -> Wire:
    nullable = version in f.nullable
    if f.is_array:
        return Array(_scalar(schema, f, version, flexible, False), flexible, nullable)
    return _scalar(schema, f, version, flexible, nullable)


def _scalar(schema: Schema, f: FieldSchema, version: int, flexible: bool, nullable: bool) -> Wire:
    kind = f.element_type
    if kind in FIXED:
        return Fixed(FIXED[kind])
    if kind == "string":
        return String(flexible, nullable)
    if kind == "bytes":
        return Bytes(flexible, nullable)
    if kind == "records":
        return Records(flexible, nullable)
    assert f.struct is not None, kind
    item = _message(schema, f.struct, version)
    return Nullable(item, version in f.tagged) if nullable else item
