"""The command `ottla clients`."""

from __future__ import annotations

import click

from .lab_client import Lab, segment
from .lab_output import Shown, anything, lab_command, table

COLUMNS = ("id", "client_id", "software", "principal", "requests", "last_request", "groups", "telemetry")


@lab_command(watch=True)
@click.argument("id", required=False)
def clients(lab: Lab, id: str | None) -> Shown:  # the name of the argument
    """Show the clients: who they are, what they asked for, and what they push.

    ID is a client's address, or its client instance id: shows all of that client, with its metrics.
    """
    if id is not None:
        found = lab.get(f"clients/{segment(id)}")
        return Shown(found, lambda: anything(found))
    everyone = lab.clients()
    return Shown(everyone, lambda: table(COLUMNS, map(_row, everyone)))


def _row(one: dict[str, object]) -> dict[str, object]:
    requests, groups, telemetry = one["requests"], one["groups"], one["telemetry"]
    assert isinstance(requests, dict)
    assert isinstance(groups, dict)
    pushes = f"{telemetry['pushes']} pushes, {telemetry['series']} series" if isinstance(telemetry, dict) else None
    return {
        **one,
        "software": f"{one['software_name']} {one['software_version']}",
        "requests": sum(requests.values()),
        "groups": ", ".join(groups) or None,
        "telemetry": pushes,
    }
