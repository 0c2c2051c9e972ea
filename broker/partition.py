"""A partition: its log, its high watermark, and everyone who waits for either.

Nothing here calls back while it appends. A move of the high watermark is queued with the broker and carried out when the input
event has been handled (`Partition.advance`): then parked replies leave and waiting fetches are told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ..protocol.errors import ApiError, Errors
from ..protocol.records import BatchAt
from ..storage.log import Appended, Log
from ..storage.producers import Marker
from ..storage.segment import FileSlice, Segment
from .later import Later
from .replication import IMMEDIATE, Follower

READ_COMMITTED = 1


class Waiter(Protocol):
    """Who wants to know that a partition's readable end moved."""

    def progressed(self, partition: Partition, readable_bytes: int, stable_bytes: int) -> None:
        """`stable_bytes`: how much of it there is for who reads committed records only."""

    def disturbed(self, partition: Partition) -> None:
        """The partition went, moved, or its log became shorter: whoever waits must look again."""


def _distance(before: tuple[Segment, int] | None, after: tuple[Segment, int]) -> int:
    """The bytes between two places of a log, as far as they are in the same segment."""
    return after[1] - before[1] if before and before[0] is after[0] else after[1]


class Partition:
    """A partition on its leader. `log` is None while it is being opened or after its directory failed."""

    def __init__(self, topic: str, index: int, topic_id: bytes, leader_epoch: int) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.log: Log | None = None
        self.opening: Callable[[], None] | None = None  # opens it at once, where that is quick
        self.offline = False
        self.high_watermark = 0
        self.hw_position: tuple[Segment, int] | None = None
        self.lso_position: tuple[int, tuple[Segment, int]] | None = None
        self.follower = Follower(IMMEDIATE)
        self.isr_size = self.replica_count = 1
        self.min_insync_replicas = 1
        self.flushing = False
        self.parked: deque[tuple[int, Later[None]]] = deque()
        self.waiters: dict[Waiter, None] = {}
        self.on_advance: Callable[[int], None] | None = None  # the coordinator on this partition

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.index}, {self.high_watermark}..{self.end_offset})"

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    def open_log(self) -> Log:
        """The log; ApiError where it is not there."""
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
        return self.log.end_offset if self.log else 0

    @property
    def last_stable_offset(self) -> int:
        """The high watermark, or the first offset of a transaction that is open or whose end is not below the high watermark yet."""
        log = self.log
        unstable = log.producers.first_unstable_offset(self.high_watermark) if log else None
        if log is None or unstable is None:
            return self.high_watermark
        return max(min(unstable, self.high_watermark), log.start_offset)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """ApiError for a client whose idea of the leader is older or newer than ours."""
        if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            older = current_leader_epoch < self.leader_epoch
            raise ApiError(Errors.FENCED_LEADER_EPOCH if older else Errors.UNKNOWN_LEADER_EPOCH)

    # the end

    def append(self, data: Any, batches: list[BatchAt], now_ms: int, marker: Marker | None = None) -> Appended:
        """Appends batches whose checks have passed. OSError."""
        return self.open_log().append(data, batches, self.leader_epoch, now_ms, marker=marker)

    def wait_for(self, offset: int) -> Later[None]:
        """Finished once the high watermark has reached `offset`."""
        later: Later[None] = Later()
        if self.high_watermark >= offset:
            later.finish(None)
        else:
            self.parked.append((offset, later))
        return later

    def leader_bound(self) -> int:
        """The leader's part of the high watermark: what is flushed where a flush is due, else the log's end."""
        log = self.open_log()
        due = log.settings.flush_messages
        return log.recovery_point if log.end_offset - log.recovery_point >= due else log.end_offset

    def advance(self, high_watermark: int) -> None:
        """The high watermark is at `high_watermark` now; whoever waited for it goes on."""
        log = self.log
        if log is None or high_watermark <= self.high_watermark:
            return
        before = self.hw_position
        unstable = bool(self.waiters) and log.producers.first_unstable_offset(self.high_watermark) is not None
        stable_before = self.read_limit(READ_COMMITTED) if unstable else None
        self.high_watermark = high_watermark
        position = log.position_of(high_watermark)
        self.hw_position = position
        if self.waiters:
            gained = stable_gained = _distance(before, position)
            if stable_before is not None:
                stable, stable_position = self.read_limit(READ_COMMITTED)
                stable_gained = _distance(stable_before[1], stable_position) if stable > stable_before[0] else 0
            for waiter in list(self.waiters):
                waiter.progressed(self, gained, stable_gained)
        parked = self.parked
        if parked:
            released = [later for offset, later in parked if offset <= high_watermark]
            self.parked = deque(p for p in parked if p[0] > high_watermark and not p[1].done)
            for later in released:
                later.finish(None)
        if self.on_advance is not None:
            self.on_advance(high_watermark)

    def disturb(self) -> None:
        for waiter in list(self.waiters):
            waiter.disturbed(self)

    def fail_parked(self, error: ApiError) -> None:
        parked, self.parked = self.parked, deque()
        for _, later in parked:
            later.fail(error)

    def reset_high_watermark(self, high_watermark: int) -> None:
        """At opening and after truncation, when nobody is told."""
        log = self.open_log()
        self.high_watermark = max(log.start_offset, min(high_watermark, log.end_offset))
        self.forget_positions()
        self.follower.replicated = self.high_watermark

    def forget_positions(self) -> None:
        """The log's files are others now."""
        self.hw_position = self.lso_position = None

    def offset_before_last_bytes(self, count: int) -> int:
        """The largest offset, between batches, with at least `count` bytes of log behind it."""
        log = self.open_log()
        behind, best = log.active.size, self.follower.replicated
        for batch in log.active.scan():
            if behind - batch.position - batch.size >= count:
                best = max(best, batch.last_offset + 1)
        return best

    def next_batch_end(self) -> int | None:
        """The end of the first batch above the high watermark: what a step takes it to."""
        log = self.open_log()
        for _, batch in log.batches_from(self.high_watermark):
            if batch.last_offset >= self.high_watermark:
                return batch.last_offset + 1
        return None

    # reading

    def read_limit(self, isolation_level: int) -> tuple[int, tuple[Segment, int]]:
        """The offset and the position that a consumer may not read beyond."""
        log = self.open_log()
        if self.hw_position is None:
            self.hw_position = log.position_of(self.high_watermark)
        if isolation_level == READ_COMMITTED:
            stable = self.last_stable_offset
            if stable < self.high_watermark:
                return stable, self._position_of_stable(log, stable)
        return self.high_watermark, self.hw_position

    def _position_of_stable(self, log: Log, stable: int) -> tuple[Segment, int]:
        """Remembered, as a transaction may be open for long."""
        known = self.lso_position
        if known is None or known[0] != stable:
            known = self.lso_position = (stable, log.position_of(stable))
        return known[1]

    def read(self, offset: int, max_bytes: int, isolation_level: int, at_least_one: bool) -> FileSlice | None:
        """What a consumer gets from `offset` on. ApiError(OFFSET_OUT_OF_RANGE) outside the log."""
        log = self.open_log()
        if not log.start_offset <= offset <= log.end_offset:
            raise ApiError(Errors.OFFSET_OUT_OF_RANGE)
        end, limit = self.read_limit(isolation_level)
        if offset >= end:
            return None
        return log.read(offset, max_bytes, limit, at_least_one)
