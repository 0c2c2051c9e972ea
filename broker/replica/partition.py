"""A partition: its log, its high watermark, and the requests that wait for either.

Appending calls nothing back. An advance of the high watermark is queued with the broker and carried out after the input
event (`Partition.advance`): then parked replies are sent and waiting fetches are notified.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...coordinator.metadata.state import NO_LEADER
from ...coordinator.metadata.state import Partition as PartitionState
from ...protocol.buffers import WritableData
from ...protocol.control import Marker
from ...protocol.errors import ApiError, Errors
from ...protocol.records import BatchAt
from ...storage.batch_info import Appended
from ...storage.file_slice import FileSlice
from ...storage.log import Log
from ...storage.message_sets import append_messages
from ...storage.producers import Producer, Producers
from ...storage.segment import IndexDamaged, Segment
from .. import bugs
from ..later import Later
from ..watermark_policies import IMMEDIATE
from .followers import Follower, Network, Reach, Replicas

READ_COMMITTED = 1
ISOLATION_LEVELS = (0, READ_COMMITTED)
LOG_END = 2  # what a follower reads, beside the isolation levels of consumers
NEVER = 1 << 62  # an offset that no high watermark reaches
MANY = 1 << 30  # replicas of a partition whose in-sync replicas are counted by hand


class Waiter(Protocol):
    """Is notified when the readable end of a partition moves."""

    def progressed(self, partition: Partition, readable_bytes: int, stable_bytes: int) -> None:
        """`stable_bytes`: the bytes below the last stable offset."""

    def disturbed(self, partition: Partition) -> None:
        """The partition was removed or moved, or its log was truncated: waiting requests must read it again."""


@dataclass(slots=True)
class StaleLeader:
    """A leader that is cut off, and goes on with its epoch after another one was elected (`stale_leaders.py`).
    `end_offset`: with what it has taken since. `producers`: those from which that came.
    """

    leader_epoch: int
    end_offset: int
    high_watermark: int
    is_under_min_isr: bool
    producers: Producers
    first_offset: int = -1  # of what it has and the log has not

    def __post_init__(self) -> None:
        self.first_offset = self.end_offset

    def recall(self, producer_id: int, log: Producers) -> None:
        """Adds a producer, the first time that it is heard, with those of its last batches that the log had before:
        none, if the new leader has heard a newer epoch of it.
        """
        known = log.by_id.get(producer_id)
        if known is not None and producer_id not in self.producers.by_id:
            batches = [one for one in known.batches if one.last_offset < self.first_offset]
            if batches:
                found = self.producers.by_id[producer_id] = Producer(known.epoch)
                found.batches = batches

    def cut(self, end: int, log: Producers) -> None:
        """What it could read from `end` on is lost; it still knows the producers from which that came."""
        for producer_id, found in log.by_id.items():
            if found.last_offset >= end:
                self.recall(producer_id, log)
        self.first_offset = min(self.first_offset, end)
        self.high_watermark = min(self.high_watermark, end)


def compare_epochs(current_leader_epoch: int, leader_epoch: int) -> None:
    """Raises ApiError if a client's leader epoch is older or newer than ours; -1 is that of a client without one."""
    if current_leader_epoch not in (-1, leader_epoch):
        older = current_leader_epoch < leader_epoch
        raise ApiError(Errors.FENCED_LEADER_EPOCH if older else Errors.UNKNOWN_LEADER_EPOCH)


def _distance(before: tuple[Segment, int] | None, after: tuple[Segment, int]) -> int:
    """Returns the bytes between two positions of a log, if they are in the same segment."""
    return after[1] - before[1] if before and before[0] is after[0] else after[1]


