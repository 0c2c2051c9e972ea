"""What a share group looks like inside, for the lab and `ottla share`: a snapshot, which reads the engine and leaves it as it is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..coordinator.share.inflight import InFlight

if TYPE_CHECKING:
    from .broker import Broker
    from .share_partition import Shared

RUNS_MAX = 50  # of each share-partition, where several are shown: nobody waits while this one looks


def groups(broker: Broker) -> dict[str, Any]:
    """The groups that have share-partitions here, and how many."""
    counts: dict[str, int] = {}
    for key in broker.sharing.partitions:
        counts[key.group_id] = counts.get(key.group_id, 0) + 1
    return {"groups": [{"group": group, "share_partitions": count} for group, count in sorted(counts.items())]}


def group(broker: Broker, group_id: str, topic: str | None = None, partition: int | None = None) -> dict[str, Any]:
    """A group's share-partitions, all or one. LookupError where there is none: a share-partition begins with its first fetch."""
    found = [one for key, one in broker.sharing.partitions.items() if key.group_id == group_id]
    found = [one for one in found if topic in (None, one.partition.topic) and partition in (None, one.key.partition)]
    if not found:
        raise LookupError(f"{group_id} has no such share-partition in memory; it comes with the first fetch of a member")
    found.sort(key=lambda one: (one.partition.topic, one.key.partition))
    return {"group": group_id, "share_partitions": [describe(one, None if len(found) == 1 else RUNS_MAX) for one in found]}


def describe(shared: Shared, runs_max: int | None) -> dict[str, Any]:
    """Offsets, lag, runs of records that are alike, and what happened last. `runs_left_out`: there are more than `runs_max` of them."""
    engine, partition = shared.engine, shared.partition
    runs = list(islice(_runs(shared), None if runs_max is None else runs_max + 1))
    return {
        "topic": partition.topic,
        "partition": shared.key.partition,
        "state": engine.state.value,
        "state_epoch": engine.state_epoch,
        "leader_epoch": engine.leader_epoch,
        "start_offset": engine.start_offset,
        "end_offset": engine.end_offset,
        "high_watermark": partition.high_watermark,
        "lag": max(0, partition.high_watermark - engine.start_offset - engine.complete_count),
        "in_flight": engine.in_flight_count,
        "complete": engine.complete_count,
        "lock_timeouts": engine.lock_timeouts,
        "waiting_fetches": len(shared.waiting),
        "records": runs[:runs_max],
        "runs_left_out": runs_max is not None and len(runs) > runs_max,
        "history": [one._asdict() for one in shared.history],
    }


def _runs(shared: Shared) -> Iterator[dict[str, Any]]:
    """Records in flight, neighbours that are alike as one. `being_written`: its state holds once the share coordinator has it."""
    first, last, row = 0, -1, None
    for span in shared.engine.spans:
        pieces = [(span.first, span.last, span.whole)] if span.whole is not None else [(o, o, r) for o, r in span.records(span.first, span.last)]
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


def _row(record: InFlight, now_ms: int) -> dict[str, Any]:
    held = record.member_id and record.lock_deadline_ms is not None
    return {
        "state": record.state.name,
        "delivery_count": record.delivery_count,
        "member": record.member_id or None,
        "lock_remaining_ms": max(0, record.lock_deadline_ms - now_ms) if held and record.lock_deadline_ms is not None else None,
        "being_written": record.in_transition,
    }
