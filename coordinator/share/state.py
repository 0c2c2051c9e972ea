"""The state of a share-partition at the share coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ...protocol import messages
from .batches import UNSET_OFFSET, StateBatch, combine, state_batch

if TYPE_CHECKING:
    Snapshot = messages.ShareSnapshotValue
    Update = messages.ShareUpdateValue
    Written = messages.WriteShareGroupStateRequest.PartitionData
UNSET_COUNT = -1
M = TypeVar("M")


class PartitionKey(NamedTuple):
    """A share group and a partition."""

    group_id: str
    topic_id: bytes
    partition: int


class Write(NamedTuple):
    """A write of a partition's leader: its epochs, the start offset, and states of records."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: Sequence[StateBatch]


class Runs:
    """State batches of a snapshot and of the updates after it. They are combined on reading, because most writes are
    followed by another.

    The time of combining does not matter: the furthest state of a record counts, and start offsets never decrease.
    """

    __slots__ = ("_before", "_combined", "_new", "_start")

    def __init__(self, combined: tuple[StateBatch, ...] = ()) -> None:
        self._combined: tuple[StateBatch, ...] | None = combined
        self._before: Runs | None = None
        self._new: tuple[StateBatch, ...] = ()
        self._start = UNSET_OFFSET

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Runs) and self.combined == other.combined

    __hash__ = None  # type: ignore[assignment]

    def updated(self, new: tuple[StateBatch, ...], start_offset: int) -> Runs:
        """Returns these and `new` batches, from `start_offset` on."""
        made = Runs()
        made._combined, made._before, made._new, made._start = None, self, new, start_offset
        return made

    @property
    def combined(self) -> tuple[StateBatch, ...]:
        """Returns the fewest equivalent batches."""
        if self._combined is None:
            updates: list[tuple[StateBatch, ...]] = []
            one = self
            while one._combined is None and one._before is not None:
                updates.append(one._new)
                one = one._before
            new = chain.from_iterable(reversed(updates))
            self._combined, self._before = tuple(combine(one._combined or (), new, self._start)), None
        return self._combined


class PartitionState(NamedTuple):
    """A share-partition's state in records. Timestamps are those of the first and of the last snapshot."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    runs: Runs
    created_ms: int
    written_ms: int

    @property
    def batches(self) -> tuple[StateBatch, ...]:
        return self.runs.combined

    def updated(self, value: Update) -> PartitionState:
        """Returns the state after a ShareUpdateValue."""
        start = self.start_offset if value.start_offset == UNSET_OFFSET else value.start_offset
        return self._replace(
            start_offset=start,
            leader_epoch=self.leader_epoch if value.leader_epoch == -1 else value.leader_epoch,
            complete_count=value.delivery_complete_count,
            runs=self.runs.updated(batches_of(value), start),
        )

    def snapshot_value(self) -> messages.ShareSnapshotValue:
        m = messages.ShareSnapshotValue
        return m(
            snapshot_epoch=self.snapshot_epoch,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.complete_count,
            create_timestamp=self.created_ms,
            write_timestamp=self.written_ms,
            state_batches=as_messages(self.batches, m.StateBatch),
        )


def of_snapshot(value: Snapshot) -> PartitionState:
    return PartitionState(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        Runs(batches_of(value)),
        value.create_timestamp,
        value.write_timestamp,
    )


def of_lone_update(value: Update) -> PartitionState:
    """Makes a state of an update whose snapshot no longer exists."""
    runs = Runs(batches_of(value))
    return PartitionState(
        value.snapshot_epoch, 0, value.leader_epoch, value.start_offset, value.delivery_complete_count, runs, 0, 0
    )


def batches_of(value: Snapshot | Update | Written) -> tuple[StateBatch, ...]:
    """Returns the state batches of a record or a request."""
    return tuple(
        state_batch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in value.state_batches
    )


def as_messages(batches: Iterable[StateBatch], kind: Callable[..., M]) -> list[M]:
    """Converts state batches to messages of a record or a request."""
    return [
        kind(first_offset=b.first, last_offset=b.last, delivery_state=b.state, delivery_count=b.delivery_count)
        for b in batches
    ]
