"""What the share coordinator knows of a share-partition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...protocol import messages
from .batches import UNSET_OFFSET, StateBatch, combine

UNSET_COUNT = -1


class PartitionKey(NamedTuple):
    """A share group's view of a partition."""

    group_id: str
    topic_id: bytes
    partition: int


class Write(NamedTuple):
    """What a partition's leader writes: the epochs it goes by, where the group is, and what became of records."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: Sequence[StateBatch]


class PartitionState(NamedTuple):
    """A share-partition's state as the records tell it. Timestamps are those of the first and of the last snapshot."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...]
    created_ms: int
    written_ms: int

    def updated(self, value: Any) -> PartitionState:
        """The state with what a ShareUpdateValue says."""
        start = self.start_offset if value.start_offset == UNSET_OFFSET else value.start_offset
        return self._replace(
            start_offset=start,
            leader_epoch=self.leader_epoch if value.leader_epoch == -1 else value.leader_epoch,
            complete_count=value.delivery_complete_count,
            batches=tuple(combine(self.batches, batches_of(value), start)),
        )

    def snapshot_value(self) -> Any:
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


def of_snapshot(value: Any) -> PartitionState:
    return PartitionState(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        batches_of(value),
        value.create_timestamp,
        value.write_timestamp,
    )


def of_lone_update(value: Any) -> PartitionState:
    """An update whose snapshot is not there any more."""
    return PartitionState(value.snapshot_epoch, 0, value.leader_epoch, value.start_offset, value.delivery_complete_count, batches_of(value), 0, 0)


def batches_of(value: Any) -> tuple[StateBatch, ...]:
    """The state batches of a record or a request."""
    return tuple(StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in value.state_batches)


def as_messages(batches: Iterable[StateBatch], kind: Any) -> list[Any]:
    """State batches as messages of a record or a request."""
    return [kind(first_offset=b.first, last_offset=b.last, delivery_state=b.state, delivery_count=b.delivery_count) for b in batches]
