"""`ottla partition` and `ottla cluster`: partitions with their replicas, and all nodes at a glance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import click

from .lab_client import Lab, segment
from .lab_output import Shown, lab_command, table
from .node_commands import nodes_table
from .protocol.text import printable

if TYPE_CHECKING:
    from .broker.lab.partition_routes import LossView, ReplicatedView

COLUMNS = ("partition", "leader", "epoch", "replicas", "isr", "elr", "high_watermark", "end", "why", "problems")
REPLICA_COLUMNS = ("node", "end_offset", "lag", "in_sync", "follows", "alive", "policy")
LOSS_COLUMNS = ("partition", "first_offset", "end_offset", "committed", "records", "leader_before", "leader", "epoch")


class Place(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """A topic and a partition: `orders:0`."""

    name = "place"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        topic, colon, index = str(value).rpartition(":")
        if not colon or not topic or not index.isdecimal():
            self.fail(f"{value!r} is not TOPIC:PARTITION, such as orders:0", param, ctx)
        return topic, int(index)


PLACE = click.argument("place", type=Place(), metavar="TOPIC:PARTITION")


@click.group()
def partition() -> None:
    """Show partitions with their replicas, move and elect leaders, and shrink what is in sync."""


@lab_command("list", watch=True)
@click.option("-x", "--problems", is_flag=True, help="Only partitions that have a problem.")
@click.option("-i", "--internal", is_flag=True, help="Partitions of internal topics too.")
@click.argument("topic", required=False)
def list_partitions(lab: Lab, topic: str | None, problems: bool, internal: bool) -> Shown:
    """List the partitions of TOPIC, or of all topics: who leads and why, and what is in sync."""
    asked = {"topic": topic, "problems": problems, "internal": internal or topic is not None}
    found = lab.get("partitions", **asked)
    return Shown(found, lambda: table(COLUMNS, map(_row, found["partitions"])))


def _row(one: ReplicatedView) -> Mapping[str, object]:
    return {
        "partition": f"{one['topic']}:{one['partition']}",
        "leader": None if one["leader"] < 0 else one["leader"],
        "epoch": one["leader_epoch"],
        "replicas": _numbers(replica["node"] for replica in one["replicas"]),
        "isr": _numbers(one["isr"]),
        "elr": _numbers(one["elr"]),
        "high_watermark": one["high_watermark"],
        "end": one["log_end_offset"],
        "why": one["why"],
        "problems": "; ".join(one["problems"]) or None,
    }


def _numbers(found: Iterable[int]) -> str | None:
    return ",".join(map(str, found)) or None


@lab_command("show", watch=True)
@PLACE
def show_partition(lab: Lab, place: tuple[str, int]) -> Shown:
    """Show the replicas of a partition: how far each has the log."""
    return _shown(lab.get(_path(place)))


def _path(place: tuple[str, int], *words: str) -> str:
    topic, index = place
    return "/".join(("partitions", segment(topic), str(index), *words))


def _shown(found: ReplicatedView) -> Shown:
    return Shown(found, lambda: _lines(found))


def _lines(one: ReplicatedView) -> Iterator[str]:
    yield from (printable(f"{name}: {value}") for name, value in _row(one).items() if value is not None)
    yield from table(REPLICA_COLUMNS, one["replicas"], "  ")


@lab_command("move")
@click.option("-n", "--node", type=int, default=None, help="The node that is to lead; default: the next in sync.")
@PLACE
def move(lab: Lab, place: tuple[str, int], node: int | None) -> Shown:
    """Let another replica in sync lead a partition."""
    return _shown(lab.post(_path(place, "move"), node=node))


@lab_command("elect")
@click.option("--unclean", is_flag=True, help="Elect any replica that is alive, although records may be lost.")
@PLACE
def elect(lab: Lab, place: tuple[str, int], unclean: bool) -> Shown:
    """Elect the preferred leader of a partition."""
    return _shown(lab.post(_path(place, "elect"), election="unclean" if unclean else "preferred"))


@lab_command("shrink")
@click.option("-n", "--node", type=int, default=None, help="The replica that leaves; default: all but the leader.")
@PLACE
def shrink(lab: Lab, place: tuple[str, int], node: int | None) -> Shown:
    """Take replicas of a partition out of those in sync, and hold them until `ottla release TOPIC --node NODE`."""
    return _shown(lab.post(_path(place, "shrink"), node=node))


@lab_command("isr-size")
@click.option("-p", "--partition", type=int, default=None, help="Only this partition; default: all of the topic.")
@click.argument("topic")
@click.argument("size", type=int, required=False)
def isr_size(lab: Lab, topic: str, partition: int | None, size: int | None) -> Shown:
    """Say that SIZE replicas of TOPIC are in sync, so that one broker alone refuses acks=all. Without SIZE: as many as
    are.
    """
    found = lab.post("isr-size", topic=topic, partition=partition, size=size)
    return Shown(found, lambda: table(COLUMNS, map(_row, found["partitions"])))


@lab_command("losses", watch=True)
def losses(lab: Lab) -> Shown:
    """List the records that were lost in elections: offsets, and how many of each producer id."""
    found = lab.get("losses")
    return Shown(found, lambda: table(LOSS_COLUMNS, map(_loss, found["losses"])))


def _loss(one: LossView) -> Mapping[str, object]:
    return {
        **one,
        "partition": f"{one['topic']}:{one['partition']}",
        "records": " ".join(f"{producer}={count}" for producer, count in one["records"].items()),
        "epoch": one["leader_epoch"],
    }


for command in (list_partitions, show_partition, move, elect, shrink, isr_size, losses):
    partition.add_command(command)


@lab_command(watch=True)
def cluster(lab: Lab) -> Shown:
    """Show the nodes of a running cluster, and the partitions that have a problem."""
    nodes = lab.get("nodes")
    problems = lab.get("partitions", problems=True)["partitions"]
    lost = lab.get("losses")
    found = {**nodes, "problems": problems, "committed_records_lost": lost["committed_records"]}

    def lines() -> Iterator[str]:
        yield from nodes_table(nodes["nodes"])
        missing = "none: metadata waits" if nodes["controller"] < 0 else f"node {nodes['controller']}"
        yield f"controller: {missing if nodes['controller_at_node'] else 'at no node'}"
        yield f"partitions with a problem: {len(problems) or 'none'}"
        if problems:
            yield from table(COLUMNS, map(_row, problems), "  ")
        if lost["committed_records"]:
            yield f"committed records that elections lost: {lost['committed_records']} (ottla partition losses)"

    return Shown(found, lines)
