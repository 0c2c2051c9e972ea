"""Writes the pages that are computed: tables of APIs, rights, limits, routes, metrics, and columns of the Spark source.

They go to `docs/reference/_computed`, which is not in the repository, before Sphinx reads the pages that include them.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ottla.broker import error_places
from ottla.broker.apis import apis
from ottla.broker.config.config import OWN_KEYS
from ottla.broker.lab.routes import PARTS, Route, routes_of
from ottla.broker.lab.schemas import Schemas
from ottla.broker.lab.shapes import example_values
from ottla.broker.limits import LIMITS
from ottla.broker.net.audit_log import KINDS
from ottla.broker.net.limits import ELEMENTS_MAX, ELEMENTS_MAX_BY_KEY, elements_max
from ottla.broker.security.authorization import rows
from ottla.protocol import schema
from ottla.protocol.config_def import keys
from ottla.verdict.rule import EXAMINATIONS
from ottla.verdict.rules import all_rules

from ottla.testing import Broker

RELEASES_IN_TABLE = 11
OUT = Path(__file__).resolve().parents[1] / "reference" / "_computed"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def served_apis() -> str:
    return table(("key", "API", "versions"), ((a.key, a.name, f"{a.low} to {a.high}") for a in apis().values()))


def releases() -> str:
    """The versions of the served APIs by release: a row for an API, a table for some releases."""
    from ottla.broker.emulation.apis import emulated
    from ottla.broker.emulation.releases import releases as known

    served = {name: emulated(release, apis()) for name, release in known().items()}
    names, present = list(served), apis()

    def row(key: int, some: Sequence[str]) -> tuple[object, ...]:
        found = [served[name].get(key) for name in some]
        return (present[key].name, *("–" if one is None else f"{one.low}–{one.high}" for one in found))

    parts = [names[at : at + RELEASES_IN_TABLE] for at in range(0, len(names), RELEASES_IN_TABLE)]
    return "\n".join(
        table(("API", *some), (row(key, some) for key in present if any(key in served[name] for name in some)))
        for some in parts
    )


def absent_apis() -> str:
    """The APIs of Apache Kafka that are not served: those that only its controllers have. Raises RuntimeError if a
    broker's is among them.
    """
    names = [one["request"] for key, one in schema.index()["apis"].items() if int(key) not in apis()]
    of_brokers = [name for name in names if "broker" in schema.load(name).listeners]
    if of_brokers:
        raise RuntimeError(f"docs/reference/apis.md says that all APIs of brokers are served, but for {of_brokers}")
    return ", ".join(name.removesuffix("Request") for name in names) + ".\n"


def authorization() -> str:
    """What a principal must be allowed for each API, from the declarations beside the handlers."""
    heads = ("API", "operation", "resource", "its name", "what is refused without it")
    return table(heads, (row for api in apis().values() for row in rows(api.name, api.authorization)))


def errors() -> str:
    """Where errors stand in the reply of each API, and which, from the declarations beside the handlers."""
    heads = ("API", "place", "versions", "field", "errors")
    return table(heads, (row for api in apis().values() for row in error_places.rows(api.name, api.errors)))


def verdict() -> str:
    """The rules of each examination, from their declarations."""
    heads = ("rule", "severity", "what a client does", "why")
    return "\n".join(
        f"## {name}: {who}\n\n"
        + table(heads, ((f"[{one.id}]({one.link})", one.severity, one.what, one.why) for one in found))
        for name, who in EXAMINATIONS.items()
        for found in [[rule.about for rule in all_rules(name)]]
    )


def limits() -> str:
    """The limits against abuse, from their declarations."""
    rows = []
    for limit in LIMITS:
        defaults = ((key, _default_of(key)) for key in limit.keys)
        bounds = [f"`{key}` ({default})" if default else f"`{key}`" for key, default in defaults]
        bounds += [limit.bound] * bool(limit.bound)
        rows.append((f"`{limit.name}`", limit.what, "; ".join(bounds), limit.beyond))
    return table(("limit", "of", "key (default), or what holds", "beyond"), rows)


def _default_of(key: str) -> str | None:
    return (OWN_KEYS.get(key) or keys("broker").get(key) or keys("topic")[key]).default


def audit_log() -> str:
    """The fields of each kind of line of the audit log, from their declarations."""
    heads = ("field", "type", "meaning")
    return "\n".join(
        f"## A line about {kind}\n\n" + table(heads, ((f"`{one.name}`", one.type, one.meaning) for one in found))
        for kind, found in KINDS.items()
    )


def elements() -> str:
    """How many elements the arrays of a request may have, where that is not the number for most APIs."""
    found = ((api.name, f"{elements_max(api.key):,}") for api in apis().values() if api.key in ELEMENTS_MAX_BY_KEY)
    return table(("API", "elements"), [*found, ("all others", f"{ELEMENTS_MAX:,}")])


def metrics() -> str:
    """The metrics of a broker that has just started, by name."""
    import urllib.request

    with Broker() as broker, urllib.request.urlopen(f"{broker.lab_url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    helps = dict(line.removeprefix("# HELP ").split(" ", 1) for line in lines if line.startswith("# HELP "))
    kinds = dict(line.removeprefix("# TYPE ").split(" ", 1) for line in lines if line.startswith("# TYPE "))
    return "\n".join(f"`{name}` ({kinds[name]})\n: {text}\n" for name, text in sorted(helps.items()))


def columns() -> str:
    from ottla.pipeline.views import VIEWS

    heads = ("column", "type", "meaning")
    return "\n".join(
        f"### `{view}`\n\n" + table(heads, ((f"`{one.name}`", f"`{one.kind}`", one.meaning) for one in found))
        for view, found in VIEWS.items()
    )


def routes() -> str:
    """The routes of the lab, a section for each of its modules, and the classes of bodies and replies."""
    schemas = Schemas("")
    sections = [_section(module, schemas) for module in dict.fromkeys(PARTS.values())]
    classes = [_class(name, one) for name, one in sorted(schemas.classes.items())]
    return "\n".join([*sections, "## Objects\n", *classes])


def _section(module: str, schemas: Schemas) -> str:
    """A section has the name that the module's docstring begins with, up to its first colon or full stop."""
    title = re.split(r"[:.]", importlib.import_module(f"ottla.broker.lab.{module}").__doc__ or "")[0]
    return "\n".join([f"## {title}\n", *(_route(one, schemas) for one in routes_of(module))])


