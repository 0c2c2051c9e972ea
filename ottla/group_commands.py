"""`ottla groups` and `ottla group`: groups of a running broker, and the timeline of one, also from a data directory.
`ottla reset-offsets` and `ottla delete-offsets` set where groups go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from .lab_client import Lab, segment
from .lab_output import Shown, lab_command, table
from .protocol.text import printable

if TYPE_CHECKING:
    from .broker.lab.group_views import GroupStateView, OffsetView
    from .broker.lab.streams_views import TopologyNodeView
    from .coordinator.group.events import GroupEventView, TopicPartitionsView
    from .coordinator.group.view import GroupMemberView, TimerView, WaitView

NODES = ("subtopology", "node", "type", "topics", "stores", "successors")
LINES_MAX = 20  # of a timeline beside the rest
WAITS: Mapping[str, str] = {
    "join": "waits for {member} to join again",
    "sync": "waits for {member} to sync",
    "heartbeat": "waits for a heartbeat of {member}",
    "revoke": "waits for {member} to give up {partitions}",
    "rejoin": "waits for the static member {member} to come back",
    "gather": "waits for more members",
    "retry": "waits before all join again: the leader assigned no partitions",
    "commit": "waits until the assignment is committed",
    "assign": "waits for a new assignment, which the next heartbeat of any member begins",
    "initialize": "waits until share-partitions are initialized: {partitions}",
}


@lab_command(watch=True)
@click.option("--type", "kind", default=None, help="Only groups of this kind: classic, consumer, share or streams.")
@click.option("--state", default=None, help="Only groups in this state, such as Stable.")
@click.argument("pattern", required=False)
def groups(lab: Lab, kind: str | None, state: str | None, pattern: str | None) -> Shown:
    """List groups of all kinds, or those whose names match PATTERN, such as 'orders-*'."""
    found = list(lab.every("groups", "groups", type=kind, state=state, name=pattern))
    return Shown(found, lambda: table(("group", "kind", "state", "epoch", "members", "protocol_type"), found))


@lab_command(watch=True)
@click.option("-t", "--timeline", "with_timeline", is_flag=True, help="Show all that happened, and nothing else.")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    default=None,
    help="Show the timeline that is in a data directory, without a broker.",
)
@click.argument("name")
def group(lab: Lab, with_timeline: bool, data: str | None, name: str) -> Shown:
    """Show the group NAME: what its rebalance waits for and how long, its members with what they have and are to have,
    its offsets with their lag, and what happened last.
    """
    if data is not None:
        return _shown(_history(data, name))
    path = f"groups/{segment(name)}"
    events = _events(lab, f"{path}/timeline")
    if with_timeline:
        return _shown(events)
    found = lab.group(name)
    return Shown({**found, "timeline": events}, lambda: _group(found, events))


@lab_command()
@click.option("-t", "--topic", required=True, help="The topic.")
@click.option("-p", "--partition", type=int, default=None, help="Only this partition of the topic.")
@click.option("--to", type=click.Choice(["earliest", "latest"]), default=None, help="The log start or its end.")
@click.option("--offset", type=int, default=None, help="This offset; the nearest that there is.")
@click.option("--timestamp", type=int, default=None, help="The first record at or after this time, in milliseconds.")
@click.option("--by", type=int, default=None, help="So many records back (below 0) or on.")
@click.option("--execute", is_flag=True, help="Set the offsets; without it the plan is shown.")
@click.argument("name")
def reset_offsets(lab: Lab, name: str, execute: bool, **asked: object) -> Shown:
    """Set the committed offsets of the group NAME, or the start offsets of a share group. The group must have no
    members.
    """
    wanted = {key: value for key, value in asked.items() if value is not None}
    found = lab.put(f"groups/{segment(name)}/offsets", wanted, plan=not execute)
    columns = ("topic", "partition", "before", "after")
    rows = [{**one, "after": one["committed_offset"]} for one in found["offsets"]]
    return Shown(found, lambda: _planned(table(columns, rows), execute))


@lab_command()
@click.option("-t", "--topic", required=True, help="The topic.")
@click.option("--execute", is_flag=True, help="Delete the offsets; without it the plan is shown.")
@click.argument("name")
def delete_offsets(lab: Lab, name: str, topic: str, execute: bool) -> Shown:
    """Forget a topic of the share group NAME: the group begins again where its configuration says. The group must have
    no members.
    """
    plan = {} if execute else {"plan": "true"}
    found = lab.delete(f"groups/{segment(name)}/offsets", topic=topic, **plan)
    return Shown(found, lambda: _planned(table(("topic", "partition", "before"), found["offsets"]), execute))


def _planned(lines: Iterable[str], is_done: bool) -> Iterator[str]:
    yield from lines
    if not is_done:
        yield "This is the plan: --execute carries it out."


def _history(data: str, name: str) -> list[GroupEventView]:
    from .group_history import timeline

    try:
        found = timeline(data, name)
    except OSError as error:
        raise click.ClickException(str(error)) from None
    if not found:
        raise click.ClickException(f"{data} has no records of a group {name}")
    return found


def _events(lab: Lab, path: str) -> list[GroupEventView]:
    """All events of a timeline, which comes in parts."""
    from .lab_client import LabRefused

    found: list[GroupEventView] = []
    while True:
        try:
            part = lab.get(path, after=found[-1]["number"] if found else 0)["events"]
        except LabRefused as error:
            if error.status == 409:  # the broker keeps no timelines
                return found
            raise
        if not part:
            return found
        found += part


def _shown(events: list[GroupEventView]) -> Shown:
    return Shown(events, lambda: _timeline(events))


def _group(found: GroupStateView, events: Sequence[GroupEventView]) -> Iterator[str]:
    epochs = f"epoch {found['epoch']}"
    if found["assignment_epoch"] is not None:
        epochs += f", assignment of epoch {found['assignment_epoch']}"
    assignor = f", {found['assignor']}" if found["assignor"] else ""
    yield printable(f"{found['group']}  {found['kind']}  {found['state']}  {epochs}{assignor}{_left(found['timers'])}")
    for one in found["waits"]:
        yield printable(f"  {_wait(one)}")
    columns = ("member", "client", "state", "epoch", "assigned", "target", "revoking", "timers")
    yield "members:"
    yield from table(columns, [_member(one, found["leader"]) for one in found["members"]], "  ")
    if found["pending"]:
        yield printable(f"  ids that were given out: {', '.join(found['pending'])}")
    for regex in found["regexes"]:
        yield printable(f"  {regex['regex']} matches {', '.join(regex['topics']) or 'nothing'}")
    offsets = list(found["offsets"])
    if offsets:
        yield "offsets:"
        owners = _owners(found["members"])
        yield from table(
            ("topic", "partition", "committed_offset", "high_watermark", "log_end_offset", "lag", "member"),
            [{**one, "member": owners.get(_place(one))} for one in offsets],
            "  ",
        )
    shares = list(found["share_partitions"])
    if shares:
        yield "share-partitions:"
        yield from table(("topic", "partition", "start_offset", "in_flight", "high_watermark", "lag"), shares, "  ")
    described = found["streams"]["description"] if found["streams"] is not None else None
    if described:
        yield "topology:"
        yield from table(NODES, [{**one, **_joined(one)} for one in described], "  ")
    if events:
        yield "last events:"
        yield from _timeline(events[-LINES_MAX:], "  ")


def _joined(node: TopologyNodeView) -> dict[str, str]:
    """The lists of a node as texts."""
    lists = {"topics": node["topics"], "stores": node["stores"], "successors": node["successors"]}
    return {name: ", ".join(some) for name, some in lists.items()}


def _wait(one: WaitView) -> str:
    words = WAITS[one["action"]].format(member=one["member"], partitions=_places(one["partitions"]) or "nothing")
    if one["action"] in ("heartbeat", "join", "rejoin") and one["partitions"]:
        words += f", which has {_places(one['partitions'])}"
    if one["awaited_by"]:
        words += f"; {', '.join(one['awaited_by'])} will get that"
    return words if one["remaining_ms"] is None else f"{words} ({one['remaining_ms'] / 1000:.1f} s left)"


def _member(one: GroupMemberView, leader: str | None) -> dict[str, object]:
    name = one["member"] if one["instance_id"] is None else f"{one['member']} ({one['instance_id']})"
    return {
        "member": f"{name} *" if one["member"] == leader else name,
        "client": f"{one['client_id']}@{one['client_host'].lstrip('/')}",
        "state": one["state"],
        "epoch": one["epoch"],
        "assigned": _places(one["assigned"]) or None,
        "target": _places(one["target"] or []) or None,
        "revoking": _places(one["revoking"]) or None,
        "timers": ", ".join(f"{t['timer']} {t['remaining_ms'] / 1000:.1f} s" for t in one["timers"]) or None,
    }


def _left(timers: Iterable[TimerView]) -> str:
    return "".join(f", {one['timer']} ends in {one['remaining_ms'] / 1000:.1f} s" for one in timers)


def _places(found: Iterable[TopicPartitionsView]) -> str:
    return " ".join(f"{one['topic']}:{','.join(map(str, one['partitions']))}" for one in found if one["partitions"])


def _owners(members: Iterable[GroupMemberView]) -> dict[tuple[str, int], str]:
    return {
        (held["topic"], index): one["member"]
        for one in members
        for held in one["assigned"]
        for index in held["partitions"]
    }


def _place(one: OffsetView) -> tuple[str, int]:
    return one["topic"], one["partition"]


def _timeline(events: Iterable[GroupEventView], indent: str = "") -> Iterator[str]:
    rows = [
        {"number": one["number"], "time": _time(one["at_ms"]), "source": one["source"], "what": one["words"]}
        for one in events
    ]
    yield from table(("number", "time", "source", "what"), rows, indent)


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
