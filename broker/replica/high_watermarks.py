"""Computes high watermarks from the replicated offsets of the simulated followers, by the policy of the partition."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from ..turn import Turn
from ..watermark_policies import IMMEDIATE
from .flusher import Flusher
from .followers import Follower, Replicas
from .partition import Partition


class HighWatermarks:
    """Advances the high watermarks of partitions at the end of an event (`Turn.move`).
    `chance` generates the jitter of policies.
    """

    def __init__(self, turn: Turn, flusher: Flusher, chance: random.Random) -> None:
        self.turn = turn
        self.schedule = turn.schedule
        self.flusher = flusher
        self.chance = chance
        self.catch_up: Callable[[Partition], None] = lambda partition: None  # replicas get what they have not
        self.caught_up: Callable[[Partition], None] = lambda partition: None  # replicas may join those in sync

    def appended(self, partition: Partition) -> None:
        """Notes that a partition's log grew."""
        follower = partition.follower
        if follower.policy is not IMMEDIATE:
            now_ms = self.schedule.monotonic_ms()
            on_append(follower, partition.end_offset, now_ms, self.chance)
            if follower.behind_since_ms is None:
                follower.behind_since_ms = now_ms
        if partition.replica_set is not None:
            self._appended_to(partition, partition.replica_set)
        self.turn.moved(partition)
        log = partition.log
        if log is not None and log.wants_flush_to > log.recovery_point and not partition.flushing:
            self.flusher.flush(partition)

    def _appended_to(self, partition: Partition, replicas: Replicas) -> None:
        """Notes an append for the followers with policies of their own."""
        for own in replicas.with_own_policy():
            now_ms = self.schedule.monotonic_ms()
            on_append(own, partition.end_offset, now_ms, self.chance)
            if own.behind_since_ms is None:
                own.behind_since_ms = now_ms

    def _in_sync_end(self, partition: Partition, replicas: Replicas, replicated: int) -> int:
        """Returns the offset that all replicas in sync have; with fewer than the topic asks for nothing moves."""
        for own in replicas.with_own_policy():
            self._go_on(own, partition)
        self.catch_up(partition)
        if next(replicas.joining(partition.end_offset, replicated, partition.high_watermark), None) is not None:
            self.caught_up(partition)
        if partition.is_under_min_isr:
            return partition.high_watermark
        if len(partition.replicas) == 1:  # whose replicas in sync are counted by hand
            return replicated
        return replicas.in_sync_end(partition.end_offset, replicated)

    def _go_on(self, follower: Follower, partition: Partition) -> int:
        """Lets followers be as far as their policy says; returns the offset."""
        end, again_ms = replicated_offset(follower, partition, self.schedule.monotonic_ms())
        if end >= partition.end_offset:
            follower.behind_since_ms = None
        elif follower.waiting:  # the oldest append on its way
            follower.behind_since_ms = follower.waiting[0][1] - follower.policy.lag_ms
        self._set_alarm(follower, partition, again_ms)
        return end

    def _set_alarm(self, follower: Follower, partition: Partition, again_ms: int | None) -> None:
        """Moves the partition again when the next append will be replicated: by one timer, however often it is moved
        until then.
        """
        due_ms = None if again_ms is None else self.schedule.monotonic_ms() + again_ms
        if follower.alarm is not None:
            if follower.alarm[0] == due_ms:
                return
            follower.alarm[1].cancel()
            follower.alarm = None
        if again_ms is not None and due_ms is not None:
            follower.alarm = due_ms, self.turn.later(again_ms, partial(self._rings, follower, partition))

    def _rings(self, follower: Follower, partition: Partition) -> None:
        follower.alarm = None
        self.turn.moved(partition)

    def move(self, partition: Partition) -> None:
        """Advances a high watermark to the smaller of the replicated and the flushed offset."""
        log, follower = partition.log, partition.follower
        if log is None:
            return
        bound = partition.leader_bound()
        is_due = bound < log.end_offset and partition.is_flush_due(log)
        if follower.policy is IMMEDIATE:
            follower.replicated = end = log.end_offset
        else:
            end = self._go_on(follower, partition)
        if partition.replica_set is not None:
            end = self._in_sync_end(partition, partition.replica_set, end)
        partition.advance(min(end, bound))
        if is_due:
            self.flusher.flush(partition)


def replicated_offset(follower: Follower, partition: Partition, now_ms: int) -> tuple[int, int | None]:
    """Returns (replicated offset, milliseconds until it can change)."""
    policy, end = follower.policy, partition.end_offset
    if policy.kind == "immediate":
        follower.replicated = end
        return end, None
    if policy.kind == "held":
        return follower.replicated, None
    if policy.kind == "bytes":
        follower.replicated = partition.offset_before_last_bytes(policy.bytes, follower.replicated)
        return follower.replicated, None
    waiting = follower.waiting
    while waiting and waiting[0][1] <= now_ms:
        follower.replicated = max(follower.replicated, waiting.popleft()[0])
    return follower.replicated, (waiting[0][1] - now_ms if waiting else None)


def on_append(follower: Follower, end: int, now_ms: int, chance: random.Random) -> None:
    """Records an append that ends at `end`."""
    policy = follower.policy
    if policy.kind == "lag":
        jitter = chance.randint(-policy.jitter_ms, policy.jitter_ms) if policy.jitter_ms else 0
        arrives = now_ms + max(0, policy.lag_ms + jitter)
        if follower.waiting:
            arrives = max(arrives, follower.waiting[-1][1])
        follower.waiting.append((end, arrives))
