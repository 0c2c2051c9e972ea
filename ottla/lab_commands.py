"""The commands that show and control a running broker, through its lab port only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import click

from .lab_client import Lab, LabRefused, segment
from .lab_output import Shown, lab_command, table
from .protocol.text import printable

if TYPE_CHECKING:
    from .broker.lab.records.views import RecordView
    from .broker.lab.share_views import SharePartitionView
    from .broker.lab.transaction_views import TransactionsView

PARTITION_COLUMNS = (
    *("topic", "partition", "log_start_offset", "high_watermark", "last_stable_offset", "log_end_offset"),
    *("policy", "state"),
)
RECORD_COLUMNS = "offset", "timestamp", "type", "key", "value", "headers", "problem"
PARTITION_NUMBER = click.option("-p", "--partition", default=0, show_default=True, help="The number of the partition.")


@lab_command(watch=True)
@click.argument("names", nargs=-1)
def topics(lab: Lab, names: tuple[str, ...]) -> Shown:
    """Show topics and their partitions, with offsets and high watermarks."""
    found = [one for one in lab.every("topics", "topics") if not names or one["topic"] in names]
    absent = [name for name in names if all(one["topic"] != name for one in found)]
    if absent:
        raise LabRefused(404, f"topic {absent[0]} does not exist")
    return Shown(
        found, lambda: table(PARTITION_COLUMNS, ({"topic": t["topic"], **p} for t in found for p in t["partitions"]))
    )


@lab_command(watch=True)
@PARTITION_NUMBER
@click.option("--offset", type=int, default=None, help="The first offset; -10 for the last ten.")
@click.option("--timestamp", type=int, default=None, help="The first record at or after this time, in milliseconds.")
@click.option("--key", default=None, help="Only records with this key, as a text or as 0x and hexadecimal digits.")
@click.option("-n", "--limit", default=50, show_default=True, help="How many records at most.")
@click.argument("topic")
def records(lab: Lab, topic: str, partition: int, **asked: str | int | None) -> Shown:
    """Show records of a partition of TOPIC, also those that consumers do not see yet; those of internal topics are
    decoded.
    """
    page = lab.get(f"records/{segment(topic)}/{partition}", **asked)
    found = page["records"]
    while not page["is_end"] and len(found) < int(asked["limit"] or 0):
        page = lab.get(f"records/{segment(topic)}/{partition}", **_next(asked, page["next"], len(found)))
        found += page["records"]
    return Shown(found, lambda: table(RECORD_COLUMNS, map(_record, found)))


def _next(asked: Mapping[str, str | int | None], offset: int, found: int) -> dict[str, str | int | None]:
    """What to ask for the page that follows."""
    return {**asked, "timestamp": None, "offset": offset, "limit": int(asked["limit"] or 0) - found}


def _record(one: RecordView) -> dict[str, object]:
    decoded = one["decoded"] if isinstance(one["decoded"], dict) else {}
    return {**one, **decoded, "headers": " ".join(f"{h['name']}={h['value']}" for h in one["headers"]) or None}


@lab_command(watch=True)
@click.argument("group", required=False)
@click.argument("share_partition", required=False, metavar="[TOPIC[:PARTITION]]")
def share(lab: Lab, group: str | None, share_partition: str | None) -> Shown:
    """Show the records in flight of the share group GROUP, by partition: state, member and lock time. Without GROUP:
    list share groups.
    """
    place = share_partition or ""
    topic, _, index = place.rpartition(":") if ":" in place else (place, "", "")
    found = lab.get("/".join(["share", *(segment(part) for part in (group, topic, index) if part)]))
    if group is None:
        return Shown(found, lambda: table(("group", "share_partitions"), found["groups"]))
    return Shown(found, lambda: (line for one in found["share_partitions"] for line in _share_partition(one)))


def _share_partition(one: SharePartitionView) -> Iterator[str]:
    shown: Mapping[str, object] = one
    offsets = (
        *("start_offset", "end_offset", "high_watermark", "lag", "in_flight", "complete", "lock_timeouts"),
        "waiting_fetches",
    )
    head = f"{one['topic']}:{one['partition']}  {one['state']}  "
    yield printable(head + "  ".join(f"{name}={shown[name]}" for name in offsets))
    columns = ("first", "last", "state", "delivery_count", "member", "lock_remaining_ms", "being_written")
    yield from table(columns, one["records"], "  ")
    if one["runs_left_out"]:
        yield printable(f"  ... more records: ottla share GROUP {one['topic']}:{one['partition']}")
    yield "  last events:"
    now = max((step["at_ms"] for step in one["history"]), default=0)
    steps = [{**step, "ms": step["at_ms"] - now, "member": step["member_id"] or None} for step in one["history"][-10:]]
    yield from table(("ms", "what", "first", "last", "member"), steps, "  ")


@lab_command(watch=True)
@click.option("-a", "--all", "everything", is_flag=True, help="Show transactional ids without an open transaction too.")
def transactions(lab: Lab, everything: bool) -> Shown:
    """Show open transactions with their age and partitions,
    and the transactions that hold back a last stable offset.
    """
    found = lab.get("transactions/all" if everything else "transactions")
    return Shown(found, lambda: _transactions(found))


def _transactions(found: TransactionsView) -> Iterator[str]:
    columns = "transactional_id", "producer_id", "producer_epoch", "state", "open_ms", "aborts_in_ms", "partitions"
    places = "{topic}:{partition}@{first_offset}"
    rows = [
        {**one, "partitions": " ".join(places.format(**p) for p in one["partitions"]) or None}
        for one in found["transactions"]
    ]
    yield from table(columns, rows)
    for one in found["transactions"]:
        if one["given_up"]:
            yield printable(f"{one['transactional_id']}: its transaction markers cannot be written: {one['given_up']}")
    if found["held_back"]:
        yield "last stable offsets that are held back:"
        held = (
            *("topic", "partition", "last_stable_offset", "high_watermark", "records_behind", "transactional_id"),
            *("producer_id", "idle_ms", "why"),
        )
        yield from table(held, found["held_back"], "  ")


def _control(lab: Lab, verb: str, topic: str | None, partition: int | None, **more: object) -> Shown:
    body = {key: value for key, value in {"topic": topic, "partition": partition, **more}.items() if value is not None}
    found: Iterable[Mapping[str, object]] = lab.post(verb, body)["partitions"]
    return Shown(found, lambda: table(PARTITION_COLUMNS, found))


PARTITION = click.option(
    "-p", "--partition", type=int, default=None, help="Only this partition; default: all partitions of the topic."
)
NODE = click.option("-n", "--node", type=int, default=None, help="Only the replicas on this node.")


@lab_command()
@PARTITION
@NODE
@click.argument("topic")
def hold(lab: Lab, topic: str, partition: int | None, node: int | None) -> Shown:
    """Freeze the high watermark of TOPIC."""
    return _control(lab, "hold", topic, partition, node=node)


@lab_command()
@PARTITION
@NODE
@click.argument("topic")
def release(lab: Lab, topic: str, partition: int | None, node: int | None) -> Shown:
    """Let the high watermark of TOPIC follow the log end offset again."""
    return _control(lab, "release", topic, partition, node=node)


@lab_command()
@PARTITION
@click.option("-n", "--batches", default=1, show_default=True)
@click.argument("topic")
def step(lab: Lab, topic: str, partition: int | None, batches: int) -> Shown:
    """Advance the high watermark of TOPIC by whole batches."""
    return _control(lab, "step", topic, partition, batches=batches)


@lab_command()
@PARTITION
@NODE
@click.option("-t", "--topic", default=None, help="Only this topic; default: all topics that are not internal.")
@click.argument("policy")
def policy(lab: Lab, topic: str | None, partition: int | None, node: int | None, policy: str) -> Shown:
    """Set how high watermarks follow the log: POLICY is immediate, held, lag=20ms, lag=20ms±5ms or bytes=4096."""
    return _control(lab, "policy", topic, partition, node=node, policy=policy)
