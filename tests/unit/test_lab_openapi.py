"""The OpenAPI document of the lab: valid by the schema of OpenAPI 3.1, with examples that are valid by their own
schemas, and the schemas of classes.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from jsonschema import Draft202012Validator
from ottla.broker.lab.openapi import document
from ottla.broker.lab.routes import Route, every_route
from ottla.broker.lab.schemas import Schemas
from ottla.broker.lab.shapes import Millis, Range, Size, example_values, parse

from ..support.sources import ROOT

META = ROOT / "tests" / "support" / "openapi-3.1.json"  # https://spec.openapis.org/oas/3.1/schema/2022-10-07


@cache
def described() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(document()))
    return found


@pytest.mark.long
def test_the_document_is_valid_openapi() -> None:
    errors = list(Draft202012Validator(json.loads(META.read_text())).iter_errors(described()))
    assert not errors, [f"{error.json_path}: {error.message}" for error in errors]
    for name, schema in described()["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object", name


def test_references_lead_somewhere() -> None:
    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if "$ref" in value else []
            return own + [one for inner in value.values() for one in references(inner)]
        return [one for inner in value for one in references(inner)] if isinstance(value, list) else []

    known = {f"#/components/schemas/{name}" for name in described()["components"]["schemas"]}
    assert set(references(described())) <= known


@pytest.mark.parametrize("route", every_route(), ids=lambda route: route.name)
def test_an_example_is_what_the_route_takes(route: Route) -> None:
    operation = described()["paths"][route.path][route.method.lower()]
    assert operation["operationId"] == route.name
    values = example_values(route.example)
    assert parse(route.asked, values) == route.example
    parameters = {one["name"]: one for one in operation.get("parameters", ())}
    assert set(route.in_path) <= set(parameters)
    for one in parameters.values():
        if "example" in one:
            Draft202012Validator({**described(), **one["schema"]}).validate(one["example"])
    for content in operation.get("requestBody", {"content": {}})["content"].values():
        if "example" in content:
            Draft202012Validator({**described(), **content["schema"]}).validate(content["example"])


def test_a_reply_with_several_forms_is_described_in_each() -> None:
    content = described()["paths"]["/v1/verdict"]["get"]["responses"]["200"]["content"]
    assert content["application/json"]["schema"] == {"$ref": "#/components/schemas/VerdictView"}
    assert content["text/html"] == content["image/svg+xml"] == {"schema": {"type": "string"}}


class Colour(enum.Enum):
    """A colour."""

    RED = "red"


@dataclass(frozen=True)
class Close:
    kind: Literal["close"] = "close"


@dataclass(frozen=True)
class Delay:
    """Waits."""

    by: Millis
    kind: Literal["delay"] = "delay"


@dataclass(frozen=True)
class Rule:
    """A rule."""

    api: Annotated[str, "The name of an API.", Size(1, 20)]
    share: Annotated[float, Range(0, 1)] = 1.0
    times: Annotated[int | None, Range(1)] = None
    colour: Colour = Colour.RED
    nodes: Annotated[list[int], Size(high=3)] = field(default_factory=list)
    action: Close | Delay = field(default_factory=Close)
    error: str | int = "NONE"
    rules: list[Rule] = field(default_factory=list)


class View(TypedDict):
    """What is seen."""

    name: str
    more: NotRequired[dict[str, object]]


def test_schemas_say_what_the_classes_say() -> None:
    schemas = Schemas("#/")
    assert schemas.of(list[Rule]) == {"type": "array", "items": {"$ref": "#/Rule"}}
    assert schemas.of(View | None) == {"anyOf": [{"$ref": "#/View"}, {"type": "null"}]}
    assert schemas.classes["View"] == {
        "type": "object",
        "description": "What is seen.",
        "properties": {"name": {"type": "string"}, "more": {"type": "object", "additionalProperties": {}}},
        "required": ["name"],
    }
    rule = schemas.classes["Rule"]
    assert (rule["description"], rule["required"], rule["additionalProperties"]) == ("A rule.", ["api"], False)
    assert rule["properties"] == {
        "api": {"type": "string", "description": "The name of an API.", "minLength": 1, "maxLength": 20},
        "share": {"type": "number", "minimum": 0, "maximum": 1, "default": 1.0},
        "times": {"type": ["integer", "null"], "minimum": 1},
        "colour": {"enum": ["red"], "description": "A colour.", "default": "red"},
        "nodes": {"type": "array", "items": {"type": "integer"}, "maxItems": 3, "default": []},
        "action": {
            "oneOf": [{"$ref": "#/Close"}, {"$ref": "#/Delay"}],
            "discriminator": {"propertyName": "kind", "mapping": {"close": "#/Close", "delay": "#/Delay"}},
            "default": {"kind": "close"},
        },
        "error": {"type": ["string", "integer"], "default": "NONE"},
        "rules": {"type": "array", "items": {"$ref": "#/Rule"}, "default": []},
    }
    assert schemas.classes["Delay"]["required"] == ["by", "kind"]


@pytest.mark.parametrize(
    "value",
    [
        {"api": "Fetch"},
        {"api": "Fetch", "times": None, "action": {"kind": "delay", "by": "1.5s"}},
        {"api": "Fetch", "rules": [{"api": "Produce", "share": 0.5}]},
        {"api": ""},
        {"api": "Fetch", "action": {"kind": "delay", "by": "1 day"}},
        {"api": "Fetch", "action": {"by": 1}},
        {"api": "Fetch", "rules": [{"api": "Produce", "share": 2}]},
        {"api": "Fetch", "colour": "blue"},
        {"api": "Fetch", "unknown": 1},
        {"api": 1},
    ],
)
def test_a_schema_takes_what_the_parser_takes(value: object) -> None:
    """One is not stricter than the other."""
    schemas = Schemas("#/$defs/")
    validator = Draft202012Validator({**schemas.of(Rule), "$defs": schemas.classes})
    try:
        parse(Rule, value)
    except ValueError:
        assert not validator.is_valid(value)
    else:
        assert validator.is_valid(value)
