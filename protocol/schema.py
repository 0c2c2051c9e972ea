"""Schemas in Kafka's JSON grammar, and the construct tree that one of their versions is.

A schema is read when it is first asked for. Every struct of a message becomes one class that holds the fields of all versions
(`messages.struct_class`), so that a message made for one version can be answered in another.
"""

from __future__ import annotations

import json
import keyword
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from .errors import UnsupportedVersion
from .message import Member, Message, Nullable
from .wire import Array, Bytes, Fixed, Records, String, Wire

DIRECTORY = Path(__file__).resolve().parent.parent / "schemas"
FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
NO_UUID = bytes(16)


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions as schemas write it: `3`, `1-4`, `2+`, `none`."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        if text == "none":
            return NONE
        if text.endswith("+"):
            return cls(int(text[:-1]), 0x7FFF)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high


NONE = Versions(0, -1)


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """One field of a schema, in all its versions."""

    name: str  # snake_case
    kafka_name: str
    type: str
    versions: Versions
    nullable: Versions
    tagged: Versions
    flexible: Versions | None  # where it differs from its message
    tag: int | None
    default: Any
    ignorable: bool
    struct: StructSchema | None
    key: bool  # identifies its struct within a list

    @property
    def element_type(self) -> str:
        return self.type.removeprefix("[]")

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")


@dataclass(frozen=True, slots=True)
class StructSchema:
    name: str
    fields: tuple[FieldSchema, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """A message or a record."""

    name: str
    kind: str  # request, response, header, coordinator-key, …
    api_key: int | None
    valid: Versions
    flexible: Versions
    unstable: bool  # its latest version is not released
    listeners: tuple[str, ...]
    root: StructSchema
    structs: dict[str, StructSchema] = field(hash=False)


def snake_case(name: str) -> str:
    """`TopicId` to `topic_id`, `ISRs` to `isrs`; a Python keyword gets an underscore."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return text + "_" if keyword.iskeyword(text) else text


@cache
def index(directory: Path = DIRECTORY) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((directory / "index.json").read_text())
    return loaded


@cache
def load(name: str, directory: Path = DIRECTORY) -> Schema:
    """The schema called `name`; KeyError when there is none."""
    for folder in ("messages", "records"):
        path = directory / folder / f"{name}.json"
        if path.exists():
            return _schema(json.loads(path.read_text()))
    raise KeyError(name)


def _schema(source: dict[str, Any]) -> Schema:
    structs: dict[str, StructSchema] = {}
    common = {struct["name"]: struct for struct in source.get("commonStructs", ())}

    def struct(name: str, fields: list[dict[str, Any]]) -> StructSchema:
        structs[name] = StructSchema(name, tuple(one(f) for f in fields))
        return structs[name]

    def one(f: dict[str, Any]) -> FieldSchema:
        inner, element = None, f["type"].removeprefix("[]")
        if element[0].isupper():
            if "fields" in f:
                inner = struct(element, f["fields"])
            else:
                inner = structs.get(element) or struct(element, common[element]["fields"])
        nullable = Versions.parse(f.get("nullableVersions", "none"))
        return FieldSchema(
            name=snake_case(f["name"]),
            kafka_name=f["name"],
            type=f["type"],
            versions=Versions.parse(f.get("versions") or f["taggedVersions"]),
            nullable=nullable,
            tagged=Versions.parse(f.get("taggedVersions", "none")),
            flexible=Versions.parse(f["flexibleVersions"]) if "flexibleVersions" in f else None,
            tag=f.get("tag"),
            default=_default(f),
            ignorable=f.get("ignorable", False),
            struct=inner,
            key=f.get("mapKey", False),
        )

    root = struct(source["name"], source.get("fields", []))
    return Schema(
        name=source["name"],
        kind=source["type"],
        api_key=source.get("apiKey"),
        valid=Versions.parse(source["validVersions"]),
        flexible=Versions.parse(source.get("flexibleVersions", "none")),
        unstable=source.get("latestVersionUnstable", False),
        listeners=tuple(source.get("listeners", ())),
        root=root,
        structs=structs,
    )


def _default(f: dict[str, Any]) -> Any:
    """The default as a Python value; `list` for an empty list, and `...` for a struct of defaults."""
    kind, given = f["type"], f.get("default")
    if given == "null" or kind == "records":
        return None
    if kind.startswith("[]"):
        return list
    if kind in ("string", "bytes"):
        return given or ("" if kind == "string" else b"")
    if kind == "bool":
        return str(given).lower() == "true"
    if kind == "uuid":
        return NO_UUID
    if kind == "float64":
        return float(given or 0.0)
    if kind in FIXED:
        return int(str(given or "0"), 0)
    return ...


@cache
def tree(name: str, version: int, directory: Path = DIRECTORY) -> Message:
    """The construct tree of one version of a schema; UnsupportedVersion when it has no such version."""
    schema = load(name, directory)
    if version not in schema.valid:
        raise UnsupportedVersion(f"{name} has no version {version}")
    return _message(schema, schema.root, version)


def _message(schema: Schema, struct: StructSchema, version: int) -> Message:
    from .messages import struct_class

    flexible = version in schema.flexible
    members = [_member(schema, f, version, flexible) for f in struct.fields]
    return Message(f"{struct.name} v{version}", struct_class(schema, struct), members, flexible)


def _member(schema: Schema, f: FieldSchema, version: int, flexible: bool) -> Member:
    from .messages import default_of

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