class Partition:
    """A partition on its leader. `log` is None while it is being opened or after its directory failed."""

    def __init__(self, topic: str, index: int, topic_id: bytes, leader_epoch: int) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.leader: int | None = None  # the node; None before the metadata is known
        self.replicas: tuple[int, ...] = ()
        self.unheard: PartitionState | None = None  # what a leader that is cut off does not know, and goes on
        self.replica_set: Replicas | None = None  # of a partition with several replicas
        self.log: Log | None = None
        self.closed_end = 0  # the end of the log, while it is opened again
        self.cut_at: int | None = None  # a leader was elected meanwhile, whose log ends there
        self.opening: Callable[[], None] | None = None  # opens the log at once, if that is quick
        self.stale: dict[int, StaleLeader] = {}  # by node
        self.offline = False
        self.offline_nodes: set[int] = set()  # those whose replicas are in a directory that failed for them alone
        self.high_watermark = 0
        self.hw_position: tuple[Segment, int] | None = None
        self.lso_position: tuple[int, tuple[Segment, int]] | None = None
        self.first_batch: tuple[int, int] | None = None  # by the log's start, where the batch begins
        self.follower = Follower(IMMEDIATE)
        self.isr_size = self.replica_count = 1
        self.isr_by_hand: int | None = None  # as many replicas are said to be in sync, whatever the metadata says
        self.min_insync_replicas = 1
        self.flushing = False
        self.parked: deque[tuple[int, Later[None]]] = deque()
        self._cancelled = 0  # how many of them were cancelled
        self.waiters: dict[Waiter, None] = {}
        self.on_committed: Callable[[int], None] | None = None  # the coordinator on this partition
        self.told_to = 0  # the last high watermark that `on_committed` got

    def follow(self, state: PartitionState, network: Network, now_ms: int) -> tuple[bool, int]:
        """Takes over who leads and what is in sync, from the metadata. Returns whether the leader's epoch has changed,
        and the end of the leader's log. `network`: what the nodes of the replicas reach.
        """
        has_moved, end = state.leader_epoch != self.leader_epoch, self.end_offset
        if len(state.replicas) > 1 or self.replica_set is not None or self.isr_by_hand is not None:
            self.replica_set = self.replica_set or Replicas(network)
            lag_ms = self.follower.policy.lag_ms
            end = self.replica_set.take_over(state, end, self.followers_reach, now_ms, lag_ms)
            self.isr_size, self.replica_count = len(state.isr), len(state.replicas)
        if self.isr_by_hand is not None:
            self.isr_size, self.replica_count = self.isr_by_hand, MANY
        elif len(state.replicas) == 1:
            self.replica_set, self.isr_size, self.replica_count = None, 1, 1
        self.leader, self.leader_epoch, self.replicas = state.leader, state.leader_epoch, state.replicas
        return has_moved, end

    @property
    def is_under_min_isr(self) -> bool:
        """Whether fewer replicas are in sync than the topic asks for."""
        return self.isr_size < self.min_insync_replicas and self.isr_size < self.replica_count

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.index}, {self.high_watermark}..{self.end_offset})"

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    def open_log(self) -> Log:
        """Returns the log. Raises ApiError if it is not open."""
        if self.log is None and self.opening is not None:
            self.opening()
        if self.log is None:
            raise ApiError(Errors.KAFKA_STORAGE_ERROR if self.offline else Errors.NOT_LEADER_OR_FOLLOWER)
        return self.log

    @property
    def start_offset(self) -> int:
        return self.log.start_offset if self.log else 0

    @property
    def end_offset(self) -> int:
        return self.log.end_offset if self.log else self.closed_end

    @property
    def followers_reach(self) -> Reach:
        """How far the replicas are that follow, and the high watermark that they may know."""
        return Reach(min(self.end_offset, self.follower.replicated), self.high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """The high watermark, or the first offset of a transaction that is open or
        whose marker is not below the high watermark.
        """
        log = self.log
        unstable = log.producers.first_unstable_offset(self.high_watermark) if log else None
        if log is None or unstable is None:
            return self.high_watermark
        return min(unstable, self.high_watermark) if unstable >= log.start_offset else self._first_batch_offset(log)

    def _first_batch_offset(self, log: Log) -> int:
        """Returns where the batch begins in which the log starts: for Kafka, a transaction whose first records are
        deleted begins there.
        """
        known = self.first_batch
        if known is None or known[0] != log.start_offset:
            try:
                _, batch = next(log.batches_from(log.start_offset), (None, None))
            except IndexDamaged:  # asked again when it is rebuilt
                return log.start_offset
            base = log.start_offset if batch is None else min(batch.base_offset, log.start_offset)
            known = self.first_batch = (log.start_offset, base)
        return known[1]

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Raises ApiError if the client's leader epoch is older or newer than ours."""
        compare_epochs(current_leader_epoch, (self.unheard or self).leader_epoch)

    # the end

    def append(self, data: WritableData, batches: list[BatchAt], now_ms: int, marker: Marker | None = None) -> Appended:
        """Appends validated batches, or a message set of version 0 or 1 where there are none. Raises OSError."""
        if not batches:
            return append_messages(self.open_log(), data, now_ms)
        return self.open_log().append(data, batches, self.leader_epoch, now_ms, marker=marker)

    def wait_for(self, offset: int) -> Later[None]:
        """Completes when the high watermark reaches `offset`.
        Raises ApiError(KAFKA_STORAGE_ERROR) if the directory has failed.
        """
        later: Later[None] = Later()
        if self.high_watermark >= offset:
            later.finish(None)
        elif self.offline:
            later.fail(ApiError(Errors.KAFKA_STORAGE_ERROR))
        else:
            later.on_cancel = self._forget_cancelled
            self.parked.append((offset, later))
        return later

    def _forget_cancelled(self) -> None:
        """Removes cancelled requests from `parked` once they are more than half of it."""
        self._cancelled += 1
        if self._cancelled * 2 > len(self.parked):
            self.parked = deque(one for one in self.parked if not one[1].done)
            self._cancelled = 0

    def leader_bound(self) -> int:
        """The leader's bound of the high watermark: the flushed offset if a flush is due, or waited for, else the log
        end.
        """
        log = self.open_log()
        return log.recovery_point if log.settings.waits_for_flush_ms or self.is_flush_due(log) else log.end_offset

    def is_flush_due(self, log: Log) -> bool:
        """Whether as many records are not flushed as `flush.messages` says."""
        return log.end_offset - log.recovery_point >= log.settings.flush_messages

    @property
    def is_behind(self) -> bool:
        """Whether the leader's bound of the high watermark waits for a flush."""
        return self.log is not None and self.log.end_offset > self.leader_bound()

    def advance(self, high_watermark: int) -> None:
        """Sets the high watermark; parked requests up to it continue. Can be called again after an exception."""
        log = self.log
        if log is None:
            return
        if high_watermark > self.high_watermark:
            self._move(log, high_watermark)
        if self.on_committed is not None and self.told_to < self.high_watermark:
            self.on_committed(self.high_watermark)
        self.told_to = self.high_watermark

    def _move(self, log: Log, high_watermark: int) -> None:
        try:
            gained, stable_gained = self._passed(log, high_watermark)
        except IndexDamaged:  # the waiters read again, and get the error of this partition
            self.high_watermark = high_watermark
            self.forget_positions()
            self.disturb()
        else:
            for waiter in list(self.waiters):
                try:
                    waiter.progressed(self, gained, stable_gained)
                except Exception as error:  # its failure must not affect other waiters and replies
                    bugs.report(f"a waiter of {self.name}", error)
        parked = self.parked
        if parked:
            released = [later for offset, later in parked if offset <= high_watermark]
            self.parked = deque(p for p in parked if p[0] > high_watermark and not p[1].done)
            self._cancelled = 0
            for later in released:
                later.finish(None)

    def _passed(self, log: Log, high_watermark: int) -> tuple[int, int]:
        """Sets the high watermark; returns how many bytes more can be read, also below the last stable offset."""
        position = log.position_of(high_watermark)
        before = self.hw_position
        unstable = bool(self.waiters) and log.producers.first_unstable_offset(self.high_watermark) is not None
        stable_before = self.read_limit(READ_COMMITTED) if unstable else None
        self.high_watermark, self.hw_position = high_watermark, position
        if not self.waiters:
            log.producers.replicated(high_watermark)  # also where nothing reads, so that they do not pile up
            return 0, 0
        gained = stable_gained = _distance(before, position)
        if stable_before is not None:
            stable, stable_position = self.read_limit(READ_COMMITTED)
            stable_gained = _distance(stable_before[1], stable_position) if stable > stable_before[0] else 0
        return gained, stable_gained

    def disturb(self) -> None:
        for waiter in list(self.waiters):
            bugs.guarded(f"a waiter of {self.name}", waiter.disturbed, self)

    def followed(self) -> None:
        """A replica got what it had not: wakes the fetches that wait there."""
        for waiter in list(self.waiters):
            bugs.guarded(f"a waiter of {self.name}", waiter.progressed, self, 0, 0)

    def fail_parked(self, error: ApiError) -> None:
        """Requests to leaders that are cut off wait on, when another leader is elected."""
        parked, self.parked = self.parked, deque()
        for offset, later in parked:
            if offset == NEVER and self.stale and error.code == Errors.NOT_LEADER_OR_FOLLOWER:
                self.parked.append((offset, later))
            else:
                later.fail(error)

    def leave_behind(self, node: int, stale: StaleLeader) -> None:
        """Another leader is elected while the present one, a node that is cut off, goes on. One that was elected again
        without hearing of it goes on in the epoch in which it was left first.
        """
        self.stale.setdefault(node, stale)
        self.parked = deque((NEVER, later) for _, later in self.parked)

    def forget_stale(self, node: int) -> None:
        """A node that was cut off hears that another one was elected, if that happened."""
        if self.stale.pop(node, None) is None:
            return
        waiting = [later for offset, later in self.parked if offset == NEVER]
        self.parked = deque(one for one in self.parked if one[0] != NEVER)
        for later in waiting:
            later.fail(ApiError(Errors.NOT_LEADER_OR_FOLLOWER))
        self.disturb()

    def reset_high_watermark(self, high_watermark: int) -> None:
        """Sets the high watermark after opening and truncation, without notifying waiters."""
        log = self.open_log()
        self.high_watermark = max(log.start_offset, min(high_watermark, log.end_offset))
        self.told_to = self.high_watermark
        self.forget_positions()
        self.follower.replicated = self.high_watermark

    def forget_positions(self) -> None:
        """Forgets cached positions, because the files of the log changed."""
        self.hw_position = self.lso_position = self.first_batch = None

    def offset_before_last_bytes(self, count: int, best: int) -> int:
        """Returns the largest batch boundary with at least `count` bytes of log after it, or `best` if that is more."""
        active = self.open_log().active
        last = active.size - count
        try:
            start = active.batch_before(last)
        except IndexDamaged:  # asked again when it is rebuilt
            return best
        for batch in active.scan(start):
            if batch.position > last:
                break
            best = max(best, batch.base_offset if batch.position + batch.size > last else batch.last_offset + 1)
        return best

    def piece(self, offset: int, max_bytes: int) -> tuple[int, int]:
        """Returns the end of what a follower gets with one fetch from `offset`, and its bytes."""
        log = self.open_log()
        found = log.read(max(offset, log.start_offset), max_bytes, None, at_least_one=True)
        if found is None:
            return log.end_offset, 0
        until = found.position + found.length
        batches = found.segment.scan(max(found.position, found.segment.batch_before(until)))
        # the slice may end in the middle of a batch, of which the follower keeps nothing
        end = next((one.base_offset for one in batches if one.position + one.size > until), log.offset_after(found))
        size = len(found)
        found.release()
        return end, size

    def next_batch_end(self) -> int | None:
        """Returns the end of the first batch above the high watermark, to which a step advances it."""
        log = self.open_log()
        for _, batch in log.batches_from(self.high_watermark):
            if batch.last_offset >= self.high_watermark:
                return batch.last_offset + 1
        return None

    # reading

    def read_limit(self, isolation_level: int) -> tuple[int, tuple[Segment, int]]:
        """Returns the offset and the position beyond which a consumer may not read; for a follower, the log's end."""
        log = self.open_log()
        if isolation_level == LOG_END:
            return log.end_offset, log.position_of(log.end_offset)
        if self.hw_position is None:
            self.hw_position = log.position_of(self.high_watermark)
        if isolation_level == READ_COMMITTED:
            stable = self.last_stable_offset
            if stable < self.high_watermark:
                return stable, self._position_of_stable(log, stable)
        return self.high_watermark, self.hw_position

    def _position_of_stable(self, log: Log, stable: int) -> tuple[Segment, int]:
        """Cached, because a transaction may be open for long."""
        known = self.lso_position
        if known is None or known[0] != stable:
            known = self.lso_position = (stable, log.position_of(stable))
        return known[1]

    def read(
        self, offset: int, max_bytes: int, isolation_level: int, at_least_one: bool, reach: Reach | None = None
    ) -> FileSlice | None:
        """Returns the records from `offset` on. `isolation_level`: LOG_END for a follower. `reach`: how far the replica
        here is, if it does not lead. Raises ApiError: OFFSET_OUT_OF_RANGE outside the log, UNKNOWN_SERVER_ERROR for
        records within fewer than no bytes.
        """
        log = self.open_log()
        if not log.start_offset <= offset <= (log.end_offset if reach is None else reach.end):
            raise ApiError(Errors.OFFSET_OUT_OF_RANGE)
        end, limit = self.read_limit(isolation_level)
        if reach is not None:
            known = reach.end if isolation_level == LOG_END else reach.high_watermark
            if known < end:
                end, limit = known, log.position_of(known)
        if offset >= end:
            return None
        if max_bytes < 0:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        return log.read(offset, max_bytes, limit, at_least_one)
