"""Schemas in Kafka's JSON grammar. A schema is read on first use.

This module needs nothing but Python: `stubs` reads schemas where nothing else is installed. `messages` makes the
classes of a schema, `trees` the wire types of each of its versions.
"""

from __future__ import annotations

import json
import keyword
import re
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from . import schema_files
from .schema_files import DIRECTORY

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
Source = dict[str, Any]  # an object of a schema's file


class Versions(NamedTuple):
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

    def __contains__(self, version: object) -> bool:
        assert isinstance(version, int)
        return self.low <= version <= self.high


NONE = Versions(0, -1)


class FieldSchema(NamedTuple):
    """One field of a schema, in all its versions."""

    name: str  # snake_case
    kafka_name: str
    type: str
    versions: Versions
    nullable: Versions
    tagged: Versions
    flexible: Versions | None  # if it differs from the message's
    tag: int | None
    default: object
    ignorable: bool
    struct: StructSchema | None
    key: bool  # identifies its struct within a list
    entity: str  # what it names, such as `topicName`; empty if the schema does not say it

    @property
    def element_type(self) -> str:
        return self.type.removeprefix("[]")

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")


class StructSchema(NamedTuple):
    name: str
    fields: tuple[FieldSchema, ...]


class Schema(NamedTuple):
    """A message or a record."""

    name: str
    kind: str  # request, response, header, coordinator-key, …
    api_key: int | None
    valid: Versions
    flexible: Versions
    unstable: bool  # its latest version is not released
    listeners: tuple[str, ...]
    root: StructSchema
    structs: dict[str, StructSchema]
    is_removed: bool = False  # it has the versions that Kafka 4 does not have any more


def snake_case(name: str) -> str:
    """Converts `TopicId` to `topic_id`, `ISRs` to `isrs`; a Python keyword gets an underscore."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return text + "_" if keyword.iskeyword(text) else text


@cache
def load_removed(name: str, directory: str = DIRECTORY) -> Schema | None:
    """Returns the schema of the versions that Kafka 4 removed from a message; None if it removed none."""
    try:
        return _schema(json.loads(schema_files.read(f"old/{name}.json", directory)), is_removed=True)
    except FileNotFoundError:
        return None


@cache
def index(directory: str = DIRECTORY) -> Source:
    loaded: Source = json.loads(schema_files.read("index.json", directory))
    return loaded


@cache
def load(name: str, directory: str = DIRECTORY) -> Schema:
    """Returns the schema called `name`. Raises KeyError if there is none."""
    for folder in ("messages", "records"):
        with suppress(FileNotFoundError):
            return _schema(json.loads(schema_files.read(f"{folder}/{name}.json", directory)))
    raise KeyError(name)


def _schema(source: Source, is_removed: bool = False) -> Schema:
    structs: dict[str, StructSchema] = {}
    common = {struct["name"]: struct for struct in source.get("commonStructs", ())}

    def struct(name: str, fields: list[Source]) -> StructSchema:
        structs[name] = StructSchema(name, tuple(one(f) for f in fields))
        return structs[name]

    def one(f: Source) -> FieldSchema:
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
            entity=f.get("entityType", ""),
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
        is_removed=is_removed,
    )


def _default(f: Source) -> object:
    """Returns the default as a Python value; `list` for an empty list, and `...` for a struct of defaults."""
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
