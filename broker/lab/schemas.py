"""JSON schemas (2020-12) of the classes that routes take and return."""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Literal, NotRequired, cast, get_args, get_origin, is_typeddict

from .shapes import (
    DURATION_MS_MAX,
    INT64,
    LISTS,
    Duration,
    Range,
    Size,
    example_values,
    hints,
    is_union,
    kind_of,
    required,
)

Schema = dict[str, object]
SCALARS: Mapping[object, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    types.NoneType: {"type": "null"},
    object: {},
}


class Schemas:
    """Schemas that refer to those of classes. `at`: where these are in the document."""

    def __init__(self, at: str = "#/components/schemas/") -> None:
        self.at = at
        self.classes: dict[str, Schema] = {}
        self._kinds: dict[str, type] = {}

    def of(self, kind: object) -> Schema:
        """Returns the schema of a type; those of the classes in it are added to `classes`."""
        origin = get_origin(kind)
        if origin is NotRequired:
            return self.of(get_args(kind)[0])
        if origin is Annotated:
            base, *marks = get_args(kind)
            return _marked(self.of(base), marks)
        if kind in SCALARS:
            return dict(SCALARS[kind])
        if is_union(kind):
            return self._union(get_args(kind))
        if origin is Literal:
            return {"enum": list(get_args(kind))}
        if origin in LISTS:
            return {"type": "array", "items": self.of(get_args(kind)[0])}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.of(get_args(kind)[1])}
        assert isinstance(kind, type), kind
        if issubclass(kind, enum.Enum):
            return {"enum": [one.value for one in kind], **_described(kind)}
        return self._reference(kind)

    def _union(self, members: tuple[object, ...]) -> Schema:
        records = {kind_of(one): self.of(one) for one in members if is_dataclass(one) and "kind" in hints(one)}  # type: ignore[arg-type]
        if len(records) == len(members):
            mapping = {name: one["$ref"] for name, one in records.items()}
            return {
                "oneOf": list(records.values()),
                "discriminator": {"propertyName": "kind", "mapping": mapping},
            }
        found = [self.of(one) for one in members]
        if all(set(one) == {"type"} for one in found):
            return {"type": [one["type"] for one in found]}
        return {"anyOf": found}

    def _reference(self, kind: type) -> Schema:
        name = kind.__name__
        if self._kinds.setdefault(name, kind) is not kind:
            modules = f"{kind.__module__} and {self._kinds[name].__module__}"
            raise TypeError(f"{modules} have each a class {name}, and the document takes one")
        if name not in self.classes:
            self.classes[name] = {}  # a class may refer to itself
            self.classes[name] = self.record(kind)
        return {"$ref": f"{self.at}{name}"}

    def record(self, kind: type, without: tuple[str, ...] = ()) -> Schema:
        """The schema of a class itself, a dataclass or a TypedDict. `without`: fields that are left out."""
        types_of = {name: one for name, one in hints(kind).items() if name not in without}
        properties = {name: self.of(one) for name, one in types_of.items()}
        schema: Schema = {"type": "object", **_described(kind), "properties": properties}
        if is_typeddict(kind):
            total: bool = kind.__total__  # type: ignore[attr-defined]
            needed = [name for name, one in types_of.items() if total and get_origin(one) is not NotRequired]
        else:
            needed = [name for name in types_of if name in required(kind)]
            schema["additionalProperties"] = False
            for name, value in defaults(kind).items():
                if name in properties and value is not None:
                    properties[name] = {**properties[name], "default": example_values(value)}
            if "kind" in properties:
                needed.append("kind")
        if needed:
            schema["required"] = needed
        return schema


def defaults(kind: type) -> dict[str, object]:
    """The defaults of a dataclass's fields."""
    assert is_dataclass(kind)
    found: dict[str, object] = {}
    for one in fields(kind):
        if one.default is not MISSING:
            found[one.name] = one.default
        elif one.default_factory is not MISSING:
            found[one.name] = one.default_factory()
    return found


def types_in(schema: Schema) -> list[str]:
    """The names of JSON's types that a schema takes."""
    found = schema.get("type", [])
    return [found] if isinstance(found, str) else cast(list[str], found)


def _described(kind: type) -> Schema:
    words = " ".join((kind.__doc__ or "").split())
    is_own = words and not words.startswith(f"{kind.__name__}(")  # what dataclasses and enumerations make up
    return {"description": words} if is_own else {}


def _marked(schema: Schema, marks: list[object]) -> Schema:
    """A schema with the bounds and words of Annotated."""
    out = dict(schema)
    kinds = types_in(schema)
    for mark in marks:
        if isinstance(mark, str):
            out["description"] = mark
        elif isinstance(mark, Duration):
            out |= {"type": [*dict.fromkeys([*kinds, "string"])], "pattern": f"^{Duration.PATTERN}$"}
        elif isinstance(mark, Range):
            out |= {"minimum": mark.low} if mark.low is not None else {}
            out |= {"maximum": mark.high} if mark.high not in (None, INT64, DURATION_MS_MAX) else {}
        elif isinstance(mark, Size):
            what = "Length" if "string" in kinds else "Items" if "array" in kinds else "Properties"
            out |= {f"min{what}": mark.low} if mark.low else {}
            out |= {f"max{what}": mark.high} if mark.high is not None else {}
    return out
