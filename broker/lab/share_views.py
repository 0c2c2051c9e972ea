"""The state of share groups for the lab and `ottla share`: a snapshot that does not change the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypedDict, cast

from ...coordinator.share.inflight import InFlight

if TYPE_CHECKING:
    from ..broker import Broker
    from ..share.share_partition_leader import SharePartitionLeader

RUNS_MAX = 50  # of each share-partition, if several are shown, so that the reply is made quickly


class GroupView(TypedDict):
    """A group and the number of its loaded share-partitions."""

    group: str
    share_partitions: int


class GroupsView(TypedDict):
    groups: list[GroupView]


class RecordView(TypedDict):
    """A record in flight. `being_written`: the share coordinator has not committed the state yet."""

    state: str
    delivery_count: int
    member: str | None
    lock_remaining_ms: int | None
    being_written: bool


class RunView(RecordView):
    """Records in flight with the same state: the first and the last offset."""

    first: int
    last: int


class TransitionView(TypedDict):
    """What happened to records, as `share_partition_leader.Transition`."""

    at_ms: int
    what: str
    first: int
    last: int
    member_id: str


class SharePartitionView(TypedDict):
    """A share-partition: its offsets, its lag, its runs of records and its last transitions. `runs_left_out`: whether
    there are more runs than these.
    """

    topic: str
    partition: int
    state: str
    state_epoch: int
    leader_epoch: int
    start_offset: int
    end_offset: int
    high_watermark: int
    lag: int
    in_flight: int
    complete: int
    lock_timeouts: int
    waiting_fetches: int
    records: list[RunView]
    runs_left_out: bool
    history: list[TransitionView]


class SharePartitionsView(TypedDict):
    group: str
    share_partitions: Iterable[SharePartitionView]


def groups(broker: Broker) -> GroupsView:
    """Returns the groups with loaded share-partitions, and their numbers."""
    counts: dict[str, int] = {}
    for key in broker.share_partitions.partitions:
        counts[key.group_id] = counts.get(key.group_id, 0) + 1
    return {"groups": [{"group": group, "share_partitions": count} for group, count in sorted(counts.items())]}


def group(broker: Broker, group_id: str, topic: str | None = None, partition: int | None = None) -> SharePartitionsView:
    """Returns the share-partitions of a group, all or one, each described when its turn comes. Raises LookupError if
    none is loaded: a share-partition is loaded by its first fetch.
    """
    found = [one for key, one in broker.share_partitions.partitions.items() if key.group_id == group_id]
    found = [one for one in found if topic in (None, one.partition.topic) and partition in (None, one.key.partition)]
    if not found:
        which = "any share-partition" if topic is None else topic if partition is None else f"{topic}:{partition}"
        raise LookupError(f"share group {group_id} has not loaded {which}: that is done by the first fetch of a member")
    found.sort(key=lambda one: (one.partition.topic, one.key.partition))
    runs_max = None if len(found) == 1 else RUNS_MAX
    return {"group": group_id, "share_partitions": (describe(one, runs_max) for one in found)}


def describe(shared: SharePartitionLeader, runs_max: int | None) -> SharePartitionView:
    """Returns the state of a share-partition, with at most `runs_max` runs."""
    engine, partition = shared.engine, shared.partition
    runs = list(islice(_runs(shared), None if runs_max is None else runs_max + 1))
    return {
        "topic": partition.topic,
        "partition": shared.key.partition,
        "state": engine.state.value,
        "state_epoch": engine.state_epoch,
        "leader_epoch": engine.leader_epoch,
        "start_offset": engine.window.start_offset,
        "end_offset": engine.window.end_offset,
        "high_watermark": partition.high_watermark,
        "lag": max(0, partition.high_watermark - engine.window.start_offset - engine.window.complete_count),
        "in_flight": engine.window.in_flight_count,
        "complete": engine.window.complete_count,
        "lock_timeouts": engine.lock_timeouts,
        "waiting_fetches": len(shared.waiting),
        "records": runs[:runs_max],
        "runs_left_out": runs_max is not None and len(runs) > runs_max,
        "history": [cast(TransitionView, one._asdict()) for one in shared.history],
    }


def _runs(shared: SharePartitionLeader) -> Iterator[RunView]:
    """Yields the records in flight, neighbours with the same state as one run."""
    first, last, row = 0, -1, None
    for span in shared.engine.window.spans:
        pieces = (
            [(span.first, span.last, span.whole)]
            if span.whole is not None
            else [(o, o, r) for o, r in span.records(span.first, span.last)]
        )
        for begin, end, record in pieces:
            found = _row(record, shared.now_ms)
            if found == row and begin == last + 1:
                last = end
                continue
            if row is not None:
                yield {"first": first, "last": last, **row}
            first, last, row = begin, end, found
    if row is not None:
        yield {"first": first, "last": last, **row}


def _row(record: InFlight, now_ms: int) -> RecordView:
    held = record.member_id and record.lock_deadline_ms is not None
    return {
        "state": record.state.name,
        "delivery_count": record.delivery_count,
        "member": record.member_id or None,
        "lock_remaining_ms": max(0, record.lock_deadline_ms - now_ms)
        if held and record.lock_deadline_ms is not None
        else None,
        "being_written": record.in_transition,
    }
