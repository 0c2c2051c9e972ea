"""`ottla lab`: every route of a running broker, by name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import ClassVar

import click

from .lab_client import Lab, LabRefused, segment
from .lab_output import Shown, anything, lab_command, table
from .lazy import LazyGroup


class LabCommands(LazyGroup):
    """The commands of other parts of the lab, by name."""

    lazy: ClassVar[Mapping[str, str]] = {
        "fault": "fault_commands:fault",
        "requests": "fault_commands:requests",
        "run": "scenario_commands:run",
        "schema": "scenario_commands:schema",
    }


@click.group(cls=LabCommands)
def lab() -> None:
    """Control a running broker, and run scenarios.

    Exit codes: 0 done, 1 the broker refused it or a check failed, 2 wrong usage, 3 no broker answers.
    """


@lab_command("routes")
def routes_command(lab: Lab) -> Shown:
    """List the routes of the broker's HTTP API."""
    described = lab.get("openapi.json")["paths"]
    rows = [
        {"name": one["operationId"], "method": method.upper(), "path": path, "what": one["summary"]}
        for path, methods in described.items()
        for method, one in methods.items()
    ]
    return Shown(rows, lambda: table(("name", "method", "path", "what"), rows))


@lab_command("call")
@click.argument("name")
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
def call_command(lab: Lab, name: str, values: tuple[str, ...]) -> Shown:
    """Ask the route NAME, such as `ottla lab call hold topic=orders`. Each VALUE is YAML: a text, a number, a list, an
    object. `ottla lab routes` lists the names.
    """
    import yaml

    given: dict[str, object] = {}
    for one in values:
        key, sign, value = one.partition("=")
        if not sign:
            raise click.BadParameter(f"{one} is not KEY=VALUE", param_hint="KEY=VALUE")
        try:
            given[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise click.BadParameter(f"the value of {key} is not valid YAML", param_hint="KEY=VALUE") from None
    found = call(lab, name, given)
    return Shown(found, lambda: anything(found))


def call(lab: Lab, name: str, values: Mapping[str, object]) -> object:
    """Asks a route by its name. Raises LabRefused, LabUnreachable, or SystemExit for a name that the broker lacks."""
    for path, methods in lab.get("openapi.json")["paths"].items():
        for method, one in methods.items():
            if one["operationId"] != name:
                continue
            left = dict(values)
            in_path = [part[1:-1] for part in path.split("/") if part[:1] == "{"]
            for key in in_path:
                if key not in left:
                    raise LabRefused(400, f"{key}: is missing", key)
            segments = [segment(left.pop(p[1:-1])) if p[:1] == "{" else p for p in path.split("/")]
            body, query = (None, left) if method in ("get", "delete") else (left, None)
            return lab.call(method.upper(), "/".join(segments), body, query)
    click.echo(f"ottla: the broker has no route {name}: ottla lab routes lists them", err=True)
    sys.exit(2)


for _command in (routes_command, call_command):
    lab.add_command(_command)
