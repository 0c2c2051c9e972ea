"""The JSON schema of scenario files, computed from the registry of routes."""

from __future__ import annotations

from dataclasses import fields

from ..schemas import Schema, Schemas
from ..shapes import required
from .file import CHECKS, STEPS_MAX, routes_by_name

WORDS = {"expect": "Checks a condition now.", "until": "Waits for a condition."}


def schema() -> Schema:
    """Returns the schema; editors and validators take it. `${name.path}` stands for any value."""
    schemas = Schemas("#/$defs/")
    kinds = {name: (one.asked, one.words) for name, one in sorted(routes_by_name().items())}
    kinds |= {name: (kind, WORDS[name]) for name, kind in CHECKS.items()}
    steps = [_step(name, kind, words, schemas) for name, (kind, words) in kinds.items()]
    step = {
        "type": "object",
        "properties": {
            **dict(steps),
            "as": {"type": "string", "description": "A name for the reply, for ${name.path} in steps below."},
            "refused": {"type": "integer", "description": "The status with which the step must be refused."},
        },
        "additionalProperties": False,
        "oneOf": [{"required": [name]} for name, _ in steps],
    }
    for one in schemas.classes.values():
        _take_references(one)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario of ottla's lab",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}, "maxItems": STEPS_MAX},
        },
        "required": ["steps"],
        "additionalProperties": False,
        "$defs": {"reference": {"type": "string", "pattern": r"\$\{[A-Za-z_]\w*.*\}"}, "step": step, **schemas.classes},
    }


def _step(name: str, kind: type, words: str, schemas: Schemas) -> tuple[str, Schema]:
    """The schema of a step's value: its keys, or the value of the first key alone."""
    names = [one.name for one in fields(kind)]
    if not names:
        return name, {"description": words, "type": ["object", "null"], "maxProperties": 0}
    whole = schemas.of(kind)
    first = schemas.record(kind)["properties"]
    assert isinstance(first, dict)
    forms: list[object] = [whole]
    if required(kind) <= {names[0]}:
        forms.append(first[names[0]])
    forms += [{"type": "null"}] if not required(kind) else []
    return name, {"description": words, "anyOf": [*forms, {"$ref": "#/$defs/reference"}]}


def _take_references(record: Schema) -> None:
    """Lets each value of a class be a reference too."""
    properties = record["properties"]
    assert isinstance(properties, dict)
    for name, one in properties.items():
        words = {key: one[key] for key in ("description", "default") if key in one}
        bare = {key: found for key, found in one.items() if key not in words}
        if bare and name != "kind":
            properties[name] = {**words, "anyOf": [bare, {"$ref": "#/$defs/reference"}]}
