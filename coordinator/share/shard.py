"""The share coordinator's shard: the state of share-partitions on one partition of `__share_group_state`.

A share-partition's state is a snapshot and the updates after it. After a number of updates a write becomes a snapshot
again, which makes all its earlier records redundant. The topic is not compacted; the log is truncated at the front from
time to time instead (`redundant_before`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from ...protocol import messages
from ...protocol.control import Marker
from ...protocol.errors import ApiError, Errors
from .. import epochs
from ..shard import Result
from ..timeline import Timeline, TimelineDict
from ..timers import Round, Timer, Timers
from .batches import UNSET_OFFSET, StateBatch, combine
from .state import UNSET_COUNT, PartitionKey, PartitionState, Runs, Write, as_messages, of_lone_update, of_snapshot

if TYPE_CHECKING:
    StateKey = messages.ShareSnapshotKey | messages.ShareUpdateKey
    StateValue = messages.ShareSnapshotValue | messages.ShareUpdateValue
    StateRecord = tuple[StateKey, StateValue | None]
COLD = ("cold",)
PRUNE = ("prune",)


class Environment(Protocol):
    """The environment of the shard."""

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...

    def config(self, name: str) -> Any: ...

    def partitions_of(self, topic_id: bytes) -> int:
        """Returns the number of partitions; -1 for a topic that does not exist."""


class ShareShard:
    """Implements `Shard` for `__share_group_state`. Handlers raise ApiError for one share-partition."""

    def __init__(self, timeline: Timeline, timers: Timers, env: Environment) -> None:
        self.timers = timers
        self.env = env
        self.states: TimelineDict[PartitionKey, PartitionState] = TimelineDict(timeline)
        self.leader_epochs: TimelineDict[PartitionKey, int] = TimelineDict(timeline)
        self.state_epochs: TimelineDict[PartitionKey, int] = TimelineDict(timeline)
        self.update_counts: TimelineDict[PartitionKey, int] = TimelineDict(timeline)
        self.snapshots: TimelineDict[PartitionKey, int] = TimelineDict(timeline)  # the offset of each last snapshot
        self.counts: Counter[str] = Counter()
        timers.resting[COLD] = timers.resting[PRUNE] = None
        # removes the records of the log before an offset; returns whether they are gone
        self.prune: Callable[[int], bool] = lambda offset: True

    # requests

    def initialize_state(self, key: PartitionKey, state_epoch: int, start_offset: int) -> Result:
        """Initializes a share-partition, or resets it with a higher state epoch.
        Raises INVALID_REQUEST or FENCED_STATE_EPOCH.
        """
        _refuse(key.partition < 0, "The partition id cannot be a negative number.")
        _refuse(state_epoch < 0, "The state epoch cannot be a negative number.")
        if self.state_epochs.get(key, -1) > state_epoch:
            raise ApiError(Errors.FENCED_STATE_EPOCH)
        self._check_partition(key)
        before = self.states.get(key)
        now = self.env.now_ms()
        count = UNSET_COUNT if start_offset == UNSET_OFFSET else 0
        state = PartitionState(
            epochs.after(before.snapshot_epoch) if before else 0, state_epoch, 0, start_offset, count, Runs(), now, now
        )
        return Result([_snapshot(key, state)])

    def read_state(self, key: PartitionKey, leader_epoch: int) -> Result[PartitionState]:
        """Returns the state to a partition's leader, and stores the leader epoch.
        Raises INVALID_REQUEST or FENCED_LEADER_EPOCH.
        """
        _refuse(key.partition < 0, "The partition id cannot be a negative number.")
        _refuse(leader_epoch < 0, "The leader epoch cannot be a negative number.")
        state = self.states.get(key)
        if state is None:
            raise ApiError(Errors.INVALID_REQUEST, "Read operation on uninitialized share partition not allowed.")
        known = self.leader_epochs.get(key)
        if known is not None and known > leader_epoch:
            raise ApiError(Errors.FENCED_LEADER_EPOCH)
        self._check_partition(key)
        if known == leader_epoch:
            return Result(reply=state)
        self.counts["writes"] += 1
        return Result([self._written(key, state, leader_epoch, state.start_offset, state.complete_count, ())], state)

    def write_state(self, key: PartitionKey, write: Write) -> Result:
        """Writes states of records. Raises INVALID_REQUEST, FENCED_LEADER_EPOCH or FENCED_STATE_EPOCH."""
        self.counts["writes"] += 1
        _refuse(key.partition < 0, "The partition id cannot be a negative number.")
        _refuse(write.leader_epoch < 0, "The leader epoch cannot be a negative number.")
        _refuse(write.state_epoch < 0, "The state epoch cannot be a negative number.")
        state = self.states.get(key)
        if state is None:
            raise ApiError(Errors.INVALID_REQUEST, "Write operation on uninitialized share partition not allowed.")
        if self.leader_epochs.get(key, -1) > write.leader_epoch:
            raise ApiError(Errors.FENCED_LEADER_EPOCH)
        if self.state_epochs.get(key, -1) > write.state_epoch:
            raise ApiError(Errors.FENCED_STATE_EPOCH)
        self._check_partition(key)
        return Result(
            [self._written(key, state, state.leader_epoch, write.start_offset, write.complete_count, write.batches)]
        )

    def read_summary(self, key: PartitionKey) -> PartitionState | None:
        """Returns the state without combining its batches; None if there is none. Raises INVALID_REQUEST."""
        _refuse(key.partition < 0, "The partition id cannot be a negative number.")
        self._check_partition(key)
        found: PartitionState | None = self.states.get(key)
        return found

    def delete_state(self, key: PartitionKey) -> Result:
        """Deletes a state. Raises INVALID_REQUEST."""
        _refuse(key.partition < 0, "The partition id cannot be a negative number.")
        self._check_partition(key)
        return Result([_tombstone(key)] if key in self.states else [])

    def _check_partition(self, key: PartitionKey) -> None:
        if self.env.partitions_of(key.topic_id) <= key.partition:
            raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)

    def _written(
        self,
        key: PartitionKey,
        state: PartitionState,
        leader_epoch: int,
        start: int,
        count: int,
        batches: Iterable[StateBatch],
    ) -> StateRecord:
        """Returns the record of a write: an update, or a snapshot after enough updates.
        The start offset never decreases.
        """
        if start == state.start_offset:
            count = max(count, state.complete_count)
        elif start < state.start_offset:
            count = state.complete_count
        start = max(start, state.start_offset)
        if self.update_counts.get(key, 0) >= self.env.config("share.coordinator.snapshot.update.records.per.snapshot"):
            now = self.env.now_ms()
            runs = state.runs.updated(tuple(batches), start)
            return _snapshot(
                key,
                PartitionState(
                    epochs.after(state.snapshot_epoch), state.state_epoch, leader_epoch, start, count, runs, now, now
                ),
            )
        v = messages.ShareUpdateValue
        value = v(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=count,
            state_batches=as_messages(combine((), batches, start), v.StateBatch),
        )
        return messages.ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), value

    # periodic work

    def on_loaded(self, now_ms: int) -> list[Timer]:
        cold, prune = (
            self.env.config(f"share.coordinator.{name}.interval.ms")
            for name in ("cold.partition.snapshot", "state.topic.prune")
        )
        self.timers.begin_rounds(
            self.env.monotonic_ms,
            Round(COLD, cold, now_ms, lambda now: self.snapshot_cold()),
            Round(PRUNE, prune, now_ms, lambda now: self.prune_redundant()),
        )
        return []

    def on_unloaded(self) -> None:
        """Does nothing: the runtime answers the waiting requests."""

    def snapshot_cold(self) -> Result:
        """Writes the states of share-partitions without a recent snapshot, so that their old records can be removed."""
        interval = self.env.config("share.coordinator.cold.partition.snapshot.interval.ms")
        now = self.env.now_ms()
        if all(state.created_ms != state.written_ms for state in self.states.values()):
            self.timers.resting[COLD] = None
            return Result()  # all states have been written by this process, and not changed since
        cold = [(key, state) for key, state in self.states.items() if now - state.written_ms >= interval]
        records = [
            _snapshot(key, state._replace(snapshot_epoch=epochs.after(state.snapshot_epoch), written_ms=now))
            for key, state in cold
        ]
        return Result(records, atomic=False)

    def prune_redundant(self) -> Result:
        offset = self.redundant_before()
        if offset is None or self.prune(offset):
            self.timers.resting[PRUNE] = None
        return Result()

    def redundant_before(self) -> int | None:
        """Returns the offset before which all records are redundant."""
        first = min(self.snapshots.values(), default=0)
        return first if first > 0 else None

    def topics_deleted(self, gone: frozenset[bytes]) -> Result:
        """Deletes the states of deleted topics."""
        return Result([_tombstone(key) for key in self.states if key.topic_id in gone], atomic=False)

    # replay

    def replay(
        self, offset: int, producer_id: int, producer_epoch: int, key: StateKey, value: StateValue | None
    ) -> None:
        name = PartitionKey(key.group_id, bytes(key.topic_id), key.partition)
        if self.timers.resting:
            self.timers.resting.clear()
        if isinstance(value, messages.ShareUpdateValue):
            self._replay_update(name, value)
        elif value is not None:
            self._replay_snapshot(offset, name, value)
        elif isinstance(key, messages.ShareSnapshotKey):
            for one in (self.states, self.leader_epochs, self.state_epochs, self.update_counts, self.snapshots):
                one.pop(name)

    def _replay_snapshot(self, offset: int, key: PartitionKey, value: messages.ShareSnapshotValue) -> None:
        self._raise_to(self.leader_epochs, key, value.leader_epoch)
        self._raise_to(self.state_epochs, key, value.state_epoch)
        self.states[key] = of_snapshot(value)
        self.snapshots[key] = offset
        if self.update_counts.get(key, 0) >= self.env.config("share.coordinator.snapshot.update.records.per.snapshot"):
            self.update_counts[key] = 0

    def _replay_update(self, key: PartitionKey, value: messages.ShareUpdateValue) -> None:
        self._raise_to(self.leader_epochs, key, value.leader_epoch)
        before = self.states.get(key)
        self.states[key] = before.updated(value) if before is not None else of_lone_update(value)
        self.update_counts[key] = self.update_counts.get(key, 0) + 1

    def _raise_to(self, epochs: TimelineDict[PartitionKey, int], key: PartitionKey, epoch: int) -> None:
        if epochs.get(key, -2) < epoch:
            epochs[key] = epoch

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, marker: Marker) -> tuple[()]:
        """No transaction writes to this topic."""
        return ()


def _refuse(wrong: bool, message: str) -> None:
    if wrong:
        raise ApiError(Errors.INVALID_REQUEST, message)


def _snapshot(key: PartitionKey, state: PartitionState) -> StateRecord:
    return messages.ShareSnapshotKey(
        group_id=key.group_id, topic_id=key.topic_id, partition=key.partition
    ), state.snapshot_value()


def _tombstone(key: PartitionKey) -> StateRecord:
    return messages.ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), None