def _route(route: Route, schemas: Schemas) -> str:
    parts = [f"### {route.method} {route.path}\n", f"{route.words}\n"]
    taken = schemas.record(route.asked)
    if taken["properties"]:
        parts.append(_fields(taken))
    values = example_values(route.example)
    body = {name: one for name, one in values.items() if name not in route.in_path} if isinstance(values, dict) else {}
    if route.takes_body and body:
        parts.append(f"```json\n{json.dumps(body, ensure_ascii=False)}\n```\n")
    reply = "text" if route.reply is None else _shape(schemas.of(route.reply))
    refusals = "".join(f" {status} if {words}." for status, words in sorted(route.errors.items()))
    return "\n".join([*parts, f"Returns {reply}.{refusals}\n"])


def _class(name: str, schema: dict[str, Any]) -> str:
    return f"({name})=\n\n### {name}\n\n{schema.get('description', '')}\n\n{_fields(schema)}"


def _fields(schema: dict[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = []
    for name, one in schema["properties"].items():
        default = f" Default: `{json.dumps(one['default'])}`." if one.get("default") not in (None, [], {}) else ""
        bounds = _bounds(one)
        words = one.get("description", "") + (f" {bounds}." if bounds else "") + default
        rows.append((f"`{name}`" + ("" if name in needed else "?"), _shape(one), words))
    return table(("key", "type", "meaning"), rows)


def _bounds(schema: dict[str, Any]) -> str:
    names = {"minimum": "At least", "maximum": "At most", "maxLength": "At most", "maxItems": "At most"}
    units = {"maxLength": " characters", "maxItems": " elements"}
    found = "; ".join(f"{words} {schema[key]}{units.get(key, '')}" for key, words in names.items() if key in schema)
    return found.replace("; At", "; at")


def _shape(schema: dict[str, Any]) -> str:
    """The type that a schema describes, in words; classes are links."""
    if "$ref" in schema:
        return f"[{schema['$ref']}](#{schema['$ref']})"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return " or ".join(_shape(one) for one in schema[key])
    if schema.get("type") == "array":
        return f"list of {_shape(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object with values of {_shape(schema['additionalProperties'])}"
    if "pattern" in schema:
        return "duration"
    types = schema.get("type", "any JSON")
    return types if isinstance(types, str) else " or ".join(types)


def write(_: Any = None) -> None:
    OUT.mkdir(exist_ok=True)
    pages = {"apis": served_apis(), "absent_apis": absent_apis(), "releases": releases()}
    pages |= {"authorization": authorization()}
    pages |= {"errors": errors(), "verdict": verdict()}
    pages |= {"limits": limits(), "elements": elements(), "audit_log": audit_log()}
    pages |= {"metrics": metrics(), "columns": columns(), "routes": routes()}
    for name, text in pages.items():
        (OUT / f"{name}.md").write_text(text)


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
