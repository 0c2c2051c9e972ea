"""The share coordinator's shard: the state of share-partitions on one partition of `__share_group_state`.

A share-partition's state is a snapshot and the updates behind it. After so many updates a write becomes a snapshot again, which makes
all records before it redundant: the log is cut there from time to time (`redundant_before`), as the topic is not compacted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..shard import Result
from ..timeline import Timeline, TimelineDict
from ..timers import Timer, Timers
from .batches import UNSET_OFFSET, combine
from .state import UNSET_COUNT, PartitionKey, PartitionState, Write, as_messages, of_lone_update, of_snapshot

COLD = ("cold",)
PRUNE = ("prune",)


class Environment(Protocol):
    """What the shard needs of the world."""

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...

    def config(self, name: str) -> Any: ...

    def partitions_of(self, topic_id: bytes) -> int:
        """-1 for a topic that is not there."""


class ShareShard:
    """Implements `Shard` for `__share_group_state`. Handlers raise ApiError for one share-partition."""

    def __init__(self, timeline: Timeline, timers: Timers, env: Environment) -> None:
        self.timers = timers
        self.env = env
        self.states: TimelineDict[PartitionKey, PartitionState] = TimelineDict(timeline)
        self.leader_epochs: TimelineDict[PartitionKey, int] = TimelineDict(timeline)
        self.state_epochs: TimelineDict[PartitionKey, int] = TimelineDict(timeline)
        self.update_counts: TimelineDict[PartitionKey, int] = TimelineDict(timeline)
        self.snapshots: TimelineDict[PartitionKey, int] = TimelineDict(timeline)  # the offset of each one's last snapshot
        self.counts: Counter[str] = Counter()
        self.prune: Callable[[int], None] = lambda offset: None  # cuts the log before an offset

    # requests

    def initialize_state(self, key: PartitionKey, state_epoch: int, start_offset: int) -> Result:
        """A share-partition begins, or begins again with a higher state epoch. INVALID_REQUEST, FENCED_STATE_EPOCH."""
        _refuse(key.partition < 0, "The partition id cannot be a negative number.")
        _refuse(state_epoch < 0, "The state epoch cannot be a negative number.")
        if self.state_epochs.get(key, -1) > state_epoch:
            raise ApiError(Errors.FENCED_STATE_EPOCH)
        self._check_partition(key)
        before = self.states.get(key)
        now = self.env.now_ms()
        count = UNSET_COUNT if start_offset == UNSET_OFFSET else 0
        state = PartitionState(before.snapshot_epoch + 1 if before else 0, state_epoch, 0, start_offset, count, (), now, now)
        return Result([_snapshot(key, state)])

    def read_state(self, key: PartitionKey, leader_epoch: int) -> Result:
        """The state for a partition's leader, whose epoch is remembered. INVALID_REQUEST, FENCED_LEADER_EPOCH."""
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
        """What became of some records. INVALID_REQUEST, FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH."""
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
        return Result([self._written(key, state, state.leader_epoch, write.start_offset, write.complete_count, write.batches)])

    def read_summary(self, key: PartitionKey) -> PartitionState | None:
        """The state without its batches' meaning; None where there is none. INVALID_REQUEST."""
        _refuse(key.partition < 0, "The partition id cannot be a negative number.")
        self._check_partition(key)
        found: PartitionState | None = self.states.get(key)
        return found

    def delete_state(self, key: PartitionKey) -> Result:
        """INVALID_REQUEST."""
        _refuse(key.partition < 0, "The partition id cannot be a negative number.")
        self._check_partition(key)
        return Result([_tombstone(key)] if key in self.states else [])

    def _check_partition(self, key: PartitionKey) -> None:
        if self.env.partitions_of(key.topic_id) <= key.partition:
            raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)

    def _written(self, key: PartitionKey, state: PartitionState, leader_epoch: int, start: int, count: int, batches: Any) -> Any:
        """The record of a write: an update, or the whole state where there have been enough of them. The start offset never goes back."""
        if start == state.start_offset:
            count = max(count, state.complete_count)
        elif start < state.start_offset:
            count = state.complete_count
        start = max(start, state.start_offset)
        if self.update_counts.get(key, 0) >= self.env.config("share.coordinator.snapshot.update.records.per.snapshot"):
            now = self.env.now_ms()
            merged = tuple(combine(state.batches, batches, start))
            return _snapshot(key, PartitionState(state.snapshot_epoch + 1, state.state_epoch, leader_epoch, start, count, merged, now, now))
        v = messages.ShareUpdateValue
        value = v(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=count,
            state_batches=as_messages(combine((), batches, start), v.StateBatch),
        )
        return messages.ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), value

    # what happens by itself

    def on_loaded(self, now_ms: int) -> list[Timer]:
        return [self._timer(COLD, self.snapshot_cold), self._timer(PRUNE, self.prune_redundant)]

    def on_unloaded(self) -> None:
        """Nobody waits for anything here but the replies that the runtime holds."""

    def _timer(self, key: tuple[str], operation: Callable[[], Result]) -> Timer:
        name = "cold.partition.snapshot" if key == COLD else "state.topic.prune"
        interval = self.env.config(f"share.coordinator.{name}.interval.ms")
        return Timer(key, self.env.monotonic_ms() + interval, lambda now: operation())

    def snapshot_cold(self) -> Result:
        """Writes the state of share-partitions that have had no snapshot for long, so that their old records can go."""
        self.timers.set(self._timer(COLD, self.snapshot_cold))
        interval = self.env.config("share.coordinator.cold.partition.snapshot.interval.ms")
        now = self.env.now_ms()
        if all(state.created_ms != state.written_ms for state in self.states.values()):
            return Result()  # every one of them has been written here already, and not changed since
        cold = [(key, state) for key, state in self.states.items() if now - state.written_ms >= interval]
        records = [_snapshot(key, state._replace(snapshot_epoch=state.snapshot_epoch + 1, written_ms=now)) for key, state in cold]
        return Result(records, atomic=False)

    def prune_redundant(self) -> Result:
        self.timers.set(self._timer(PRUNE, self.prune_redundant))
        offset = self.redundant_before()
        if offset is not None:
            self.prune(offset)
        return Result()

    def redundant_before(self) -> int | None:
        """The offset before which no record is needed any more."""
        first = min(self.snapshots.values(), default=0)
        return first if first > 0 else None

    def topic_deleted(self, topic_id: bytes) -> Result:
        """Takes out the states of a topic that is gone."""
        return Result([_tombstone(key) for key in self.states if key.topic_id == topic_id], atomic=False)

    # replay

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: Any, value: Any) -> None:
        name = PartitionKey(key.group_id, bytes(key.topic_id), key.partition)
        if type(key) is messages.ShareUpdateKey:
            if value is not None:
                self._replay_update(name, value)
        elif value is None:
            for one in (self.states, self.leader_epochs, self.state_epochs, self.update_counts, self.snapshots):
                one.pop(name)
        else:
            self._replay_snapshot(offset, name, value)

    def _replay_snapshot(self, offset: int, key: PartitionKey, value: Any) -> None:
        self._raise_to(self.leader_epochs, key, value.leader_epoch)
        self._raise_to(self.state_epochs, key, value.state_epoch)
        self.states[key] = of_snapshot(value)
        self.snapshots[key] = offset
        if self.update_counts.get(key, 0) >= self.env.config("share.coordinator.snapshot.update.records.per.snapshot"):
            self.update_counts[key] = 0

    def _replay_update(self, key: PartitionKey, value: Any) -> None:
        self._raise_to(self.leader_epochs, key, value.leader_epoch)
        before = self.states.get(key)
        self.states[key] = before.updated(value) if before is not None else of_lone_update(value)
        self.update_counts[key] = self.update_counts.get(key, 0) + 1

    def _raise_to(self, epochs: TimelineDict[PartitionKey, int], key: PartitionKey, epoch: int) -> None:
        if epochs.get(key, -2) < epoch:
            epochs[key] = epoch

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, coordinator_epoch: int, committed: bool) -> None:
        """No transaction writes to this topic."""


def _refuse(wrong: bool, message: str) -> None:
    if wrong:
        raise ApiError(Errors.INVALID_REQUEST, message)


def _snapshot(key: PartitionKey, state: PartitionState) -> tuple[Any, Any]:
    return messages.ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), state.snapshot_value()


def _tombstone(key: PartitionKey) -> tuple[Any, None]:
    return messages.ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), None
