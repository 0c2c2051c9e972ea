"""`ottla node`: lists, stops, starts, pauses, parts and fences the nodes of a running cluster, through its lab port."""

from __future__ import annotations

from collections.abc import Iterator

import click

from .lab_client import Lab
from .lab_output import Shown, lab_command, table

COLUMNS = (
    "node",
    "rack",
    "state",
    "held",
    "cut",
    "side",
    "drained",
    "fenced",
    "leads",
    "in_sync",
    "replicas",
    "listeners",
)
HELP = {
    "stop": "Stop the node NODE: others lead before it ends.",
    "kill": "End the node NODE at once; it is fenced when its session has expired.",
    "start": "Start the node NODE again.",
    "pause": "Let the connections of the node NODE stay open while it answers nothing.",
    "resume": "Let the node NODE go on after a pause.",
    "drain": "Let others lead instead of the node NODE, until `unfence`, or before `stop`.",
    "fence": "Let the node NODE lead nothing, while it goes on answering.",
    "hold": "Let the replicas of the node NODE fall behind.",
    "release": "Let the replicas of the node NODE follow their leaders again.",
    "cut": "Cut the node NODE off from all other nodes and the controller; its clients reach it.",
    "heal": "Let the others reach the node NODE again after `cut`.",
    "control": "Make the node NODE the active controller, which fails with it from now on.",
    "unfence": "Let the node NODE lead again.",
}


@click.group()
def node() -> None:
    """List the nodes of a running cluster (`ottla serve --nodes 3`), and let them stop, start, pause and fail."""


@lab_command("list", watch=True)
def list_nodes(lab: Lab) -> Shown:
    """List the nodes: what they do, lead and have in sync."""
    return _shown(lab.get("nodes"))


def _shown(found: dict[str, list[dict[str, object]]]) -> Shown:
    return Shown(found, lambda: nodes_table(found["nodes"]))


def nodes_table(nodes: list[dict[str, object]]) -> Iterator[str]:
    """Yields the lines of a table of nodes, with the log directories that have failed, if any has."""
    columns = (*COLUMNS, "failed") if any(one["failed"] for one in nodes) else COLUMNS
    return table(columns, map(_row, nodes))


def _row(one: dict[str, object]) -> dict[str, object]:
    listeners, failed = one["listeners"], one["failed"]
    assert isinstance(listeners, list)
    assert isinstance(failed, list)
    return {**one, "listeners": ",".join(listeners), "failed": ",".join(failed)}


@lab_command("add")
def add_node(lab: Lab) -> Shown:
    """Add a node with the next id, and start it."""
    return _shown(lab.post("nodes"))


@lab_command("remove")
@click.argument("node", type=int)
def remove_node(lab: Lab, node: int) -> Shown:
    """Stop the node NODE and forget it (UnregisterBroker)."""
    return _shown(lab.delete(f"nodes/{node}"))


@lab_command("fail")
@click.argument("node", type=int)
@click.argument("directory")
def fail_directory(lab: Lab, node: int, directory: str) -> Shown:
    """Let DIRECTORY, a log directory of the node NODE, fail until the node starts again: others lead its replicas."""
    return _shown(lab.post(f"nodes/{node}/failed-directories", directory=directory))


class _Side(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """Ids of nodes, with commas between them."""

    name = "side"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        try:
            return [int(one) for one in value.split(",")]
        except ValueError:
            self.fail(f"{value!r} is no list of nodes, such as 1,2", param, ctx)


@lab_command("part")
@click.argument("sides", type=_Side(), nargs=-1, required=True, metavar="NODE,... NODE,...")
def part_network(lab: Lab, sides: tuple[list[int], ...]) -> Shown:
    """Part the network into sides, such as 1,2 and 3, which do not reach each other; clients reach all nodes."""
    return _shown(lab.post("nodes/partition", sides=sides))


@lab_command("join")
def join_network(lab: Lab) -> Shown:
    """Let all nodes reach each other again, after `part` and `cut`."""
    return _shown(lab.delete("nodes/partition"))


def _command(do: str) -> click.Command:
    @click.argument("node", type=int)
    def change(lab: Lab, node: int) -> Shown:
        return _shown(lab.post(f"nodes/{node}", do=do))

    change.__doc__ = HELP[do]
    made: click.Command = lab_command(do)(change)
    return made


for command in (list_nodes, add_node, remove_node, fail_directory, part_network, join_network):
    node.add_command(command)
for word in HELP:
    node.add_command(_command(word))
