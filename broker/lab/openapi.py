"""The OpenAPI 3.1 document of the lab, computed from the registry of routes."""

from __future__ import annotations

from dataclasses import is_dataclass
from http import HTTPStatus

from .access import WITHOUT_TOKEN
from .encode import JSON
from .routes import ErrorView, Route, every_route
from .schemas import Schema, Schemas, defaults, types_in
from .shapes import example_values, hints, required

DESCRIPTION = """See and control an ottla broker: its state, high watermarks, faults, clock and more.

A request that is refused gets `{"error": words}`, with the path of a wrong value as `key`. Bodies have at most 64 KiB.
Durations are milliseconds or texts such as `250ms`, `1.5s`, `2m`, `1d`. Unknown keys are refused."""


def document() -> Schema:
    """Returns the document. Imports every part of the lab."""
    schemas = Schemas()
    schemas.of(ErrorView)
    paths: dict[str, Schema] = {}
    for one in every_route():
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "The lab of ottla", "version": "1", "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.classes.items())),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "The value of `ottla.lab.token`, if set."}
            },
        },
    }


def _operation(route: Route, schemas: Schemas) -> Schema:
    out: Schema = {
        "operationId": route.name,
        "summary": route.words.split(". ")[0].removesuffix("."),
        "description": route.words,
        "tags": [route.part],
    }
    parameters = [_parameter(route, name, schemas) for name in hints(route.asked) if _is_parameter(route, name)]
    if parameters:
        out["parameters"] = parameters
    body = _body(route, schemas)
    if body is not None:
        out["requestBody"] = body
    if route.path in WITHOUT_TOKEN:
        out["security"] = []
    out["responses"] = _responses(route, schemas)
    return out


def _is_parameter(route: Route, name: str) -> bool:
    return name in route.in_path or not route.takes_body


def _parameter(route: Route, name: str, schemas: Schemas) -> Schema:
    schema = schemas.of(hints(route.asked)[name])
    in_path = name in route.in_path
    out: Schema = {"name": name, "in": "path" if in_path else "query"}
    if words := schema.pop("description", None):
        out["description"] = words
    if in_path or name in required(route.asked):
        out["required"] = True
    if (default := defaults(route.asked).get(name)) is not None:
        schema["default"] = example_values(default)
    named = [one for one in types_in(schema) if one != "null"]
    schema["type"] = named[0] if len(named) == 1 else named  # a parameter that is null is left out
    out["schema"] = schema
    values = example_values(route.example)
    if isinstance(values, dict) and name in values:
        out["example"] = values[name]
    return out


def _body(route: Route, schemas: Schemas) -> Schema | None:
    if route.form is not None:
        form = {"schema": schemas.of(route.form)}
        return {"required": True, "content": {"application/x-www-form-urlencoded": form}}
    if not route.takes_body or not hints(route.asked):
        return None
    schema = schemas.record(route.asked, route.in_path) if route.in_path else schemas.of(route.asked)
    values = example_values(route.example)
    assert isinstance(values, dict)
    example = {name: value for name, value in values.items() if name not in route.in_path}
    is_needed = any(name not in route.in_path for name in required(route.asked))
    return {"required": is_needed, "content": {JSON: {"schema": schema, "example": example}}}


def _responses(route: Route, schemas: Schemas) -> Schema:
    text: Schema = {"type": "string"}
    reply = _content(route.content_type, schemas.of(route.reply) if route.reply is not None else text)
    for page in route.pages.values():
        reply |= _content(page.content_type, text)
    error = _content(JSON, schemas.of(ErrorView))
    found: Schema = {"200": {"description": "The reply.", "content": reply}}
    errors = dict(route.errors)
    if is_dataclass(route.asked) and hints(route.asked):
        errors.setdefault(400, "a value is wrong, or a key is unknown")
    for status, words in sorted(errors.items()):
        content = _content(JSON, {"type": "object"}) if route.takes_request else error
        found[str(status)] = {"description": f"{HTTPStatus(status).phrase}: {words}.", "content": content}
    found["default"] = {"description": "Any other refusal.", "content": error}
    return found


def _content(kind: str, schema: Schema) -> Schema:
    return {kind.partition(";")[0]: {"schema": schema}}
